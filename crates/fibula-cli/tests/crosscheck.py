#!/usr/bin/env python3
"""An independent second opinion on `fibula lookup`, by dictionaries of prefixes.

Usage: crosscheck.py FIBULA TABLE [COUNT]

Reads TABLE (`prefix next-hop` a line, plain or .xz), makes COUNT addresses (60,000 unless said otherwise: the
first and last address of random prefixes, the addresses beside them, random addresses below prefixes and in the
whole space), asks FIBULA for them as CSV, and compares prefix and next hop of every line with its own answer.
Shares no code with Fibula. Exit code 1 when an answer differs.
"""

import csv
import ipaddress
import lzma
import random
import subprocess
import sys


def read(path):
    """The table as {length: {network as integer: (prefix as text, next hop)}} for each family."""
    tables = {4: {}, 6: {}}
    opened = lzma.open(path, "rt") if path.endswith(".xz") else open(path)
    with opened as lines:
        for line in lines:
            prefix, next_hop = line.split()
            network = ipaddress.ip_network(prefix)
            by_length = tables[network.version].setdefault(network.prefixlen, {})
            by_length[int(network.network_address)] = (prefix, next_hop)
    return tables


def answer(table, bits, address):
    """The longest match, by trying every length."""
    for length in sorted(table, reverse=True):
        network = address >> (bits - length) << (bits - length)
        if network in table[length]:
            return table[length][network]
    return ("", "")


def probes(table, bits, count, rng):
    prefixes = [(network, length) for length, networks in table.items() for network in networks]
    top = (1 << bits) - 1
    keys = [0, top]
    while len(keys) < count:
        network, length = rng.choice(prefixes)
        last = network | (1 << (bits - length)) - 1
        keys += [network, last, max(network - 1, 0), min(last + 1, top), rng.randint(network, last), rng.getrandbits(bits)]
    return keys[:count]


def main():
    fibula, path = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60_000
    rng = random.Random(20)
    wrong = asked = 0
    for version, table in read(path).items():
        if not table:
            continue
        bits = 32 if version == 4 else 128
        keys = probes(table, bits, count, rng)
        address = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
        texts = [str(address(key)) for key in keys]
        expected = [[text, *answer(table, bits, key)] for key, text in zip(keys, texts)]
        # Answered by the RIB, and by a structure.
        for engine in [], ["--algorithm", "range-search"]:
            command = [fibula, "lookup", "--quiet", "--table", path, "--format", "csv", *engine]
            run = subprocess.run(command, input="\n".join(texts) + "\n", capture_output=True, text=True, check=True)
            rows = list(csv.reader(run.stdout.splitlines()))
            if rows[0] != ["address", "prefix", "next_hop"] or len(rows) != len(keys) + 1:
                sys.exit(f"{path}: {len(rows)} lines for {len(keys)} addresses, header {rows[0]}")
            differ = [(row, right) for row, right in zip(rows[1:], expected) if row != right]
            for row, right in differ[:5]:
                print(f"{path}: {row} where {right} is right")
            wrong += len(differ)
            asked += len(keys)
    print(f"{path}: {asked} addresses, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
