#!/usr/bin/env python3
"""Writes the questions that every engine with the SQL names answers, and their answers, from an oracle: a linear scan of the routes with `ipaddress`.

    testdata/sql/make.py [--check]

It reads routes.csv and vrps.csv beside it, and writes questions.tsv. With `--check` it writes nothing, and fails where the file is another one. Nothing of Fibula is used.
"""

from __future__ import annotations

import csv
import ipaddress
import json
import pathlib
import random
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

HEADING = """\
# Questions to the functions of SQL, and their answers, which every engine passes. Written by make.py from an oracle.
# The table is routes.csv, with the columns of its heading; its first column of values is `name`. Ids are numbered from 1 on, by row.
# Payloads for `rov` are vrps.csv. Cells are JSON. `kind` is that of the address, as in ../columns/contract.toml: numbers for integers,
# hexadecimal digits in a string for bytes. `argument` is the column of lpm_column, lpm_u64 and lpm_f64, and the AS of rov. An answer of null is a null, no
# route, or no value; "invalid" in the last cell says that the row is no address or prefix, which is null, or an error where that is asked for.
# call\tkind\taddress\targument\tanswer\tinvalid
"""

KINDS_V4 = ["string", "uint32", "int32", "uint64", "int64", "fixed_4", "binary"]
KINDS_V6 = ["string", "uint128", "fixed_16", "binary"]

# What is no address, by kind.
INVALID: dict[str, list[Any]] = {
    "string": ["", " 10.0.0.1", "10.0.0.1 ", "10.0.0", "10.0.0.256", "10.0.0.1/32", "01.2.3.4", "1.2.3.4.5", "fe80::1%eth0", "2001:db8::1::", ":",
               "2001:db8:1:2:3:4:5:6:7", "::ffff:10.0.0.300", "zehn", "10.0.0.1\n", "١.2.3.4"],
    "uint64": [2**32, 2**64 - 1],
    "int64": [2**32, -1, -(2**63)],
    "binary": ["", "0a", "0a0000", "0a00000102", "20010db8" + "00" * 13],
}


def routes() -> tuple[list[str], list[tuple[Network, dict[str, str]]]]:
    with (HERE / "routes.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        rows = [(ipaddress.ip_network(row.pop("prefix")), row) for row in reader]
        return list(reader.fieldnames or [])[1:], rows


COLUMNS, ROUTES = routes()
TYPES = {"name": "text", "country": "text", "asn": "u32", "bytes": "u64", "offset": "i64", "latitude": "f64", "tunnel": "bool"}
assert list(TYPES) == COLUMNS


def payloads() -> list[tuple[Network, int, int]]:
    with (HERE / "vrps.csv").open(newline="") as file:
        return [(ipaddress.ip_network(row["IP Prefix"]), int(row["Max Length"]), int(row["ASN"].removeprefix("AS"))) for row in csv.DictReader(file)]


PAYLOADS = payloads()


def longest(address: Address) -> int | None:
    """Return the row of the longest route that contains an address."""
    found = None
    for row, (network, _) in enumerate(ROUTES):
        if address in network and (found is None or network.prefixlen > ROUTES[found][0].prefixlen):
            found = row
    return found


def state(network: Network, asn: int) -> str:
    """Return the state of a route: RFC 6811, section 2."""
    around = [one for one in PAYLOADS if one[0].version == network.version and network.subnet_of(one[0])]  # type: ignore[arg-type]
    if not around:
        return "not-found"
    own = [one for one in around if one[2] == asn and asn != 0]
    if not own:
        return "invalid-as"
    return "valid" if any(network.prefixlen <= length for _, length, _ in own) else "invalid-length"


def shown(network: Network) -> str:
    """Return a prefix in the spelling of RFC 5952, with IPv4-mapped addresses as its section 5 has them."""
    address = network.network_address
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}/{network.prefixlen}"
    return f"{address}/{network.prefixlen}"


def answer(call: str, address: Address, column: str | None) -> Any:
    row = longest(address)
    if row is None:
        return None
    network, values = ROUTES[row]
    if call == "lpm_id":
        return row + 1
    if call == "lpm_prefix":
        return shown(network)
    text = values["name" if call == "lpm" else str(column)]
    if text == "":
        return None
    if call == "lpm_u64":
        return int(text)
    return float(text) if call == "lpm_f64" else text


def cell(kind: str, address: Address) -> Any:
    number = int(address)
    match kind:
        case "string":
            # From Python 3.13 on, `str` spells mapped addresses with dots: one spelling of both, for the same questions everywhere.
            is_mapped = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
            return f"::ffff:{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}" if is_mapped else str(address)
        case "int32":
            return number - 2**32 if number >= 2**31 else number
        case "fixed_4" | "fixed_16" | "binary":
            return address.packed.hex()
    return number


def around(network: Network, random: random.Random) -> list[Address]:
    """Return addresses in a network, at its ends, and next to these."""
    first, last = int(network.network_address), int(network.broadcast_address)
    found = [first, last, first - 1, last + 1, random.randint(first, last), random.randint(first, last)]
    of = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
    return [of(number) for number in found if 0 <= number < 2**network.max_prefixlen]


def questions() -> list[tuple[str, str, Any, Any, Any, str]]:
    generator = random.Random(42)
    asked: list[tuple[str, str, Any, Any, Any, str]] = []
    addresses = sorted({address for network, _ in ROUTES for address in around(network, generator)}, key=lambda one: (one.version, int(one)))
    calls: list[tuple[str, str | None]] = [("lpm", None), ("lpm_prefix", None), ("lpm_id", None)]
    calls += [("lpm_column", column) for column in COLUMNS]
    calls += [("lpm_u64", "asn"), ("lpm_u64", "bytes"), ("lpm_f64", "latitude"), ("lpm_f64", "asn")]
    # Every address is asked for once in each kind, by the calls in turn; every call is asked in each kind.
    turn = 0
    for version, kinds in [(4, KINDS_V4), (6, KINDS_V6)]:
        for address in addresses:
            if address.version != version:
                continue
            for kind in kinds:
                call, column = calls[turn % len(calls)]
                turn += 1
                asked.append((call, kind, cell(kind, address), column, answer(call, address, column), ""))
    for kind, rows in INVALID.items():
        for at, row in enumerate(rows):
            call, column = calls[at % len(calls)]
            asked.append((call, kind, row, column, None, "invalid"))
    for at, kind in enumerate(sorted({*KINDS_V4, *KINDS_V6})):
        for call, column in calls[at % 3 :: 3]:
            asked.append((call, kind, None, column, None, ""))
    # Spellings of one address.
    for text in ["2001:DB8::1", "2001:0db8:0000::0001", "2001:db8:0:0:0:0:0.0.0.1", "::ffff:10.1.2.3", "::FFFF:0a01:0203"]:
        for call, column in calls[:3]:
            asked.append((call, "string", text, column, answer(call, ipaddress.ip_address(text), column), ""))
    for network, length, asn in PAYLOADS:
        for deeper in range(network.prefixlen, min(length + 2, network.max_prefixlen) + 1):
            inside = ipaddress.ip_network((int(network.network_address), deeper)) if network.version == 4 else ipaddress.IPv6Network((int(network.network_address), deeper))
            for origin in (asn, 64_511):
                asked.append(("rov", "string", str(inside), origin, state(inside, origin), ""))
        if network.prefixlen > 0:
            asked.append(("rov", "string", str(network.supernet()), asn, state(network.supernet(), asn), ""))
    for text in ["", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "/8", "2001:db8::/129", "2001:db8::/-1", "x"]:
        asked.append(("rov", "string", text, 64_500, None, "invalid"))
    # A prefix with bits after its length is that without them; an address alone has all bits.
    asked.append(("rov", "string", "192.0.2.77/24", 64_500, state(ipaddress.ip_network("192.0.2.0/24"), 64_500), ""))
    asked.append(("rov", "string", "192.0.2.77", 64_500, state(ipaddress.ip_network("192.0.2.77/32"), 64_500), ""))
    asked += [("rov", "string", None, 64_500, None, ""), ("rov", "string", "192.0.2.0/24", None, None, ""), ("rov", "string", None, None, None, "")]
    return asked


def main() -> int:
    lines = [f"{call}\t{kind}\t{json.dumps(address)}\t{json.dumps(argument)}\t{json.dumps(found)}\t{invalid}\n"
             for call, kind, address, argument, found, invalid in questions()]
    text = HEADING + "".join(lines)
    path = HERE / "questions.tsv"
    if "--check" in sys.argv:
        if path.read_text() != text:
            print("questions.tsv is another one: run testdata/sql/make.py")
            return 1
        return 0
    path.write_text(text)
    print(len(lines), "questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
