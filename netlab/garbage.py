#!/usr/bin/env python3
"""Sends what is no message to the sockets of a router, and waits until each has been closed.

garbage.py HOST:PORT SOCKET SEED
"""
import random
import socket
import sys

fpm, control, seed = sys.argv[1:]
chance = random.Random(seed)
host, port = fpm.split(":")


def told(connect, bytes_sent):
    s = connect()
    s.settimeout(10)
    try:
        s.sendall(bytes_sent)
        while s.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        pass
    s.close()


def by_fpm():
    return socket.create_connection((host, int(port)))


def by_control():
    s = socket.socket(socket.AF_UNIX)
    s.connect(control)
    return s


told(by_fpm, b"GET / HTTP/1.1\r\n\r\n")
# A frame of netlink that says it is longer than it is, in which a message says so too.
told(by_fpm, b"\x01\x01\x00\x14" + (200).to_bytes(4, "little") + bytes(12))
told(by_fpm, b"\x02" + chance.randbytes(500))
told(by_control, chance.randbytes(500) + b"\n")
told(by_control, b'{"ask": ' + b"[" * 10000 + b"\n")
