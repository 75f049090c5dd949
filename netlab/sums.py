#!/usr/bin/env python3
"""The random choices of a soak, and its sums.

sums.py fault SEED NUMBER     prints a fault: kind, half, and the routes FIRST, LAST and SPLIT of its speaker
sums.py next FILE             prints the number of the fault that comes next
sums.py add FILE SEED NEXT SECONDS JUDGED KINDS RSS COMMIT
                              adds a run; exits 1 if the router's memory grows: RSS is its kilobytes after each fault
"""
import collections
import json
import os
import platform
import random
import statistics
import sys

# Changes are more frequent than faults.
KINDS = {"changes": 6, "peer": 2, "daemon": 2, "zebra": 1, "cut": 2, "link": 2, "flush": 2, "objects": 1, "garbage": 1, "reload": 1}
FRR_ALONE = {"zebra", "cut", "objects"}


def fault(seed, number):
    chance = random.Random(f"{seed}:{number}")
    kind = chance.choices(list(KINDS), KINDS.values())[0]
    half = 0 if kind in FRR_ALONE else chance.randrange(2)
    first = chance.randrange(0, 300)
    last = chance.randrange(600, 900)
    print(kind, half, first, last, chance.randrange(first, last + 2))


def load(file):
    if not os.path.exists(file):
        return {}
    with open(file) as f:
        return json.load(f)


def add(file, seed, following, seconds, judged, kinds, rss, commit):
    sums = load(file) or {"seed": int(seed), "next": 0, "seconds": 0, "runs": 0, "faults": {}, "packets": {}, "memory_kib": []}
    with open(judged) as f:
        for name, count in json.loads(f.readline()).items():
            sums["packets"][name] = sums["packets"].get(name, 0) + count
    sums["faults"] = dict(sorted((collections.Counter(sums["faults"]) + collections.Counter(kinds.split())).items()))
    sums.update(next=int(following), seconds=sums["seconds"] + int(seconds), runs=sums["runs"] + 1, commit=commit, kernel=platform.release())
    rss = list(map(int, rss.split()))
    # A tenth of the faults warms the allocator up; then the middle values of the first and the last quarter are compared.
    warm = rss[len(rss) // 10 :]
    quarter = max(1, len(warm) // 4)
    begin, end = statistics.median(warm[:quarter]), statistics.median(warm[-quarter:])
    sums["memory_kib"].append({"faults": len(rss), "begin": begin, "end": end, "most": max(rss)})
    with open(file + ".new", "w") as f:
        json.dump(sums, f, indent=2)
        f.write("\n")
    os.replace(file + ".new", file)
    return 1 if end > begin * 1.05 + 2048 else 0


command, *rest = sys.argv[1:]
if command == "next":
    print(load(rest[0]).get("next", 0))
else:
    sys.exit({"fault": fault, "add": add}[command](*rest))
