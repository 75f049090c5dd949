#!/usr/bin/env python3
"""Checks the MaxMind databases that `fibula table convert --to mmdb` writes, with readers of others and an oracle of its own.

    mmdb.py FIBULA [TABLE...] [--reader PROGRAM] [--large] [--record FILE]

Each TABLE has lines `prefix number`, plain or .xz; several become one table. Without one, tables are made: nested prefixes of both families, for each way of writing
them, one that needs records of 28 bits, and with --large one that needs 32. Every network of a database is compared with ranges that a stack makes of the
prefixes. The readers are those of the package `maxminddb`, in C and (for the first networks) in Python, and PROGRAM, which is mmdb.c with libmaxminddb: it looks up the
first and the last address of each network. With --record, the seconds and the memory of the conversion are written there, of each of three runs.
A part that cannot run prints SKIPPED and why.
"""

from __future__ import annotations

import argparse
import bisect
import datetime
import ipaddress
import itertools
import json
import lzma
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile

ASN = "autonomous_system_number"
IN_PYTHON = 20_000


def read(paths):
    for path in paths:
        with lzma.open(path, "rt") if str(path).endswith(".xz") else open(path) as lines:
            for line in lines:
                prefix, value = line.split()
                yield prefix, int(value)


def random_table(seed, count):
    generator = random.Random(seed)
    found = {}
    while len(found) < count:
        if generator.random() < 0.6:
            length = generator.choice([0, 1, 8, 12, 16, 20, 24, 24, 30, 32])
            first = generator.choice([10 << 24, 192 << 24, 255 << 24]) | generator.getrandbits(24)
            prefix = ipaddress.IPv4Network((first >> 32 - length << 32 - length if length else 0, length))
        else:
            length = generator.choice([16, 32, 33, 48, 64, 96, 127, 128])
            first = generator.choice([0x2001, 0x2003, 0xFFFF]) << 112 | generator.getrandbits(20) << 92 | generator.getrandbits(92)
            prefix = ipaddress.IPv6Network((first >> 128 - length << 128 - length, length))
        found[str(prefix)] = generator.choice([1, 0, 2**32 - 1, generator.randrange(1, 70_000)])
    return list(found.items())


class Oracle:
    """Disjoint ranges of a family, each with the value of its longest prefix."""

    def __init__(self, routes, version):
        networks = sorted(((int(one.network_address), one.prefixlen, value) for one, value in routes if one.version == version))
        width = 32 if version == 4 else 128
        self.starts, self.ends, self.values = [], [], []
        open_, at = [], 0

        def close(until):
            nonlocal at
            while open_ and open_[-1][0] < until:
                end, value = open_.pop()
                self.put(at, end, value)
                at = max(at, end + 1)

        for first, length, value in networks:
            close(first)
            if open_:
                self.put(at, first - 1, open_[-1][1])
            at = max(at, first)
            open_.append((first + (1 << width - length) - 1, value))
        close(1 << width)
        self.addresses = sum(end - start + 1 for start, end in zip(self.starts, self.ends, strict=True))

    def put(self, start, end, value):
        if start > end:
            return
        if self.starts and self.ends[-1] == start - 1 and self.values[-1] == value:
            self.ends[-1] = end
            return
        self.starts.append(start)
        self.ends.append(end)
        self.values.append(value)

    def value(self, first, last):
        """Return the value of all addresses of a range, which is part of one of these."""
        at = bisect.bisect_right(self.starts, first) - 1
        assert at >= 0 and last <= self.ends[at], (first, last)
        return self.values[at]


def judge(database, routes, reader_program, is_small, options):
    """Compare all networks of a database."""
    try:
        import maxminddb
    except ImportError:
        print("SKIPPED maxminddb: pip install maxminddb")
        return
    routes = [(ipaddress.ip_network(prefix), value) for prefix, value in routes]
    oracles = {version: Oracle(routes, version) for version in (4, 6)}
    reader = maxminddb.open_database(str(database), maxminddb.MODE_MMAP_EXT)
    metadata = reader.metadata()
    wide = metadata.ip_version == 6
    assert wide == (bool(oracles[6].starts) or "--aliases" in options), metadata
    if "--database-type" in options:
        assert metadata.database_type == options[options.index("--database-type") + 1]
    else:
        assert "ASN" in metadata.database_type, metadata.database_type
    covered = {4: 0, 6: 0}
    networks = 0
    asked, expected = [], []
    for network, record in reader:
        version, first, last = network.version, int(network.network_address), int(network.broadcast_address)
        if version == 6 and wide and first >> 32 == 0 and network.prefixlen >= 96:
            version = 4
        value = oracles[version].value(first, last)
        assert record == {ASN: value}, (network, record, value)
        covered[version] += last - first + 1
        networks += 1
        kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
        length = network.prefixlen + (96 if wide and network.version == 4 else 0)
        for address in (first, last) if first != last else (first,):
            asked.append(str(kind(address)))
            expected.append(f"{length} {value}")
    for version in (4, 6):
        assert covered[version] == oracles[version].addresses, (version, covered[version], oracles[version].addresses)
    # Addresses next to routes, where there is none.
    misses = [str(ipaddress.IPv4Address(end + 1)) for end, start in zip(oracles[4].ends, oracles[4].starts[1:], strict=False) if end + 1 < start]
    for address in misses[:100_000]:
        assert reader.get(address) is None, address
    if "--aliases" in options:
        for start, value in itertools.islice(zip(oracles[4].starts, oracles[4].values, strict=True), 10_000):
            for address in (0xFFFF << 32 | start, 0x2002 << 112 | start << 80):
                assert reader.get(str(ipaddress.IPv6Address(address))) == {ASN: value}, hex(address)
    in_python = maxminddb.open_database(str(database), maxminddb.MODE_MMAP)
    count = len(asked) if is_small else IN_PYTHON
    for address, line in itertools.islice(zip(asked, expected, strict=True), count):
        found, length = in_python.get_with_prefix_len(address)
        if wide and ":" not in address:
            length += 96
        assert f"{length} {found[ASN]}" == line, (address, found, length, line)
    if reader_program:
        lines = "".join(f"{address}\n" for address in asked + misses[:100_000])
        said = subprocess.run([reader_program, database, ASN], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(said) == len(asked) + len(misses[:100_000])
        for address, found, line in zip(asked, said, expected, strict=False):
            assert found == line, (address, found, line)
        assert all(line.endswith(" -") for line in said[len(asked):])
    print(f"ok {networks} networks of {len(routes)} prefixes, {metadata.record_size} bits, {' '.join(options)}", flush=True)


# In a process of its own: what a process starts is said to have taken the memory of the one that starts it, at least.
MEASURED = """
import json, os, resource, subprocess, sys, time
begin = time.monotonic()
code = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([code, time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000]))
"""


def convert(fibula, table, database, options):
    """Convert, and return seconds, processor seconds and megabytes."""
    command = [fibula, "table", "convert", "-q", table, "--to", "mmdb", *options, "-o", database]
    said = subprocess.run([sys.executable, "-c", MEASURED, *map(str, command)], capture_output=True, text=True, check=True).stdout
    code, *cost = json.loads(said)
    assert code == 0, command
    return cost


def long_records(fibula, folder, count, bits):
    """Check a table whose records are so long that places need more bits: every prefix has a text of its own, of a thousand letters."""
    try:
        import maxminddb
    except ImportError:
        print("SKIPPED maxminddb: pip install maxminddb")
        return
    table, database = folder / "long.csv", folder / "long.mmdb"

    def text(row):
        return f"{row:08}" + "abcdefgh" * 124

    with open(table, "w") as file:
        file.write("prefix,note\n")
        for row in range(count):
            file.write(f"{10 + (row >> 16)}.{row >> 8 & 255}.{row & 255}.0/24,{text(row)}\n")
    convert(fibula, table, database, ["--value", "note"])
    reader = maxminddb.open_database(str(database), maxminddb.MODE_MMAP_EXT)
    assert reader.metadata().record_size == bits, reader.metadata().record_size
    rows = 0
    for row, (network, record) in enumerate(reader):
        assert record == {"note": text(row)} and network.prefixlen == 24, network
        rows += 1
    assert rows == count
    for path in (table, database):
        path.unlink()
    print(f"ok {count} long records, {bits} bits", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fibula")
    parser.add_argument("tables", nargs="*", type=pathlib.Path)
    parser.add_argument("--reader", help="the program that mmdb.c becomes")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--record", type=pathlib.Path)
    wanted = parser.parse_intermixed_args()
    if not wanted.reader:
        print("SKIPPED libmaxminddb: no program is given")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        table, database = folder / "table.csv", folder / "table.mmdb"

        def run(routes, options, is_small):
            with open(table, "w") as file:
                file.write("prefix,asn\n")
                file.writelines(f"{prefix},{value}\n" for prefix, value in routes)
            cost = convert(wanted.fibula, table, database, ["--value", "asn:u32", *options])
            judge(database, routes, wanted.reader, is_small, options)
            return cost

        if not wanted.tables:
            for seed, (count, options) in enumerate([
                (1, []), (3000, []), (1000, ["--aliases"]), (1000, ["--database-type", "GeoLite2-ASN"]), (3000, ["--aliases", "--database-type", "x"]),
            ]):  # fmt: skip
                routes = random_table(seed, count)
                if "--aliases" in options:
                    routes = [(prefix, value) for prefix, value in routes if not prefix.startswith("::ffff")]
                run(routes, options, True)
                run([(prefix, value) for prefix, value in routes if ":" not in prefix], options, True)
            long_records(wanted.fibula, folder, 20_000, 28)
            if wanted.large:
                long_records(wanted.fibula, folder, 280_000, 32)
            return
        routes = list(read(wanted.tables))
        run(routes, [], False)
        if wanted.record:
            # The same routes as a compiled table, which is how they are there as a rule.
            compiled = folder / "table.fibula"
            subprocess.run([wanted.fibula, "compile", "-q", table, "--value", "asn:u32", "--routes", "-o", compiled], check=True)
            rows = {}
            for kind, source in [("csv", table), ("compiled", compiled)]:
                value = ["--value", "asn:u32"] if kind == "csv" else ["--value", "asn"]
                rows[kind] = [dict(zip(["wall", "processor", "megabytes"], (round(one, 2) for one in convert(wanted.fibula, source, database, value)), strict=True)) for _ in range(3)]
            record = {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "machine": next((line.split(": ")[1] for line in open("/proc/cpuinfo").read().splitlines() if line.startswith("model name")), platform.machine()),
                "load": round(os.getloadavg()[0], 2),
                "tables": [path.name for path in wanted.tables],
                "prefixes": len(routes),
                "bytes": database.stat().st_size,
                "seconds and megabytes": rows,
            }
            text = json.dumps(record, indent=1) + "\n"
            wanted.record.parent.mkdir(parents=True, exist_ok=True)
            wanted.record.write_text(text)
            print(text, end="")


if __name__ == "__main__":
    sys.exit(main())
