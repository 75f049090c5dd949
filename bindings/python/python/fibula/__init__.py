"""Longest-prefix match for IPv4 and IPv6: tables of routes, one address at a time or whole columns.

>>> import fibula
>>> table = fibula.Table.build(["192.0.2.0/24", "2001:db8::/32"], {"asn": [64500, 64501]})
>>> table.lookup("192.0.2.1")
64500
>>> table.lookup_many(["192.0.2.1", "2001:db8::1", "203.0.113.1"])
[64500, 64501, None]

Table       routes that do not change: built, read from files of any form, opened from table files
Follower    a table file that is replaced now and then
LiveTable   routes that change while other threads look up
Vrfs        many tables with numbers, and columns of those
PrefixMap   prefixes with any objects
PrefixSet   sets of prefixes
AddressSet  sets of addresses: union, intersection, difference, complement
Vrps, rov   route origin validation

``lookup`` is the longest match, for an address; ``get`` and ``[]`` are exact, for a prefix.
"""

from ._fibula import (
    AddressSet,
    ArrowChunks,
    ArrowColumn,
    BugError,
    Follower,
    LiveTable,
    Table,
    Vrfs,
    Vrps,
    __version__,
    rov,
)
from ._maps import PrefixMap, PrefixSet

__all__ = [
    "AddressSet",
    "ArrowChunks",
    "ArrowColumn",
    "BugError",
    "Follower",
    "LiveTable",
    "PrefixMap",
    "PrefixSet",
    "Table",
    "Vrfs",
    "Vrps",
    "__version__",
    "rov",
]
