"""What type checkers must understand: `mypy --strict` reads this file, and nothing runs it."""

from __future__ import annotations

import ipaddress
import pathlib
from typing import assert_type

import fibula

table = fibula.Table.open(pathlib.Path("table.fibula"), mapped=True, follow=True)
assert_type(table.lookup_id("192.0.2.1"), int)
assert_type(table.lookup_id(ipaddress.ip_address("192.0.2.1")), int)
assert_type(table.stamp, str | None)
assert_type(table.columns, dict[str, str])
for prefix in table:
    assert_type(prefix, ipaddress.IPv4Network | ipaddress.IPv6Network)
built = fibula.Table.build(["192.0.2.0/24", ("192.0.2.0", 25)], {"asn": [1, 2]})
names: fibula.PrefixMap[str] = fibula.PrefixMap({"10.0.0.0/8": "ours"})
assert_type(names["10.0.0.0/8"], str)
assert_type(list(names.items())[0][1], str)
prefixes = fibula.PrefixSet(["10.0.0.0/8"])
assert_type(prefixes - prefixes, fibula.PrefixSet)
addresses = fibula.AddressSet(prefixes)
assert_type(~addresses & addresses, fibula.AddressSet)
assert_type(addresses.num_addresses, int)
live = fibula.LiveTable()
assert_type(live.lookup("10.0.0.1"), int | None)
follower = fibula.Follower("table.fibula", mapped=True)
assert_type(follower.refresh(), bool)
assert_type(follower.table, fibula.Table)
