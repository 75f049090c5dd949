#!/usr/bin/env python3
"""Checks the answers of `fibula lookup` with every engine against an independent longest-prefix match.

Usage: crosscheck.py FIBULA TABLE [COUNT]

Reads TABLE (`prefix next-hop` a line, plain or .xz) into one dictionary a prefix length. Makes COUNT addresses a family
(60,000 by default): the first and last address of random prefixes, their neighbours, random addresses inside prefixes
and anywhere. Runs FIBULA once without an engine and once with each that `fibula engines` lists for the family,
and compares prefix and next hop of every line of CSV. Engines that walk all routes get a sample of the addresses.
A table beyond what an engine's format can hold is reported as SKIPPED. Shares no code with Fibula. Exit code 1 when
an answer differs or an engine fails.
"""

import csv
import json
import lzma
import os
import random
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Addresses for engines that compare each of them with every route.
SAMPLE = 100
WALKS_ALL_ROUTES = {"linear"}

FAMILIES = {4: (socket.AF_INET, 32, "ipv4"), 6: (socket.AF_INET6, 128, "ipv6")}


def number(text, version):
    return int.from_bytes(socket.inet_pton(FAMILIES[version][0], text), "big")


def text(key, version):
    family, bits, _ = FAMILIES[version]
    return socket.inet_ntop(family, key.to_bytes(bits // 8, "big"))


def read(path):
    """The table as {length: {network as integer: (prefix as text, next hop)}} for each family."""
    tables = {4: {}, 6: {}}
    opened = lzma.open(path, "rt") if path.endswith(".xz") else open(path)
    with opened as lines:
        for line in lines:
            prefix, next_hop = line.split()
            network, length = prefix.split("/")
            version = 6 if ":" in network else 4
            tables[version].setdefault(int(length), {})[number(network, version)] = (prefix, next_hop)
    return tables


def answer(table, bits, address):
    """The longest match, by trying every length."""
    for length in sorted(table, reverse=True):
        match = table[length].get(address >> (bits - length) << (bits - length))
        if match:
            return match
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


def judge(fibula, path, engine, right):
    """One run of the command: how many addresses it was given, and what is wrong; or why the table is beyond it."""
    options = ["--engine", engine] if engine else []
    if engine in WALKS_ALL_ROUTES:
        right = right[:: max(1, len(right) // SAMPLE)]
    command = [fibula, "lookup", "--quiet", "--table", path, "--format", "csv", *options]
    addresses = "\n".join(row[0] for row in right) + "\n"
    run = subprocess.run(command, input=addresses, capture_output=True, text=True)
    if run.returncode != 0:
        if run.returncode == 3 and "limit" in run.stderr:
            return 0, [], run.stderr.strip()
        return 0, [f"exit code {run.returncode}: {run.stderr.strip()}"], None
    rows = list(csv.reader(run.stdout.splitlines()))
    if rows[0] != ["address", "prefix", "next_hop"] or len(rows) != len(right) + 1:
        return 0, [f"{len(rows)} lines for {len(right)} addresses, header {rows[0]}"], None
    wrong = [f"{row} where {expected} is right" for row, expected in zip(rows[1:], right) if row != expected]
    return len(right), wrong, None


def main():
    fibula, path = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60_000
    listed = json.loads(subprocess.run([fibula, "engines", "--json"], capture_output=True, check=True).stdout)
    rng = random.Random(20)
    failed = False
    for version, table in read(path).items():
        if not table:
            continue
        _, bits, family = FAMILIES[version]
        keys = probes(table, bits, count, rng)
        right = [[text(key, version), *answer(table, bits, key)] for key in keys]
        # None is what the command answers by where no engine is named.
        engines = [None, *(one["name"] for one in listed if family in one["families"])]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            results = pool.map(lambda engine: judge(fibula, path, engine, right), engines)
            for engine, (checked, wrong, refused) in zip(engines, results):
                name = f"{os.path.basename(path)}, {family}, {engine or 'no --engine'}"
                if refused:
                    print(f"SKIPPED {name}: {refused}")
                    continue
                print(f"{name}: {checked} addresses, {len(wrong)} wrong", flush=True)
                for line in wrong[:5]:
                    print(f"  {line}")
                failed |= bool(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
