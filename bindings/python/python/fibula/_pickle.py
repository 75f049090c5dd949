"""Tables in other processes: opened once for each file and process."""

from __future__ import annotations

import os
import threading

from ._fibula import Follower, Table

_lock = threading.Lock()
_opened: dict[tuple[str, bool, bool, bool], Table] = {}


def reopen(path: str, mapped: bool, verify: bool, follow: bool, stamp: str) -> Table:
    """Return the table of this file, whose stamp was this one when it was pickled."""
    key = (path, mapped, verify, follow)
    with _lock:
        table = _opened.get(key)
        # By the stamp, because a file may have been replaced since it was opened here.
        if table is not None and not table.is_closed and (follow or table.stamp == stamp):
            return table
        table = Table.open(path, mapped=mapped, verify=verify, follow=follow)
        if not follow and table.stamp != stamp:
            raise ValueError(
                f"{os.fspath(path)}: the file was replaced: its stamp is {table.stamp}, and that of the table was {stamp}; "
                "open the table with follow=True to take the newest"
            )
        _opened[key] = table
        return table


def of_bytes(image: bytes) -> Table:
    """Return the table of these bytes."""
    return Table.open(image)


def follow(path: str, mapped: bool, verify: bool) -> Follower:
    """Return a follower of this file."""
    return Follower(path, mapped=mapped, verify=verify)
