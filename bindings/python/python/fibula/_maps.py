"""Maps and sets of prefixes: the interfaces of `collections.abc` over the parts that are in Rust."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSet
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeVar

from ._fibula import PrefixMapBase, PrefixSetBase

if TYPE_CHECKING:
    from ._fibula import Network, Prefix, Table

V = TypeVar("V")

# Entries that an iterator fetches together.
_FETCHED = 256


class PrefixMap(PrefixMapBase[V], MutableMapping["Prefix", V]):
    """A map from prefixes of both families to any objects: ``[]`` is exact, ``lookup`` is the longest match.

    >>> import fibula
    >>> names = fibula.PrefixMap({"10.0.0.0/8": "ours", "10.1.0.0/16": "lab"})
    >>> names.lookup("10.1.2.3"), names["10.0.0.0/8"], names.get("10.1.2.0/24")
    ('lab', 'ours', None)

    Keys are texts, networks of `ipaddress`, or pairs of an address and a length; iteration returns networks, in order. Prefixes must not be added or
    removed during an iteration.
    """

    def __init__(self, entries: Mapping[Any, V] | Iterable[tuple[Any, V]] = (), /) -> None:
        self.update(entries)

    def __iter__(self) -> Iterator[Network]:
        return (prefix for prefix, _ in self._entries())

    def _entries(self) -> Iterator[tuple[Network, V]]:
        found, changes = self._after(None, _FETCHED, None)
        while found:
            for entry in found:
                # Another thread, or the loop itself, may have changed the map since the last one.
                self._after(None, 0, changes)
                yield entry
            found, _ = self._after(found[-1][0], _FETCHED, changes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrefixMap):
            return NotImplemented
        return len(self) == len(other) and list(self._entries()) == list(other._entries())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PrefixMap({{{', '.join(f'{str(prefix)!r}: {value!r}' for prefix, value in self._entries())}}})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ([(str(prefix), value) for prefix, value in self._entries()],)

    def copy(self) -> PrefixMap[V]:
        """Return a map of the same entries."""
        return type(self)(self._entries())

    def compile(self, *, engine: str | None = None) -> Table:
        """Return a `Table` of the entries, whose values must be of one plain type: numbers, truth values, texts or bytes."""
        from ._fibula import Table

        prefixes, values = [], []
        for prefix, value in self._entries():
            prefixes.append(prefix)
            values.append(value)
        return Table.build(prefixes, {"value": values}, engine=engine)


class PrefixSet(PrefixSetBase, MutableSet["Prefix"]):
    """A set of prefixes of both families, whose elements are the prefixes themselves. `AddressSet` is of the addresses in them.

    >>> import fibula
    >>> bogons = fibula.PrefixSet(["10.0.0.0/8", "192.168.0.0/16"])
    >>> "10.0.0.0/8" in bogons, "10.0.0.0/9" in bogons
    (True, False)
    >>> (bogons - fibula.PrefixSet(["10.0.0.0/8"])).texts()
    ['192.168.0.0/16']
    """

    def __iter__(self) -> Iterator[Network]:
        found, changes = self._after(None, _FETCHED, None)
        while found:
            for prefix in found:
                self._after(None, 0, changes)
                yield prefix
            found, _ = self._after(found[-1], _FETCHED, changes)

    @classmethod
    def _from_iterable(cls, prefixes: Iterable[Any]) -> PrefixSet:  # type: ignore[override]
        return cls(prefixes)

    @staticmethod
    def _of(other: object) -> PrefixSetBase | None:
        if isinstance(other, PrefixSetBase):
            return other
        return PrefixSet(list(other)) if isinstance(other, AbstractSet) else None

    def __or__(self, other: object) -> PrefixSet:
        own = self._of(other)
        return NotImplemented if own is None else type(self)(self._union(own))

    def __and__(self, other: object) -> PrefixSet:
        own = self._of(other)
        return NotImplemented if own is None else type(self)(self._intersection(own))

    def __sub__(self, other: object) -> PrefixSet:
        own = self._of(other)
        return NotImplemented if own is None else type(self)(self._difference(own))

    def __xor__(self, other: object) -> PrefixSet:
        own = self._of(other)
        return NotImplemented if own is None else type(self)(self._symmetric_difference(own))

    def __le__(self, other: object) -> bool:
        own = self._of(other)
        return NotImplemented if own is None else self._is_subset(own)

    def __lt__(self, other: object) -> bool:
        own = self._of(other)
        return NotImplemented if own is None else self._is_subset(own) and not self._equals(own)

    def __ge__(self, other: object) -> bool:
        own = self._of(other)
        return NotImplemented if own is None else own._is_subset(self)

    def __gt__(self, other: object) -> bool:
        own = self._of(other)
        return NotImplemented if own is None else own._is_subset(self) and not self._equals(own)

    def __eq__(self, other: object) -> bool:
        own = self._of(other)
        return NotImplemented if own is None else self._equals(own)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PrefixSet({self.texts()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.texts(),)
