#!/usr/bin/env python3
"""Writes a table dump (MRT, RFC 6396) of made routes to standard output.

mrt.py COUNT   COUNT routes: half 10.128.0.0/24, 10.128.1.0/24 and so on, half 2001:db8:0::/48 and so on, from one peer
"""
import ipaddress
import struct
import sys

count = int(sys.argv[1])
out = sys.stdout.buffer


def record(subtype, body):
    out.write(struct.pack(">IHHI", 1_700_000_000, 13, subtype, len(body)) + body)


def attribute(flags, kind, value):
    return bytes([flags, kind, len(value)]) + value


peer = bytes([2]) + bytes([10, 0, 2, 9]) + bytes([10, 0, 2, 9]) + struct.pack(">I", 64509)
record(1, bytes([10, 0, 2, 9]) + struct.pack(">HH", 0, 1) + peer)
path = attribute(0x40, 1, b"\0") + attribute(0x40, 2, bytes([2, 2]) + struct.pack(">II", 64509, 64510))
four = path + attribute(0x40, 3, bytes([10, 0, 2, 9]))
hop = ipaddress.ip_address("fd00:2::9").packed
for n in range(count):
    v6 = n >= count // 2
    n -= count // 2 * v6
    if v6:
        net = bytes([48]) + bytes.fromhex("20010db8") + struct.pack(">H", n)
    else:
        net = bytes([24, 10, 128 + (n >> 8), n & 255])
    # The whole attribute, as collectors write it that do not shorten it (RFC 6396, section 4.3.4): GoBGP reads no other.
    six = path + attribute(0x80, 14, struct.pack(">HBB", 2, 1, 16) + hop + b"\0" + net)
    attributes = six if v6 else four
    entry = struct.pack(">HIH", 0, 1_700_000_000, len(attributes)) + attributes
    record(4 if v6 else 2, struct.pack(">I", n) + net + struct.pack(">H", 1) + entry)
