"""`pyasn` of the package pyasn, over fibula: ``from fibula.pyasn import pyasn``.

>>> origins = pyasn(None, ipasn_string="10.0.0.0/8\\t64500\\n")
>>> origins.lookup("10.1.2.3"), origins.lookup("11.0.0.0")
((64500, '10.0.0.0/8'), (None, None))

What differs from the original: docs/guide/python.md.
"""

from __future__ import annotations

import gzip
import json
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Any

from ._fibula import OriginsBase

__all__ = ["pyasn"]


class pyasn(OriginsBase):  # noqa: N801, the name of the original
    """Origin ASes of addresses, from a file of lines of a prefix and an AS."""

    def __init__(self, ipasn_file: str | None, as_names_file: str | None = None, ipasn_string: str | None = None) -> None:
        self._ipasndb_file = ipasn_file
        self._asnames_file = as_names_file
        if ipasn_file is not None:
            if ipasn_file.endswith(".gz"):
                with gzip.open(ipasn_file, "rt") as file:
                    text = file.read()
            else:
                with open(ipasn_file) as file:
                    text = file.read()
        elif ipasn_string is not None:
            text = ipasn_string
        else:
            raise ValueError("No data given, all parameters are empty.")
        self._records = self._load(text)
        self._asnames = self._read_names() if as_names_file else None
        self._as_prefixes: dict[int, set[str]] | None = None

    def _read_names(self) -> dict[int, str]:
        assert self._asnames_file is not None
        opened = gzip.open(self._asnames_file, "rt") if self._asnames_file.endswith(".gz") else open(self._asnames_file)
        with opened as file:
            return {int(asn): name for asn, name in json.load(file).items()}

    def get_as_prefixes(self, asn: int | str) -> set[str] | None:
        """Return the prefixes of an AS; None if it has none."""
        if self._as_prefixes is None:
            self._as_prefixes = {}
            for of, prefix in self._entries():
                self._as_prefixes.setdefault(of, set()).add(prefix)
        return self._as_prefixes.get(int(asn))

    def get_as_prefixes_effective(self, asn: int | str) -> list[str] | None:
        """Return the fewest prefixes that are the addresses of an AS; None if it has none."""
        prefixes = self.get_as_prefixes(asn)
        if not prefixes:
            return None
        v4 = collapse_addresses([IPv4Network(prefix) for prefix in prefixes if ":" not in prefix])
        v6 = collapse_addresses([IPv6Network(prefix) for prefix in prefixes if ":" in prefix])
        return [prefix.compressed for prefix in v4] + [prefix.compressed for prefix in v6]

    def get_as_size(self, asn: int | str) -> float:
        """Return the number of addresses of an AS, as the original counts them: prefixes of IPv6 count 2^(32 - length)."""
        prefixes = self.get_as_prefixes_effective(asn)
        if not prefixes:
            return 0
        size: float = sum(2 ** (32 - int(prefix.split("/")[1])) for prefix in prefixes)
        return size

    def get_as_name(self, asn: int) -> str | None:
        """Return the name of an AS from the file of names."""
        if not self._asnames:
            raise Exception("Autonomous system names not loaded during initialization")
        return self._asnames.get(asn)

    @staticmethod
    def convert_32bit_to_asdot_asn_format(asn: int) -> str:
        """Return an AS number as AS[high.]low (RFC 5396)."""
        high, low = divmod(asn, 2**16)
        return f"AS{high}.{low}" if high > 0 else f"AS{low}"

    @staticmethod
    def convert_asdot_to_32bit_asn(asdot: str) -> int:
        """Return the number of an AS that is written as AS[high.]low (RFC 5396)."""
        if not asdot[:2].upper() == "AS":
            raise ValueError(
                "Invalid asdot format for input. input format must be something like AS<Number> or AS<Number>.<Number> "
            )
        if asdot.find(".") > 0:
            high, low = asdot.split(".")
            return 2**16 * int(high[2:]) + int(low)
        return int(asdot[2:])

    def __repr__(self) -> str:
        return f"pyasn(ipasndb:'{self._ipasndb_file}'; asnames:'{self._asnames_file}') - {self._records} prefixes"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "ipasn_str": "".join(f"{prefix}\t{asn}\n" for asn, prefix in self._entries())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        text = state.pop("ipasn_str")
        self.__dict__.update(state)
        self._records = self._load(text)
