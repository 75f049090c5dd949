"""`PyTricia` of the package pytricia, over fibula: ``from fibula.pytricia import PyTricia``.

>>> names = PyTricia()
>>> names["10.0.0.0/8"] = "ours"
>>> names["10.1.2.3"], names.get_key("10.1.2.3"), "11.0.0.1" in names
('ours', '10.0.0.0/8', False)

``[]``, ``get`` and ``in`` are the longest match here, and ``has_key`` is exact. What differs from the original: docs/guide/python.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from socket import AF_INET, AF_INET6
from typing import Any

from ._fibula import TriciaBase

__all__ = ["PyTricia"]

_ABSENT: Any = object()


class PyTricia(TriciaBase):
    """A map from prefixes to objects, whose keys are looked up by the longest match."""

    __slots__ = ("_is_frozen", "_most")

    def __init__(self, maxbits: int = 32, family: int = AF_INET, raw_output: bool = False) -> None:
        if not 1 <= maxbits <= 128:
            raise ValueError("Maximum bits must be between 1 and 128, inclusive")
        if family not in (AF_INET, AF_INET6):
            raise ValueError("Invalid address family")
        if raw_output:
            raise ValueError("raw_output is not supported: keys are texts")
        self._is_frozen = False
        self._most = maxbits

    def has_key(self, prefix: Any) -> bool:
        """Return whether exactly this prefix is there."""
        try:
            return self._map._exact(prefix, _ABSENT) is not _ABSENT
        except (TypeError, ValueError):
            raise ValueError("Invalid prefix.") from None

    def get_key(self, prefix: Any) -> str | None:
        """Return the longest prefix around this one; None if there is none."""
        try:
            return self._map._best_key(prefix, False)
        except (TypeError, ValueError):
            raise ValueError("Invalid prefix.") from None

    def insert(self, prefix: Any, *data: Any) -> None:
        """Add a prefix, ``insert(prefix, data)`` or ``insert(address, length, data)``."""
        if len(data) == 2:
            prefix, data = (prefix, data[0]), data[1:]
        if len(data) != 1:
            raise TypeError("insert takes a prefix and its data, or an address, a length and the data")
        if self._is_frozen:
            raise ValueError("Invalid key.")
        try:
            self._map._put(prefix, data[0])
        except (TypeError, ValueError):
            raise ValueError("Invalid key.") from None

    def __setitem__(self, prefix: Any, data: Any) -> None:
        self.insert(prefix, data)

    def delete(self, prefix: Any) -> None:
        """Remove exactly this prefix."""
        if self._is_frozen:
            raise ValueError("can't modify a frozen pytricia. Thaw it first.")
        try:
            was_there = self._map._take(prefix)
        except (TypeError, ValueError):
            raise ValueError("Invalid prefix.") from None
        if not was_there:
            raise KeyError("Prefix doesn't exist.")

    def __delitem__(self, prefix: Any) -> None:
        self.delete(prefix)

    def _must_be_there(self, prefix: Any) -> None:
        if not self.has_key(prefix):
            raise KeyError("Prefix doesn't exist.")

    def parent(self, prefix: Any) -> str | None:
        """Return the longest prefix around this one, which is itself there; None if there is none."""
        self._must_be_there(prefix)
        return self._map._best_key(prefix, True)

    def children(self, prefix: Any) -> list[str]:
        """Return the prefixes inside this one, which is itself there and left out."""
        self._must_be_there(prefix)
        return self._map._inside(prefix)[1:]

    def keys(self) -> list[str]:
        """Return all prefixes, in order."""
        return self._map.texts()

    def __iter__(self) -> Iterator[str]:
        return iter(self._map.texts())

    def freeze(self) -> None:
        """Refuse changes until `thaw`. Lookups are as fast before it."""
        self._is_frozen = True

    def thaw(self) -> None:
        """Allow changes again."""
        self._is_frozen = False

    def __reduce__(self) -> tuple[Any, ...]:
        entries = list(zip(self._map.texts(), self._map._values(), strict=True))
        return _restored, (self._most, entries, self._is_frozen)


def _restored(most: int, entries: list[tuple[str, Any]], is_frozen: bool) -> PyTricia:
    made = PyTricia(most)
    for prefix, value in entries:
        made[prefix] = value
    if is_frozen:
        made.freeze()
    return made
