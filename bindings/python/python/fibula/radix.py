"""`Radix` of the package py-radix, over fibula: ``from fibula.radix import Radix``.

>>> tree = Radix()
>>> node = tree.add("10.0.0.0/8")
>>> node.data["name"] = "ours"
>>> tree.search_best("10.1.2.3").data, tree.search_exact("10.1.2.3")
({'name': 'ours'}, None)

What differs from the original: docs/guide/python.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from socket import AF_INET, AF_INET6, inet_pton
from typing import Any

from ._fibula import PrefixMapBase

__all__ = ["Radix", "RadixNode"]


class RadixNode:
    """A prefix of a tree, with a dict of whatever belongs to it."""

    __slots__ = ("_tree", "data", "prefix")

    def __init__(self, tree: PrefixMapBase[Any], prefix: str) -> None:
        self._tree = tree
        self.prefix = prefix
        self.data: dict[Any, Any] = {}

    @property
    def network(self) -> str:
        """The address of the prefix."""
        return self.prefix.partition("/")[0]

    @property
    def prefixlen(self) -> int:
        """The length of the prefix."""
        return int(self.prefix.partition("/")[2])

    @property
    def family(self) -> int:
        """``socket.AF_INET`` or ``socket.AF_INET6``."""
        return int(AF_INET6 if ":" in self.prefix else AF_INET)

    @property
    def packed(self) -> bytes:
        """The address in network order."""
        return inet_pton(self.family, self.network)

    @property
    def parent(self) -> RadixNode | None:
        """The node of the longest prefix around this one; None if there is none."""
        key = self._tree._best_key(self.prefix, True)
        return None if key is None else self._tree._exact(key, None)


def _key(network: Any, masklen: Any, packed: Any) -> Any:
    """Return a prefix of the arguments that all methods of the original take."""
    if network is None and packed is None:
        raise TypeError("No address specified (use 'address' or 'packed')")
    if network is not None and packed is not None:
        raise TypeError("Two address types specified. Please pick one.")
    if packed is not None:
        network = bytes(packed)
    elif not isinstance(network, str):
        raise TypeError(f"a network is a str, not {type(network).__name__}")
    if masklen is None or masklen == -1:
        return network
    if isinstance(network, str) and "/" in network:
        raise ValueError("masklen specified twice")
    return network, masklen


class Radix:
    """A tree of prefixes, each with a node."""

    def __init__(self) -> None:
        self._map: PrefixMapBase[RadixNode] = PrefixMapBase()

    def add(self, network: str | None = None, masklen: int | None = None, packed: bytes | None = None) -> RadixNode:
        """Return the node of a prefix, which is added if it is not there."""
        key = _key(network, masklen, packed)
        node = self._map._exact(key, None)
        if node is None:
            self._map._put(key, None)  # type: ignore[arg-type]
            text = self._map._best_key(key, False)
            assert text is not None
            node = RadixNode(self._map, text)
            self._map._put(text, node)
        return node  # type: ignore[no-any-return]

    def delete(self, network: str | None = None, masklen: int | None = None, packed: bytes | None = None) -> None:
        """Remove a prefix."""
        if not self._map._take(_key(network, masklen, packed)):
            raise KeyError("no such address")

    def search_exact(self, network: str | None = None, masklen: int | None = None, packed: bytes | None = None) -> RadixNode | None:
        """Return the node of exactly this prefix."""
        return self._map._exact(_key(network, masklen, packed), None)  # type: ignore[no-any-return]

    def search_best(self, network: str | None = None, masklen: int | None = None, packed: bytes | None = None) -> RadixNode | None:
        """Return the node of the longest prefix around this one."""
        if masklen is None and packed is None and type(network) is str:
            return self._map._best(network, None)  # type: ignore[no-any-return]
        return self._map._best(_key(network, masklen, packed), None)  # type: ignore[no-any-return]

    def search_worst(self, network: str | None = None, masklen: int | None = None, packed: bytes | None = None) -> RadixNode | None:
        """Return the node of the shortest prefix around this one."""
        return self._map._worst(_key(network, masklen, packed), None)  # type: ignore[no-any-return]

    def search_covered(self, network: str | None = None, masklen: int | None = None, packed: bytes | None = None) -> list[RadixNode]:
        """Return the nodes of the prefixes inside this one."""
        return [node for _, node in reversed(self._map._inside(_key(network, masklen, packed)))]

    def search_covering(self, network: str | None = None, masklen: int | None = None, packed: bytes | None = None) -> list[RadixNode]:
        """Return the nodes of the prefixes around this one, the longest first."""
        return [node for _, node in reversed(self._map._around(_key(network, masklen, packed)))]

    def nodes(self) -> list[RadixNode]:
        """Return all nodes, in order."""
        return self._map._values()

    def prefixes(self) -> list[str]:
        """Return all prefixes, in order."""
        return self._map.texts()

    def __iter__(self) -> Iterator[RadixNode]:
        return iter(self._map._values())

    def __getstate__(self) -> list[tuple[str, dict[Any, Any]]]:
        return [(node.prefix, node.data) for node in self]

    def __setstate__(self, state: list[tuple[str, dict[Any, Any]]]) -> None:
        for prefix, data in state:
            self.add(prefix).data.update(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return Radix, (), self.__getstate__()
