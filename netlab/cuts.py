#!/usr/bin/env python3
"""A connection of FPM that is cut at random bytes.

cuts.py PORT TO SEED SESSIONS [WITNESS]
    listens at PORT of 127.0.0.1 and passes on to TO; the first SESSIONS sessions are cut within their first 20,000 bytes, and on SIGUSR1
    the present one after at most 5,000 more, or half a second. WITNESS gets a line for each route of 10.60.0.0/16 and fd60::/16 that comes
    or goes, as `ip -ts monitor route` has it; one that only changes has none
"""
import datetime
import ipaddress
import random
import select
import signal
import socket
import sys
import threading

port, to, seed, cut_sessions = map(int, sys.argv[1:5])
witness = open(sys.argv[5], "a", buffering=1) if len(sys.argv) > 5 else None
chance = random.Random(seed)
present = [None]


class Session:
    def __init__(self, left):
        self.left = left
        self.ends = False


class Reader:
    """Reads the frames of a session."""

    def __init__(self):
        self.rest = b""

    def take(self, data):
        self.rest += data
        while len(self.rest) >= 4 and len(self.rest) >= (size := int.from_bytes(self.rest[2:4], "big")) >= 4:
            self.frame(self.rest[4:size])
            self.rest = self.rest[size:]

    def frame(self, messages):
        last = {}
        while len(messages) >= 28:
            size, kind = int.from_bytes(messages[:4], "little"), int.from_bytes(messages[4:6], "little")
            if size < 28:
                break
            if kind in (24, 25):
                body = messages[16:size]
                width, length, rest = 4 if body[0] == socket.AF_INET else 16, body[1], body[12:]
                while len(rest) >= 4 and (long := int.from_bytes(rest[:2], "little")) >= 4:
                    if int.from_bytes(rest[2:4], "little") == 1:
                        net = ipaddress.ip_network((rest[4:long].ljust(width, b"\0"), length))
                        if str(net).startswith(("10.60.", "fd60:")):
                            last[net] = kind
                    rest = rest[(long + 3) & ~3 :]
            messages = messages[(size + 3) & ~3 :]
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()[:26]
        for net, kind in last.items():
            witness.write(f"[{now}] {'Deleted ' if kind == 25 else ''}{net}\n")


def back(far, near):
    try:
        while data := far.recv(65536):
            near.sendall(data)
    except OSError:
        pass


def ask(*_):
    if present[0]:
        present[0].left, present[0].ends = chance.randrange(1, 5000), True


signal.signal(signal.SIGUSR1, ask)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen()
number = 0
while True:
    near, _ = listener.accept()
    try:
        far = socket.create_connection(("127.0.0.1", to))
    except OSError:
        near.close()
        continue
    reader = Reader()
    session = present[0] = Session(chance.randrange(1, 20000) if number < cut_sessions else 1 << 60)
    number += 1
    threading.Thread(target=back, args=(far, near), daemon=True).start()
    try:
        while session.left > 0:
            if not select.select([near], [], [], 0.5)[0]:
                if session.ends:
                    break
                continue
            data = near.recv(min(session.left, 4096))
            if not data:
                break
            if witness:
                reader.take(data)
            far.sendall(data)
            session.left -= len(data)
    except OSError:
        pass
    for end in near, far:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()
