#!/usr/bin/env python3
"""Measures the package against itself and against the packages that people have, and writes a record.

    python bindings/python/bench.py TABLE.txt.xz [--record records/python/MACHINE/lookups.json] [--rows 10000000] [--pairs 7]

TABLE is any table that `fibula.Table.read` reads, for example an origin AS for each prefix. Addresses are a random one of a random prefix, from a
seed. Rates are millions of addresses a second of processor time of the process, of the median of interleaved runs: two columns that are compared are
measured in turn, and their ratio is the median of the ratios of the pairs. Answers are compared first.
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import json
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import fibula


def processor_rate(rows: int, run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return rows / (time.process_time() - start) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--singles", type=int, default=200_000)
    parser.add_argument("--pairs", type=int, default=7)
    wanted = parser.parse_args()

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
    pairs: list[tuple[str, str]] = []
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
    saved = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"fibula-bench-{os.getpid()}"
    table.save(saved)
    opening = []
    for _ in range(50):
        start = time.perf_counter()
        fibula.Table.open(saved, mapped=True, verify=False)
        opening.append(time.perf_counter() - start)
    saved.unlink()
    importing = []
    for _ in range(15):
        code = "import time; a = time.perf_counter(); import fibula; print(time.perf_counter() - a)"
        importing.append(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout))

    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": next((line.split(": ")[1] for line in open("/proc/cpuinfo").read().splitlines() if line.startswith("model name")), platform.machine()),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "version": fibula.__version__,
        "table": wanted.table.name,
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
    for name, seconds in building.items():
        print(f"built: {name:32} {seconds:9.2f} s")
    print(f"open mapped {record['open_mapped_ms']:.3f} ms, import {record['import_ms']:.1f} ms, load {record['load']:.1f}")
    if wanted.record:
        wanted.record.parent.mkdir(parents=True, exist_ok=True)
        wanted.record.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
