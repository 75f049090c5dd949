#!/usr/bin/env python3
"""Counts what the files of a data folder say with readers that are not ours, and holds ours against them.

readers.py FIBULA DATA RECORD --values [NAME...]
                                         the routes of all peers that each MRT file (or those named) ends with: their origin ASes and
                                         communities are those that mrtparse reads
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
# Routes that mrtparse does not read: the message has a prefix whose host bits spill into the next byte.
UNREAD = {"edge-nlri-trailing-bits.gz": 1}
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


def named(value):
    """The number and the name that mrtparse gives as {number: name}; numbers are texts."""
    return next(iter(value.items())) if isinstance(value, dict) else (value, "")


def segments(attribute):
    return [(named(segment["type"])[1], segment["value"]) for segment in attribute]


def length(path):
    """As route selection counts a path (RFC 4271, 9.1.2.2; RFC 5065, 5.3)."""
    return sum(len(numbers) if kind == "AS_SEQUENCE" else kind == "AS_SET" for kind, numbers in path)


def merged(attributes):
    """AS_PATH, with the numbers that AS4_PATH knows better (RFC 6793, 4.2.3)."""
    path, four = (segments(attributes.get(name, [])) for name in ("AS_PATH", "AS4_PATH"))
    keep = length(path) - length(four)
    if not four or keep < 0:
        return path
    before = []
    for kind, numbers in path:
        if keep <= 0:
            break
        if kind == "AS_SEQUENCE":
            before.append((kind, numbers[:keep]))
            keep -= len(numbers)
        else:
            before.append((kind, numbers))
            keep -= kind == "AS_SET"
    return before + four


def origin(path):
    if not path or path[-1][0] not in ("AS_SEQUENCE", "AS_SET") or not path[-1][1]:
        return ""
    kind, numbers = path[-1]
    return numbers[-1] if kind == "AS_SEQUENCE" else ",".join(numbers)


WELL_KNOWN = {"NO_EXPORT": "65535:65281", "NO_ADVERTISE": "65535:65282", "NO_EXPORT_SUBCONFED": "65535:65283", "NO_PEER": "65535:65284"}


def said(listed):
    """The attributes by name, the first of each, as a route has them: the origin and the communities."""
    attributes = {}
    for attribute in listed:
        attributes.setdefault(named(attribute["type"])[1], attribute.get("value"))
    communities = [WELL_KNOWN.get(one, one) for name in ("COMMUNITY", "LARGE_COMMUNITY") for one in attributes.get(name) or []]
    return origin(merged(attributes)), tuple(sorted(communities)), attributes


def shown(prefix, bits):
    return str(ipaddress.ip_network(f"{prefix}/{bits}", strict=False))


def final_by_mrtparse(path):
    """The routes that a file ends with: by prefix, peer and path identifier, their origin and communities."""
    import mrtparse

    routes, peers = {}, []
    with tempfile.NamedTemporaryFile() as plain:
        plain.write(content(path))
        plain.flush()
        for entry in mrtparse.Reader(plain.name):
            data = entry.data
            kind, subtype = named(data["type"])[1], named(data["subtype"])[1]
            if "peer_entries" in data:
                peers = [(one["peer_ip"], one["peer_as"]) for one in data["peer_entries"]]
            elif kind == "TABLE_DUMP_V2" and "UNICAST" in subtype:
                for rib in data.get("rib_entries", []):  # none in a record that is cut
                    key = (shown(data["prefix"], data["length"]), peers[rib["peer_index"]], rib.get("path_id"))
                    routes[key] = said(rib["path_attributes"])[:2]
            elif kind == "TABLE_DUMP":
                key = (shown(data["prefix"], data["length"]), (data["peer_ip"], data["peer_as"]), None)
                routes[key] = said(data["path_attributes"])[:2]
            elif kind.startswith("BGP4MP"):
                peer = (data.get("peer_ip"), data.get("peer_as"))
                if "old_state" in data:
                    if int(named(data["old_state"])[0]) == 6 != int(named(data["new_state"])[0]):
                        routes = {key: value for key, value in routes.items() if key[1] != peer}
                    continue
                message = data.get("bgp_message", {})
                origin_as, communities, attributes = said(message.get("path_attributes", []))
                reach, unreach = (attributes.get(name) or {} for name in ("MP_REACH_NLRI", "MP_UNREACH_NLRI"))
                unicast = lambda part: int(named(part.get("safi", {1: ""}))[0]) == 1
                gone = message.get("withdrawn_routes", []) + (unreach.get("withdrawn_routes", []) if unicast(unreach) else [])
                new = message.get("nlri", []) + (reach.get("nlri", []) if unicast(reach) else [])
                for route in gone:
                    routes.pop((shown(route["prefix"], route["length"]), peer, route.get("path_id")), None)
                for route in new:
                    routes[(shown(route["prefix"], route["length"]), peer, route.get("path_id"))] = (origin_as, communities)
    return routes


def final_by_us(path):
    out = subprocess.run(
        [fibula, "route", "show", "-q", "--table", path, "--all-peers", "--include-sub", "--value", "origin-as,communities", "--format", "json-line",
         "0.0.0.0/0", "::/0"], capture_output=True, text=True
    ).stdout
    numbers = {"no-export": "65535:65281", "no-advertise": "65535:65282", "no-export-sub-confed": "65535:65283", "nopeer": "65535:65284"}
    routes = collections.Counter()
    for line in out.splitlines():
        row = json.loads(line)
        communities = tuple(sorted(numbers.get(one, one) for one in (row["communities"] or "").split()))
        origin_as = "" if row["origin_as"] is None else str(row["origin_as"])
        # A daemon's own routes have no peer here.
        peer = row["peer"] or ("::" if ":" in row["prefix"] else "0.0.0.0")
        routes[(row["prefix"], peer_address(peer), str(row["peer_as"] or 0), origin_as, communities)] += 1
    return routes


def peer_address(text):
    """OpenBGPD writes addresses of IPv4 into fields of IPv6, at their beginning."""
    address = ipaddress.ip_address(text)
    packed = address.packed
    return str(ipaddress.ip_address(packed[:4]) if len(packed) == 16 and any(packed[:4]) and not any(packed[4:]) else address)


def compare_values(path):
    theirs = collections.Counter()
    same = os.path.join(os.path.dirname(path), SAME_TABLE.get(os.path.basename(path), os.path.basename(path)))
    for (prefix, (address, asn), _), (origin_as, communities) in final_by_mrtparse(same).items():
        theirs[(prefix, peer_address(address), asn, origin_as, communities)] += 1
    mine = final_by_us(path)
    if path != same:
        # That dump names the daemon's own address where the other has the peer's.
        without = lambda rows: collections.Counter((row[0], *row[2:]) for row in rows.elements())
        mine, theirs = without(mine), without(theirs)
    for label, more in (("ours  ", mine - theirs), ("theirs", theirs - mine)):
        for row in list(more)[:3]:
            print(f"  {label} {row}")
    return sum(theirs.values()), sum((mine - theirs).values()) + sum((theirs - mine).values())


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
if "--values" in sys.argv:
    named_files = sys.argv[sys.argv.index("--values") + 1 :]
    for folder, name, path in files():
        if folder != "mrt" or (named_files and name not in named_files):
            continue
        routes, differing = compare_values(path)
        good = differing == UNREAD.get(name, 0)
        wrong += not good
        print(f"{folder}/{name}: {routes} routes of all peers by mrtparse, {differing} differ: {'ok' if good else 'DIFFERENT'}", flush=True)
elif "--record" in sys.argv:
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
