#!/usr/bin/env python3
"""Stands for a router that sends BMP (RFC 7854): a peer that is up, COUNT routes of it and their end, until SIGTERM.

bmp.py PORT COUNT GATEWAY    COUNT /24s from 30.0.0.0 on lead to GATEWAY
"""
import ipaddress
import signal
import socket
import struct
import sys

port, count, gateway = int(sys.argv[1]), int(sys.argv[2]), ipaddress.ip_address(sys.argv[3]).packed
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
AS = 64501
PEER = bytes(10) + bytes(12) + bytes([10, 0, 0, 1]) + struct.pack(">I", AS) + bytes([10, 0, 0, 1]) + bytes(8)
OPEN = b"\xff" * 16 + struct.pack(">HBBHH", 37, 1, 4, AS, 180) + bytes([10, 0, 0, 9, 8, 2, 6, 65, 4]) + struct.pack(">I", AS)


def message(kind, body):
    return struct.pack(">BIB", 3, 6 + len(body), kind) + body


def update(attributes, announced):
    body = struct.pack(">HH", 0, len(attributes)) + attributes + announced
    return message(0, PEER + b"\xff" * 16 + struct.pack(">HB", 19 + len(body), 2) + body)


path = bytes([0x40, 1, 1, 0, 0x40, 2, 6, 2, 1]) + struct.pack(">I", AS) + bytes([0x40, 3, 4]) + gateway
with socket.create_connection(("127.0.0.1", port)) as session:
    session.sendall(message(3, PEER + bytes(20) + OPEN + OPEN))
    for n in range(count):
        session.sendall(update(path, bytes([24, 30, n >> 8, n & 255])))
    session.sendall(update(b"", b""))
    session.recv(1)
