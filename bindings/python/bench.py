#!/usr/bin/env python3
"""Measures the package against itself and against the packages that people have, and writes a record.

    python bindings/python/bench.py TABLE.txt.xz [--record records/python/MACHINE/lookups.json] [--rows 10000000] [--pairs 7]
        [--c-library target/library/libfibula.so]
    python bindings/python/bench.py TABLE.txt.xz --drop-ins 3 [--record records/python/MACHINE/drop-ins.json]

TABLE is any table that `fibula.Table.read` reads, for example an origin AS for each prefix. Addresses are a random one of a random prefix, from a
seed. Rates are millions of addresses a second of processor time of the process, of the median of interleaved runs: two columns that are compared are
measured in turn, and their ratio is the median of the ratios of the pairs. Answers are compared first.

With --c-library, columns of integers and of Arrow texts are looked up by the C library too, in this process and in the same table file: its calls are
those of the crates `fibula` and `fibula-column` and nothing else. With --drop-ins, each drop-in and its original are filled and emptied instead, in
processes of their own, and their memory is how far a process grew.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import gc
import ipaddress
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import fibula


def processor_rate(rows: int, run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return rows / (time.process_time() - start) / 1e6


class CLibrary:
    """Lookups of the C library, over a table file."""

    def __init__(self, library: pathlib.Path, table: pathlib.Path) -> None:
        self.library = ctypes.CDLL(str(library.resolve()))
        self.table = ctypes.c_void_p()
        assert self.library.fibula_table_open(os.fsencode(table), None, ctypes.byref(self.table), None) == 0, "the C library cannot open the table"
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.library.fibula_lookup4_bulk.argtypes = [pointer, pointer, size, ctypes.c_uint32, pointer, size]
        self.library.fibula_lookup_arrow_ids.argtypes = [pointer, pointer, pointer, ctypes.c_uint32, ctypes.c_uint32, pointer, pointer, pointer]
        self.library.fibula_lookup_arrow_ids.restype = ctypes.c_int64

    def integers(self, addresses: Any, out: Any) -> None:
        done = self.library.fibula_lookup4_bulk(self.table, addresses.ctypes.data, 0, 0, out.ctypes.data, len(addresses))
        assert done == 0

    def texts(self, array: Any) -> Any:
        import pyarrow as pa

        # Structures of Arrow's C data interface: 72 and 80 bytes.
        parts = [ctypes.create_string_buffer(bytes_) for bytes_ in (72, 80, 72, 80)]
        schema, held, ids_schema, ids = map(ctypes.addressof, parts)
        array._export_to_c(held, schema)
        assert self.library.fibula_lookup_arrow_ids(self.table, schema, held, 1, 0, ids_schema, ids, None) == 0
        pa.Array._import_from_c(held, schema)
        return pa.Array._import_from_c(ids, ids_schema)


def resident() -> int:
    gc.collect()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) * 1024


def grown(kind: str, path: str) -> dict[str, float]:
    """Fill one of the maps with the prefixes of a file, and empty it. In a process of its own."""
    package, _, whose = kind.partition(" ")
    with open(path) as file:
        text = file.read()
    entries = [(prefix, int(value)) for prefix, value in (line.split() for line in text.splitlines())]
    if package != "pyasn":
        del text
    module = __import__(package if whose == "original" else f"fibula.{package}", fromlist=["*"])
    before, start = resident(), time.process_time()
    if package == "pytricia":
        made = module.PyTricia()
        for prefix, value in entries:
            made[prefix] = value
    elif package == "radix":
        made = module.Radix()
        for prefix, value in entries:
            made.add(prefix).data["value"] = value
    else:
        made = module.pyasn(None, ipasn_string=text)
    seconds = time.process_time() - start
    row = {"fill_seconds": seconds, "megabytes": (resident() - before) / 1e6}
    get = getattr(made, {"pytricia": "get", "radix": "search_best", "pyasn": "lookup"}[package])
    for prefix, _ in entries[:: max(1, len(entries) // 1_000_000)]:
        get(prefix.partition("/")[0])
    row["megabytes_after_lookups"] = (resident() - before) / 1e6
    if package != "pyasn":
        start = time.process_time()
        for prefix, _ in entries:
            made.delete(prefix)
        row["empty_seconds"] = time.process_time() - start
    return row


def place(table: pathlib.Path) -> dict[str, Any]:
    """Return where and when a measurement is made."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": next((line.split(": ")[1] for line in open("/proc/cpuinfo").read().splitlines() if line.startswith("model name")), platform.machine()),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "version": fibula.__version__,
        "table": table.name,
    }


def fill_and_empty(table: pathlib.Path, rounds: int, record: pathlib.Path | None) -> None:
    """Measure the drop-ins and their originals, each in processes of its own, in turn."""
    read = fibula.Table.read(table)
    lines = [f"{prefix}\t{row % 60_000 + 1}\n" for row, prefix in enumerate(read) if prefix.prefixlen]
    random.Random(1).shuffle(lines)
    growth: dict[str, list[dict[str, float]]] = {}
    with tempfile.NamedTemporaryFile("w") as listed:
        listed.writelines(lines)
        listed.flush()
        for _ in range(rounds):
            for kind in [f"{module} {whose}" for module in ["pytricia", "radix", "pyasn"] for whose in ["original", "fibula"]]:
                command = [sys.executable, __file__, listed.name, "--grown", kind]
                row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                growth.setdefault(kind, []).append(row)
                print(f"{kind:24} " + ", ".join(f"{name} {number:.2f}" for name, number in row.items()), flush=True)
    medians = {kind: {name: statistics.median(row[name] for row in rows) for name in rows[0]} for kind, rows in growth.items()}
    if record:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps({**place(table), "routes": len(lines), "rounds": rounds, "drop-ins": medians}, indent=2) + "\n")


def maxmind(networks: int, generator: Any) -> tuple[bytes, list[str]]:
    """Return a database of so many networks with nested records, and addresses in them."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "tests"))
    import mmdb

    firsts = generator.choice(2**24, networks, replace=False)
    records = {}
    for at, first in enumerate(firsts):
        country = {"iso_code": f"{chr(65 + at % 26)}{chr(65 + at // 26 % 26)}", "names": {"en": f"Country {at % 200}", "de": f"Land {at % 200}"}}
        location = {"latitude": at % 180 / 2.0, "longitude": at % 360 / 2.0, "time_zone": f"Zone/{at % 40}"}
        records[ipaddress.IPv4Network((int(first) << 8, 24))] = {"country": country, "location": location, "asn": 64_500 + at % 5000}
    asked = generator.choice(firsts, 50_000).astype("uint32")
    texts = [str(ipaddress.IPv4Address((int(first) << 8) + at % 256)) for at, first in enumerate(asked)]
    return mmdb.database(records, version=6), texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--singles", type=int, default=200_000)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--c-library", type=pathlib.Path)
    parser.add_argument("--networks", type=int, default=50_000, help="of the MaxMind database")
    parser.add_argument("--drop-ins", type=int, metavar="ROUNDS", help="measure how the drop-ins are filled and emptied, and their memory, instead")
    parser.add_argument("--grown", metavar="KIND", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.grown:
        print(json.dumps(grown(wanted.grown, str(wanted.table))))
        return
    if wanted.drop_ins:
        fill_and_empty(wanted.table, wanted.drop_ins, wanted.record)
        return

    import numpy as np

    start = time.process_time()
    table = fibula.Table.read(wanted.table)
    read_seconds = time.process_time() - start
    column = next(iter(table.columns))
    prefixes = [prefix for prefix in table if prefix.version == 4]
    generator = np.random.default_rng(1)
    firsts = np.array([int(prefix.network_address) for prefix in prefixes], dtype="uint32")
    sizes = np.array([32 - prefix.prefixlen for prefix in prefixes], dtype="uint64")
    chosen = generator.integers(0, len(prefixes), wanted.rows)
    inside = generator.integers(0, 2**32, wanted.rows, dtype="uint64") >> (32 - sizes[chosen])
    addresses = (firsts[chosen] + inside).astype("uint32")
    out = np.empty_like(addresses)
    folder = tempfile.TemporaryDirectory()
    saved = pathlib.Path(folder.name, "table.fibula")
    table.save(saved)
    # As the C library has it.
    table = fibula.Table.open(saved)
    some = [str(ipaddress.IPv4Address(int(one))) for one in addresses[: wanted.singles]]
    few = addresses[:256].copy()
    few_out = np.empty_like(few)

    def each(call: Callable[[Any], Any]) -> Callable[[], None]:
        def run() -> None:
            for address in some:
                call(address)

        return run

    columns: dict[str, tuple[int, Callable[[], Any]]] = {
        "uint32, 10M rows": (wanted.rows, lambda: table.lookup_ids(addresses, out=out)),
        "uint32, calls of 256 rows": (256 * 2000, lambda: [table.lookup_ids(few, out=few_out) for _ in range(2000)]),
        "list of str": (wanted.singles, lambda: table.lookup_ids(some)),
        "lookup_id(str)": (wanted.singles, each(table.lookup_id)),
        "lookup(str)": (wanted.singles, each(table.lookup)),
    }
    try:
        import pyarrow as pa

        texts = pa.array(some * (1_000_000 // len(some) + 1))
        columns["Arrow string"] = (len(texts), lambda: table.lookup_ids(texts))
        columns["Arrow string to values"] = (len(texts), lambda: table.lookup_many(texts))
    except ImportError:
        print("SKIPPED Arrow: pyarrow is not installed")
        pa = None
    pairs: list[tuple[str, str]] = []
    if wanted.c_library:
        c = CLibrary(wanted.c_library, saved)
        c_out = np.empty_like(addresses)
        c.integers(addresses, c_out)
        assert (table.lookup_ids(addresses, out=out) == c_out).all(), "answers differ"
        columns["uint32, 10M rows, C"] = (wanted.rows, lambda: c.integers(addresses, c_out))
        pairs.append(("uint32, 10M rows", "uint32, 10M rows, C"))
        if pa is not None:
            assert c.texts(texts).equals(pa.array(table.lookup_ids(texts))), "answers differ"
            columns["Arrow string, C"] = (len(texts), lambda: c.texts(texts))
            pairs.append(("Arrow string", "Arrow string, C"))

    entries = [(str(prefix), table.get(prefix)) for prefix in prefixes]
    random.Random(1).shuffle(entries)
    rivals: dict[str, Callable[[str], Any]] = {}
    building: dict[str, float] = {}

    def built(name: str, make: Callable[[], Any]) -> Any:
        start = time.process_time()
        made = make()
        building[name] = time.process_time() - start
        return made

    def filled(tree: Any) -> Any:
        for prefix, value in entries:
            tree[prefix] = value
        return tree

    def added(tree: Any) -> Any:
        for prefix, value in entries:
            tree.add(prefix).data["value"] = value
        return tree

    from fibula.pyasn import pyasn as OurPyasn
    from fibula.pytricia import PyTricia
    from fibula.radix import Radix

    origins = "".join(f"{prefix}\t{index % 60_000 + 1}\n" for index, (prefix, _) in enumerate(entries) if not prefix.endswith("/0"))
    for name, module, ours, theirs in [
        ("pytricia get", "pytricia", lambda: filled(PyTricia()).get, lambda package: filled(package.PyTricia()).get),
        ("py-radix search_best", "radix", lambda: added(Radix()).search_best, lambda package: added(package.Radix()).search_best),
        ("pyasn lookup", "pyasn", lambda: OurPyasn(None, ipasn_string=origins).lookup, lambda package: package.pyasn(None, ipasn_string=origins).lookup),
    ]:
        try:
            package = __import__(module)
        except ImportError:
            print(f"SKIPPED {name}: {module} is not installed")
            continue
        rivals[f"{name}, original"] = built(f"{name}, original", lambda make=theirs, package=package: make(package))
        rivals[f"{name}, fibula"] = built(f"{name}, fibula", ours)
        pairs.append((f"{name}, fibula", f"{name}, original"))
    if "pytricia get, original" in rivals:
        get = rivals["pytricia get, original"]
        found = table.lookup_many(some)
        assert [get(address) for address in some] == found, "answers differ"
    try:
        import maxminddb
    except ImportError:
        print("SKIPPED maxminddb get: maxminddb is not installed")
    else:
        from fibula.maxminddb import open_database

        database = pathlib.Path(folder.name, "database.mmdb")
        bytes_, asked = maxmind(wanted.networks, generator)
        database.write_bytes(bytes_)
        ours, theirs = open_database(database), maxminddb.open_database(database)
        assert all(ours.get(address) == theirs.get(address) for address in asked[:5000]), "answers differ"
        for whose, reader in [("original", theirs), ("fibula", ours)]:
            columns[f"maxminddb get, {whose}"] = (len(asked), lambda reader=reader: [reader.get(address) for address in asked])
        pairs.append(("maxminddb get, fibula", "maxminddb get, original"))
        print(f"maxminddb's reader is of {type(theirs).__module__}")
    for name, call in rivals.items():
        columns[name] = (wanted.singles, each(call))
        # Maps that are looked up often without a change are compiled: measured is what a long run has.
        if name.endswith("fibula"):
            for _ in range(len(entries) // len(some) + 2):
                columns[name][1]()

    rates: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(wanted.pairs):
        for name, (rows, run) in columns.items():
            rates[name].append(processor_rate(rows, run))

    if "pytricia get, original" in rates:
        pairs += [(name, "pytricia get, original") for name in ["uint32, 10M rows", "lookup_id(str)", "lookup(str)"]]
    ratios = {
        f"{one} / {two}": statistics.median(a / b for a, b in zip(rates[one], rates[two], strict=True)) for one, two in pairs
    }
    opening = []
    for _ in range(50):
        start = time.perf_counter()
        fibula.Table.open(saved, mapped=True, verify=False)
        opening.append(time.perf_counter() - start)
    importing = []
    for _ in range(15):
        code = "import time; a = time.perf_counter(); import fibula; print(time.perf_counter() - a)"
        importing.append(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout))

    record = {
        **place(wanted.table),
        "routes": len(table),
        "engine": table.engines[0],
        "column": column,
        "rows": wanted.rows,
        "mlps": {name: {"median": statistics.median(all_), "min": min(all_), "max": max(all_)} for name, all_ in rates.items()},
        "ratios": ratios,
        "build_seconds": building,
        "read_seconds": read_seconds,
        "open_mapped_ms": 1000 * statistics.median(opening),
        "import_ms": 1000 * statistics.median(importing),
    }
    for name, row in record["mlps"].items():  # type: ignore[attr-defined]
        print(f"{name:32} {row['median']:9.2f} M/s ({row['min']:.2f} to {row['max']:.2f})")
    for name, ratio in ratios.items():
        print(f"{name:64} {ratio:9.1f}")
    print(f"open mapped {record['open_mapped_ms']:.3f} ms, import {record['import_ms']:.1f} ms, load {record['load']:.1f}")
    if wanted.record:
        wanted.record.parent.mkdir(parents=True, exist_ok=True)
        wanted.record.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
