#!/usr/bin/env python3
"""Hostile peers of a router that runs: sends messages of FPM and BMP, questions and requests, whole, altered, cut and in floods.

hostile.py SECONDS SEED SOCKET PROCESS MIB     the router's control socket and process; FPM at 127.0.0.1:2620, BMP at 11019, metrics at 9101

Judges: `stats` is answered within 5 seconds whatever is sent meanwhile, the process stays the same and takes at most MIB more than at the
beginning. Prints a line of JSON with the counts. Everything follows from SEED, but for the time.
"""
import json
import os
import random
import socket
import struct
import sys
import threading
import time

from fpm import DELETED_NEXT_HOP, DELETED_ROUTE, NEW_NEXT_HOP, NEW_ROUTE, attribute, frame, message

seconds, seed, control, process, most = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
until = time.monotonic() + seconds
sent = {"fpm": 0, "bmp": 0, "control": 0, "metrics": 0}
PATIENCE = 5


# FPM.

def a_route(chance):
    six = chance.random() < 0.4
    bits = 128 if six else 32
    often = chance.random() < 0.7
    length = bits if often else chance.choice([0, bits, chance.randint(1, bits)])
    kind = chance.choice([NEW_ROUTE, NEW_ROUTE, NEW_ROUTE, DELETED_ROUTE])
    body = struct.pack("=BBBBBBBBI", 10 if six else 2, length, 0, 0, 254, 11, 0, chance.choice([1, 1, 1, 6, 7, 8, 9]), 0)
    # Often one of few prefixes, so that routes are also replaced and deleted.
    body += attribute(1, (random.Random(chance.randint(1, 6000)) if often else chance).randbytes(bits // 8))
    way = chance.random()
    if way < 0.4:
        body += attribute(5, chance.randbytes(bits // 8)) + attribute(4, struct.pack("=I", chance.randint(1, 9)))
    elif way < 0.7:
        body += attribute(30, struct.pack("=I", chance.randint(1, 2000)))
    else:
        ways = b"".join(struct.pack("=HBBI", 16 if not six else 28, 0, chance.randint(0, 255), chance.randint(1, 9))
                        + attribute(5, chance.randbytes(bits // 8)) for _ in range(chance.choice([2, 3, 64, 300])))
        body += attribute(9, ways[:60000])
    return message(kind, body)


def a_next_hop(chance):
    body = struct.pack("=BBBBI", chance.choice([2, 10]), 0, 11, 0, 0) + attribute(1, struct.pack("=I", chance.randint(1, 2000)))
    if chance.random() < 0.5:
        members = chance.choice([1, 2, 64, 300])
        body += attribute(2, b"".join(struct.pack("=IBBH", chance.randint(1, 2000), chance.randint(0, 255), 0, 0) for _ in range(members)))
    else:
        body += attribute(5, struct.pack("=I", chance.randint(1, 9))) + attribute(6, chance.randbytes(chance.choice([4, 16])))
    return message(chance.choice([NEW_NEXT_HOP, NEW_NEXT_HOP, NEW_NEXT_HOP, DELETED_NEXT_HOP]), body)


def fpm(chance):
    made = (chance.choice([a_route, a_route, a_next_hop])(chance) for _ in range(chance.choice([1, 10, 2000])))
    return b"".join(frame(one) for one in made)


# BMP (RFC 7854) with updates of BGP.

def bgp(kind, body):
    return b"\xff" * 16 + struct.pack(">HB", 19 + len(body), kind) + body


def bmp_message(kind, body):
    return struct.pack(">BIB", 3, 6 + len(body), kind) + body


def peer(chance):
    return struct.pack(">BB8s16sI4sII", chance.choice([0, 0, 0, 1, 2, 3]), chance.choice([0, 0, 16, 64, 128]), bytes(8),
                       bytes(12) + bytes([10, 0, chance.randint(0, 3), chance.randint(1, 255)]), chance.randint(1, 70000),
                       chance.randbytes(4), 1, 0)


def opened(chance):
    capabilities = b"\x41\x04" + struct.pack(">I", chance.randint(1, 70000)) + b"\x01\x04\0\x02\0\x01"
    options = bytes([2, len(capabilities)]) + capabilities
    return bgp(1, struct.pack(">BHH4sB", 4, 23456, 180, chance.randbytes(4), len(options)) + options)


def update(chance):
    def prefix():
        length = chance.randint(0, 32)
        return bytes([length]) + chance.randbytes((length + 7) // 8)
    gone = b"".join(prefix() for _ in range(chance.choice([0, 0, 1, 200])))
    path = b"\x02" + bytes([3]) + struct.pack(">III", *(chance.randint(1, 70000) for _ in range(3)))
    attributes = b"\x40\x01\x01\x00" + b"\x40\x02" + bytes([len(path)]) + path + b"\x40\x03\x04" + chance.randbytes(4)
    if chance.random() < 0.3:
        length = chance.randint(0, 128)
        reached = struct.pack(">HBB", 2, 1, 16) + chance.randbytes(16) + b"\0" + bytes([length]) + chance.randbytes((length + 7) // 8)
        attributes += b"\x80\x0e" + bytes([len(reached)]) + reached
    new = b"".join(prefix() for _ in range(chance.choice([0, 1, 500])))
    return bgp(2, struct.pack(">H", len(gone)) + gone + struct.pack(">H", len(attributes)) + attributes + new)


def bmp(chance):
    messages = [bmp_message(4, struct.pack(">HH", 2, 4) + b"name")]
    for _ in range(chance.choice([1, 10, 300])):
        who = peer(chance)
        kind = chance.random()
        if kind < 0.4:
            messages.append(bmp_message(3, who + bytes(16) + struct.pack(">HH", 179, 179) + opened(chance) + opened(chance)))
        elif kind < 0.9:
            messages.append(bmp_message(0, who + update(chance)))
        elif kind < 0.95:
            messages.append(bmp_message(2, who + bytes([chance.randint(0, 6)])))
        else:
            messages.append(bmp_message(1, who + struct.pack(">I", 0)))
    return b"".join(messages)


def questions(chance):
    words = ["stats", "neigh", "feeds", "verify", "get", "show", "default", "10.0.0.1", "::/0", "covers", "inside", "changes", "feed=x"]
    return " ".join(chance.choices(words, k=chance.randint(1, 6))).encode() + b"\n"


def requests(chance):
    return chance.choice([b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n"])


def altered(chance, data):
    """Flips, cuts, repeats, and writes extreme lengths."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 20])):
        if not data:
            break
        at, how = chance.randrange(len(data)), chance.random()
        if how < 0.4:
            data[at] ^= 1 << chance.randrange(8)
        elif how < 0.6:
            data[at:at + 2] = chance.choice([b"\0\0", b"\xff\xff", b"\x7f\xff", b"\0\x01"])
        elif how < 0.75:
            del data[at:]
        elif how < 0.9:
            end = min(len(data), at + chance.choice([1, 4, 100]))
            data[at:at] = data[at:end]
        else:
            data[at:at] = chance.randbytes(chance.choice([1, 4, 100]))
    return bytes(data)


def connect(port):
    s = socket.socket(socket.AF_UNIX) if port is None else socket.socket()
    s.settimeout(PATIENCE)
    s.connect(control if port is None else ("127.0.0.1", port))
    return s


def attack(name, port, make, chance):
    while time.monotonic() < until:
        try:
            with connect(port) as s:
                for _ in range(chance.choice([1, 3, 50])):
                    data = make(chance)
                    data = altered(chance, data) if chance.random() < 0.6 else data
                    pieces = chance.choice([1, 1, 1, 3])
                    for piece in range(pieces):
                        s.sendall(data[piece * len(data) // pieces:(piece + 1) * len(data) // pieces])
                    sent[name] += 1
                    if time.monotonic() >= until:
                        break
                if chance.random() < 0.3:
                    time.sleep(chance.random() / 5)
                if port in (None, 9101):
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(1 << 16):
                        pass
        except OSError:
            # Closed, refused for a while, or slow: all are allowed.
            time.sleep(0.01)


def memory():
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) // 1024


def answered():
    """The seconds until `stats` is answered."""
    begin = time.monotonic()
    with connect(None) as s:
        s.sendall(b"stats\n")
        said = b""
        while part := s.recv(1 << 16):
            said += part
    json.loads(said)
    return time.monotonic() - begin


begin = memory()
for number, (name, port, make) in enumerate([("fpm", 2620, fpm), ("fpm", 2620, fpm), ("bmp", 11019, bmp), ("bmp", 11019, bmp),
                                             ("control", None, questions), ("metrics", 9101, requests)]):
    threading.Thread(target=attack, args=(name, port, make, random.Random(seed * 100 + number)), daemon=True).start()
slowest, highest, asked = 0.0, begin, 0
while time.monotonic() < until:
    try:
        slowest = max(slowest, answered())
        highest = max(highest, memory())
    except (OSError, ValueError, StopIteration) as error:
        sys.exit(f"seed {seed}, after {seconds - (until - time.monotonic()):.0f} s: stats is not answered: {error!r}; sent {sent}")
    if highest > begin + most:
        sys.exit(f"seed {seed}: {highest} MiB, {begin} at the beginning; sent {sent}")
    asked += 1
    time.sleep(0.2)
print(json.dumps({"seed": seed, "seconds": round(seconds), "sent": sent, "asked": asked, "slowest_seconds": round(slowest, 2),
                  "mib_begin": begin, "mib_highest": highest}))
