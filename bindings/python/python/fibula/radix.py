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
from typing import Any

from ._fibula import RadixBase, RadixNode

__all__ = ["Radix", "RadixNode"]


class Radix(RadixBase):
    """A tree of prefixes, each with a node."""

    def __iter__(self) -> Iterator[RadixNode]:
        return iter(self.nodes())

    def __getstate__(self) -> list[tuple[str, dict[Any, Any]]]:
        return [(node.prefix, node.data) for node in self]

    def __setstate__(self, state: list[tuple[str, dict[Any, Any]]]) -> None:
        for prefix, data in state:
            self.add(prefix).data.update(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return Radix, (), self.__getstate__()
