"""The functions that data engines have by these names, over columns of any library that this package takes.

``lpm(table, ip)``, ``lpm_column(table, ip, column)`` and ``lpm_prefix(table, ip)`` answer text, ``lpm_u64`` and ``lpm_f64`` numbers, ``lpm_id`` ids,
``rov(vrps, prefix, asn)`` one of four words, ``fibula_routes(table)`` prefixes and values. A table is a ``Table`` or the path of a file, which is opened once a
process and followed: a call answers from the file that is there when it begins.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Literal

from ._fibula import Table, Vrps
from ._fibula import rov as _rov

__all__ = ["NAMES", "fibula_routes", "lpm", "lpm_column", "lpm_f64", "lpm_id", "lpm_prefix", "lpm_u64", "rov", "table_of", "vrps_of"]

TableSource = Table | str | os.PathLike[str]
VrpsSource = Vrps | str | os.PathLike[str]
Invalid = Literal["null", "raise"]

# Those that answer a column; fibula_routes makes one.
NAMES = ("lpm", "lpm_column", "lpm_prefix", "lpm_u64", "lpm_f64", "lpm_id", "rov")

# The types of columns that a number is taken from without loss.
_NUMBERS = {"lpm_u64": ("u32", "u64"), "lpm_f64": ("f64", "u32")}

_lock = threading.Lock()
_tables: dict[str, Table] = {}
_payloads: dict[str, tuple[tuple[int, ...], Vrps]] = {}


def table_of(source: TableSource) -> Table:
    """Return the table of a path, opened once a process; it follows the file. A ``Table`` is itself."""
    if isinstance(source, Table):
        return source
    path = os.fspath(source)
    with _lock:
        table = _tables.get(path)
        if table is None or table.is_closed:
            table = _tables[path] = Table.open(path, mapped=True, follow=True)
        return table


def vrps_of(source: VrpsSource) -> Vrps:
    """Return the payloads of a path, read anew when the file is another one. A ``Vrps`` is itself."""
    if isinstance(source, Vrps):
        return source
    path = os.fspath(source)
    with _lock:
        about = os.stat(path)
        stamp = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        known = _payloads.get(path)
        if known is None or known[0] != stamp:
            known = _payloads[path] = stamp, Vrps.read(path)
        return known[1]


def _constant(what: str, rows: Any) -> Any:
    """Return the value that all rows of an array of Arrow have; None where it is null, or there is no row."""
    found = rows.unique()
    if len(found) > 1:
        raise ValueError(f"{what} is the same for all rows, and not '{found[0]}' and '{found[1]}'")
    return found[0].as_py() if len(found) else None


def lpm(table: TableSource, ip: Any, *, invalid: Invalid = "null") -> Any:
    """Return the first value of the longest route that contains each address, as text; the id of a table without values."""
    return table_of(table).lookup_texts(ip, invalid=invalid)


def lpm_column(table: TableSource, ip: Any, column: str, *, invalid: Invalid = "null") -> Any:
    """Return the value in a column, as text."""
    return table_of(table).lookup_texts(ip, column, invalid=invalid)


def lpm_prefix(table: TableSource, ip: Any, *, invalid: Invalid = "null") -> Any:
    """Return the longest prefix that contains each address, as text."""
    return table_of(table).lookup_prefixes(ip, invalid=invalid)


def lpm_u64(table: TableSource, ip: Any, column: str, *, invalid: Invalid = "null") -> Any:
    """Return the value in a column of type u32 or u64."""
    return _numbers("lpm_u64", table, ip, column, invalid)


def lpm_f64(table: TableSource, ip: Any, column: str, *, invalid: Invalid = "null") -> Any:
    """Return the value in a column of type f64 or u32."""
    return _numbers("lpm_f64", table, ip, column, invalid)


def _numbers(call: str, source: TableSource, ip: Any, column: str, invalid: Invalid) -> Any:
    table = table_of(source)
    kind = table.columns.get(column)
    if kind is not None and kind not in _NUMBERS[call]:
        taken = " and ".join(_NUMBERS[call])
        raise ValueError(f"column '{column}' is of type {kind}: {call} takes {taken}, and lpm_column has the text of every type")
    return table.lookup_many(ip, column, invalid=invalid, dictionary=False)


def lpm_id(table: TableSource, ip: Any, *, invalid: Invalid = "null") -> Any:
    """Return the id of the longest route that contains each address; 0, or null in Arrow, where there is none."""
    return table_of(table).lookup_ids(ip, invalid=invalid)


def rov(vrps: VrpsSource, prefix: Any, asn: Any, *, invalid: Invalid = "null") -> Any:
    """Return the state of each route: ``valid``, ``invalid-as``, ``invalid-length`` or ``not-found``; null where its prefix or its AS is missing."""
    return _rov(prefix, asn, vrps_of(vrps), invalid=invalid)


def fibula_routes(table: TableSource, column: str | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield the prefix and the value of each route, as text: that of the first column, or of a named one."""
    of = table_of(table)
    if column is None:
        column = next(iter(of.columns), None)
    for network, value in of.items(column):
        yield _shown(network), None if value is None else _text(value)


def _shown(network: Any) -> str:
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    return str(network) if mapped is None else f"::ffff:{mapped}/{network.prefixlen}"


def _text(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return value.decode()
        case float():
            # The fewest digits that are the same number again, without an exponent, as the command writes them.
            return format(Decimal(repr(value)), "f").removesuffix(".0")
    return str(value)
