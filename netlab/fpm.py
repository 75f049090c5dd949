"""Frames of FPM with messages of netlink in them, as FRR's zebra sends them (linux/rtnetlink.h; fpm/fpm.h of FRR)."""
import struct

NEW_ROUTE, DELETED_ROUTE, NEW_NEXT_HOP, DELETED_NEXT_HOP = 24, 25, 104, 105


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def message(kind, body):
    return struct.pack("=IHHII", 16 + len(body), kind, 0x501, 0, 0) + body


def frame(body):
    body += b"\0" * (-len(body) % 4)
    return struct.pack(">BBH", 1, 1, 4 + len(body)) + body
