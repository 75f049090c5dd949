"""`open_database` of the package maxminddb, over fibula: ``import fibula.maxminddb as maxminddb``.

``open_database`` opens a database of MaxMind's form, and its `Reader` has ``get``, ``get_with_prefix_len``, ``metadata``, ``close``, and iterates
over networks and their records. To make a `fibula.Table` of such a file, whose values are columns: ``fibula.Table.read``.

What differs from the original: docs/guide/python.md.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any, AnyStr

from ._fibula import InvalidDatabaseError, MaxMindBase

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "MODE_AUTO",
    "MODE_FD",
    "MODE_FILE",
    "MODE_MEMORY",
    "MODE_MMAP",
    "MODE_MMAP_EXT",
    "InvalidDatabaseError",
    "Metadata",
    "Mode",
    "Reader",
    "open_database",
]


class Mode(IntEnum):
    """How a file is read: mapped unless it is ``FILE``, ``MEMORY`` or ``FD``, which copy it."""

    AUTO = 0
    MMAP_EXT = 1
    MMAP = 2
    FILE = 4
    MEMORY = 8
    FD = 16


MODE_AUTO = Mode.AUTO
MODE_MMAP_EXT = Mode.MMAP_EXT
MODE_MMAP = Mode.MMAP
MODE_FILE = Mode.FILE
MODE_MEMORY = Mode.MEMORY
MODE_FD = Mode.FD


@dataclass(kw_only=True, frozen=True)
class Metadata:
    """The metadata of a database."""

    binary_format_major_version: int
    binary_format_minor_version: int
    build_epoch: int
    database_type: str
    description: dict[str, str]
    ip_version: int
    languages: list[str]
    node_count: int
    record_size: int

    @property
    def node_byte_size(self) -> int:
        """The bytes of a node of the search tree."""
        return self.record_size // 4

    @property
    def search_tree_size(self) -> int:
        """The bytes of the search tree."""
        return self.node_count * self.node_byte_size


class Reader(MaxMindBase):
    """A database. It is safe in any number of threads, and after a fork."""

    def __new__(cls, database: AnyStr | int | os.PathLike[Any] | IO[Any], mode: int = MODE_AUTO) -> Self:
        """Open a database: a path, or with ``MODE_FD`` a file of bytes."""
        if mode not in list(Mode):
            raise ValueError(f"Unsupported open mode: {mode}")
        if mode == MODE_FD:
            held: Any = database.read()  # type: ignore[union-attr]
            name = str(getattr(database, "name", f"<{type(database)}>"))
        else:
            path = os.fspath(database)  # type: ignore[arg-type]
            name = os.fsdecode(path)
            with open(path, "rb") as file:
                # A mapping of no bytes is an error of the system.
                if mode in (MODE_FILE, MODE_MEMORY) or os.fstat(file.fileno()).st_size == 0:
                    held = file.read()
                else:
                    held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return super().__new__(cls, held, name)

    def metadata(self) -> Metadata:
        """Return the metadata."""
        said, fields = self._metadata(), Metadata.__dataclass_fields__
        absent = [name for name in fields if name not in said]
        if absent:
            raise InvalidDatabaseError(f"the metadata has no {', '.join(absent)}")
        return Metadata(**{name: said[name] for name in fields})

    def __enter__(self) -> Self:
        if self.closed:
            raise ValueError("Attempt to reopen a closed MaxMind DB.")
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def open_database(database: AnyStr | int | os.PathLike[Any] | IO[Any], mode: int = MODE_AUTO) -> Reader:
    """Open a database: a path, or with ``MODE_FD`` a file of bytes. The modes are those of `Mode`."""
    return Reader(database, mode)
