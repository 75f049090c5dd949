#!/usr/bin/env python3
"""Counts what the files of a data folder say with readers that are not ours, and holds ours against them.

readers.py FIBULA DATA RECORD            every line of RECORD is what the reader it names counts now, and what
                                         `fibula peers` counts; routes and withdrawals are the same ones as bgpdump's
readers.py FIBULA DATA RECORD --record   writes RECORD

RECORD holds counts only: the file, the reader, announcements and withdrawals of IPv4 and IPv6. bgpdump reads MRT;
mrtparse those files whose undeclared path identifiers bgpdump takes for prefixes; text is counted here. One file no
other reader knows (BGP4MP_ENTRY, OpenBGPD's "table-mp"): it is the table of the same daemon's TABLE_DUMP_V2.
"""
import bz2, collections, gzip, ipaddress, json, lzma, os, subprocess, sys, tempfile

fibula, data, record = sys.argv[1:4]
BY_MRTPARSE = {"daemon-bird_bgp.xz", "daemon-bird6_bgp.xz"}
SAME_TABLE = {"daemon-openbgpd_rib_table-mp.xz": "daemon-openbgpd_rib_table-v2.xz"}
# Lines in which bgpdump errs: an AGGREGATOR of 8 bytes among AS numbers of 2, which it reads as one of 6.
DIFFERING = {"daemon-openbgpd_rib_table.xz": 1}
KEYS = ("a4", "a6", "w4", "w6")


def content(path):
    """What a file holds, up to where it is cut."""
    raw = open(path, "rb").read()
    decoder = {".gz": lambda: None, ".bz2": bz2.BZ2Decompressor, ".xz": lzma.LZMADecompressor}[os.path.splitext(path)[1]]
    return gzip.decompress(raw) if path.endswith(".gz") else decoder().decompress(raw)


def family(prefix):
    return "6" if ":" in prefix else "4"


def bgpdump_lines(path):
    with tempfile.NamedTemporaryFile() as plain:
        plain.write(content(path))
        plain.flush()
        out = subprocess.run(["bgpdump", "-m", plain.name], capture_output=True, text=True).stdout
    return [line.split("|") for line in out.splitlines()]


def by_bgpdump(path):
    counts = collections.Counter()
    for fields in bgpdump_lines(path):
        if fields[2] in "ABW":
            counts[("w" if fields[2] == "W" else "a") + family(fields[5])] += 1
    return counts


def by_mrtparse(path):
    import mrtparse

    counts = collections.Counter()
    with tempfile.NamedTemporaryFile() as plain:
        plain.write(content(path))
        plain.flush()
        for entry in mrtparse.Reader(plain.name):
            message = entry.data.get("bgp_message", {})
            for routes, letter in (("nlri", "a"), ("withdrawn_routes", "w")):
                for route in message.get(routes, []):
                    counts[letter + family(route["prefix"])] += 1
            for attribute in message.get("path_attributes", []):
                for routes, letter in (("nlri", "a"), ("withdrawn_routes", "w")):
                    value = attribute.get("value")
                    for route in value.get(routes, []) if isinstance(value, dict) else []:
                        counts[letter + family(route["prefix"])] += 1
    return counts


def by_lines(path):
    counts = collections.Counter()
    for line in content(path).decode().splitlines():
        _, letter, prefix, *_ = line.split()
        counts[letter + family(prefix)] += 1
    return counts


def reader(folder, name):
    if folder == "updates":
        return "python", by_lines
    if name in BY_MRTPARSE:
        return "mrtparse", by_mrtparse
    return "bgpdump", by_bgpdump


def ours(path):
    out = subprocess.run([fibula, "peers", path, "--json", "--quiet"], capture_output=True, text=True).stdout
    counts = collections.Counter()
    for peer in json.loads(out or "[]"):
        for key, field in zip(KEYS, ("ipv4", "ipv6", "ipv4_withdrawn", "ipv6_withdrawn")):
            counts[key] += peer[field]
    return counts


def normal(fields):
    """What both say alike of a line: who, what, and the attributes that -m has."""
    fields = list(fields)
    fields[0] = fields[0].replace("TABLE_DUMP2", "TABLE_DUMP")
    fields[3] = str(ipaddress.ip_address(fields[3]))
    if len(fields) > 8:
        hop = 9 if "_AP" in fields[0] else 8
        if fields[hop] == "255.255.255.255":
            fields[hop] = fields[3]
        fields[hop] = str(ipaddress.ip_address(fields[hop]))
    prefix = ipaddress.ip_network(fields[5], strict=False)
    fields[5] = str(prefix)
    return "|".join(fields)


def compare_lines(path):
    """Line by line, every attribute."""
    out = subprocess.run(
        [fibula, "table", "convert", path, "--to", "bgpdump", "--all-peers", "--quiet"], capture_output=True, text=True
    ).stdout
    mine = [normal(line.split("|")) for line in out.splitlines()]
    theirs = [normal(fields) for fields in bgpdump_lines(path) if fields[2] != "STATE"]
    differing = sum(a != b for a, b in zip(mine, theirs)) + abs(len(mine) - len(theirs))
    for a, b in zip(mine, theirs):
        if a != b and os.path.basename(path) not in DIFFERING:
            print(f"  ours   {a}\n  theirs {b}")
            break
    return len(mine), differing


def files():
    for folder in ("mrt", "updates"):
        for name in sorted(os.listdir(os.path.join(data, folder))):
            yield folder, name, os.path.join(data, folder, name)


wrong = 0
if "--record" in sys.argv:
    with open(record, "w") as out:
        out.write("# Made by crates/fibula-feed/tests/readers.py --record: counts, and who counted.\n")
        out.write("file\treader\t" + "\t".join(KEYS) + "\n")
        for folder, name, path in files():
            if name in SAME_TABLE:
                who, counts = "bgpdump, of " + SAME_TABLE[name], by_bgpdump(os.path.join(data, folder, SAME_TABLE[name]))
            else:
                who, count = reader(folder, name)
                counts = count(path)
            out.write("\t".join([f"{folder}/{name}", who] + [str(counts[key]) for key in KEYS]) + "\n")
else:
    recorded = {}
    for line in open(record):
        if not line.startswith(("#", "file\t")):
            name, who, *counts = line.rstrip("\n").split("\t")
            recorded[name] = (who, [int(count) for count in counts])
    for folder, name, path in files():
        who, expected = recorded.pop(f"{folder}/{name}")
        mine = [ours(path)[key] for key in KEYS]
        lines, differing = (0, 0)
        if who == "bgpdump":
            theirs = [by_bgpdump(path)[key] for key in KEYS]
            lines, differing = compare_lines(path)
        elif who == "python":
            theirs = [by_lines(path)[key] for key in KEYS]
        else:
            theirs = expected
        good = mine == expected == theirs and differing == DIFFERING.get(name, 0)
        wrong += not good
        verdict = "ok" if good else f"DIFFERENT: ours {mine}, recorded {expected}, now {theirs}"
        print(f"{folder}/{name}: {sum(mine)} by {who}, {lines} lines, {differing} differ: {verdict}")
    wrong += len(recorded)
sys.exit(wrong > 0)
