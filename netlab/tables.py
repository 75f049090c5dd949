#!/usr/bin/env python3
"""Reads a table as KIND shows it, and prints a line a route: prefix, gateways and devices, or what it is instead.

KIND is `kernel` (ip -j route), `zebra` (vtysh, show ip route json), `zebra-text` (the same without json), `bird` (birdc show route
primary), `gobgp` (gobgp global rib -j; next hops alone) or `router` (fibula route show --format json-line). Several outputs may follow
each other. Link-local networks are left out, and those named after KIND, as the machine's own.
"""
import ipaddress
import json
import re
import sys


def documents(text):
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found, at = decoder.raw_decode(text, at)
        yield found


def ways(hops):
    return " ".join(sorted("%s@%s" % hop for hop in hops))


def kernel(text):
    best = {}
    for route in (route for routes in documents(text) for route in routes):
        dst = route["dst"]
        if dst == "default":
            dst = "::/0" if ":" in str(route.get("gateway", "")) else "0.0.0.0/0"
        if route.get("protocol") == "kernel":
            continue
        kind = route.get("type", "unicast")
        if kind == "unicast":
            hops = [w for w in route.get("nexthops") or [route] if "dead" not in w.get("flags", [])]
            kind = ways((w.get("gateway") or w.get("via", {}).get("host") or "-", w["dev"]) for w in hops)
        metric = route.get("metric", 0)
        if dst not in best or metric < best[dst][0]:
            best[dst] = (metric, kind)
    return {dst: leads for dst, (_, leads) in best.items()}


def zebra(text):
    found = {}
    for routes in documents(text):
        for dst, entries in routes.items():
            for entry in entries:
                if entry.get("selected") and entry["protocol"] not in ("connected", "local", "kernel"):
                    hops = [h for h in entry["nexthops"] if h.get("active") and not h.get("recursive")]
                    if hops and "unreachable" in hops[0]:
                        found[dst] = "blackhole" if hops[0].get("blackhole") else "unreachable"
                    else:
                        found[dst] = ways((h.get("ip", "-"), h["interfaceName"]) for h in hops)
    return found


def zebra_text(text):
    found, dst = {}, None
    for line in text.splitlines():
        route = re.match(r"([A-Z])>\S? +(\S+/\d+) \[", line)
        if route or not line.startswith(" "):
            dst = route.group(2) if route and route.group(1) not in "CLK" else None
        way = re.search(r"via (\S+), ([^,]+), weight", line)
        if dst and way:
            found.setdefault(dst, []).append(way.groups())
        elif dst and (kind := re.search(r"unreachable \((\w+)\)", line)):
            found[dst] = "blackhole" if kind.group(1) == "blackhole" else "unreachable"
    return {dst: leads if isinstance(leads, str) else ways(leads) for dst, leads in found.items()}


def bird(text):
    found, hops = {}, None
    for line in text.splitlines():
        route = re.match(r"(\S+/\d+)\s+(\w+) \[", line)
        way = re.match(r"\s+via (\S+) on (\S+)", line)
        if route:
            dst, kind = route.groups()
            hops = []
            found[dst] = kind if kind != "unicast" else hops
        elif way and hops is not None:
            hops.append(way.groups())
    return {dst: leads if isinstance(leads, str) else ways(leads) for dst, leads in found.items()}


def gobgp(text):
    found = {}
    for routes in documents(text):
        for dst, paths in routes.items():
            best = next(path for path in paths if path.get("best"))
            found[dst] = next(a["nexthop"] for a in best["attrs"] if "nexthop" in a)
    return found


def router(text):
    found = {}
    for route in documents(text):
        hop = route["next_hop"]
        if hop == "local":
            continue
        if not isinstance(hop, str):
            hops = hop if isinstance(hop, list) else [hop]
            hop = ways((w.get("via", "-"), w["interface"]) for w in hops)
        found[route["prefix"]] = hop
    return found


found = {ipaddress.ip_network(dst): leads for dst, leads in globals()[sys.argv[1].replace("-", "_")](sys.stdin.read()).items()}
own = set(map(ipaddress.ip_network, sys.argv[2:]))
for net in sorted(found.keys() - own, key=str):
    if not net.is_link_local and not net.is_multicast:
        print(net, found[net])
