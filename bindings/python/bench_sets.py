#!/usr/bin/env python3
"""Measures sets of two lists of texts: how long they take to be read and subtracted, and how much memory.

    python bindings/python/bench_sets.py TABLE.txt.xz [--record records/python/MACHINE/sets.json] [--prefixes 850000] [--runs 7]

TABLE is any table that `fibula.Table.read` reads. The lists are two random choices of its prefixes, from a seed, in random order; a table that is
smaller is filled up with prefixes of 32 bits. Each run is in a process of its own: seconds are those from two lists of `str` to the set of what only
the first has, and memory is how far the process grew above what it had with the lists. Answers are compared with those of Python's own sets.
"""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import fibula
from bench import place


def kilobytes(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name + ":"))


def measured(path: str, kind: str) -> dict[str, Any]:
    """Make two sets of the lists in a file, and subtract. In a process of its own."""
    with open(path) as file:
        one, two = (line.split() for line in file)
    made = {"AddressSet": fibula.AddressSet, "PrefixSet": fibula.PrefixSet}[kind]
    gc.collect()
    # The peak so far is forgotten, as proc(5) has it.
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = kilobytes("VmRSS")
    wall, processor = time.perf_counter(), time.process_time()
    left = made(one) - made(two)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    grown = kilobytes("VmHWM") - before
    if kind == "PrefixSet":
        assert set(left.texts()) == set(one) - set(two), "answers differ"
    else:
        wanted = made(one)
        taken = made(two)
        assert left.isdisjoint(taken) and (left | (wanted & taken)) == wanted, "answers differ"
    return {"seconds": wall, "processor_seconds": processor, "peak_mb": grown * 1024 / 1e6, "left": len(left)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--prefixes", type=int, default=850_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--one", metavar="KIND", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.one:
        print(json.dumps(measured(str(wanted.table), wanted.one)))
        return

    texts = [str(prefix) for prefix in fibula.Table.read(wanted.table)]
    chance = random.Random(1)
    while len(texts) < wanted.prefixes:
        texts.append(f"{chance.randrange(1, 224)}.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(256)}/32")
    with tempfile.NamedTemporaryFile("w", suffix=".lists") as lists:
        for _ in range(2):
            lists.write(" ".join(chance.sample(texts, wanted.prefixes)) + "\n")
        lists.flush()
        runs: dict[str, list[dict[str, Any]]] = {"AddressSet": [], "PrefixSet": []}
        for _ in range(wanted.runs):
            for kind, of in runs.items():
                command = [sys.executable, __file__, lists.name, "--one", kind]
                of.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))

    record = {
        **place(wanted.table),
        "prefixes": wanted.prefixes,
    }
    for kind, of in runs.items():
        record[kind] = {
            name: {"median": statistics.median(numbers), "min": min(numbers), "max": max(numbers)}
            for name in of[0]
            for numbers in [[run[name] for run in of]]
        }
        row = record[kind]
        print(
            f"{kind:12} {row['seconds']['median']:.3f} s ({row['seconds']['min']:.3f} to {row['seconds']['max']:.3f}), "
            f"of the processor {row['processor_seconds']['median']:.3f} s, {row['peak_mb']['median']:.1f} MB, {row['left']['median']:.0f} left"
        )
    if wanted.record:
        wanted.record.parent.mkdir(parents=True, exist_ok=True)
        wanted.record.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
