#!/usr/bin/env python3
"""A connection that is cut at random bytes.

cuts.py PORT TO SEED SESSIONS   listens at PORT of 127.0.0.1 and passes on to TO; the first SESSIONS sessions are cut within their first
                                20,000 bytes, and on SIGUSR1 the present one after at most 5,000 more, or half a second
"""
import random
import select
import signal
import socket
import sys
import threading

port, to, seed, cut_sessions = map(int, sys.argv[1:])
chance = random.Random(seed)
present = [None]


class Session:
    def __init__(self, left):
        self.left = left
        self.ends = False


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
