#!/usr/bin/env python3
"""Forwards IPv4 by XDP and the kernel's LPM_TRIE, or by the kernel's own routes: what a program of a few lines that runs in the driver
does, for netlab/measure.

    lpm_trie.py FROM TO NEXT-MAC ROUTES     in the namespace of both devices, until it is ended
    lpm_trie.py FROM TO NEXT-MAC fib

Each line of the file ROUTES begins with a prefix. What comes in by FROM and is below one of them leaves by TO, to the station NEXT-MAC,
with its TTL and checksum put right; everything else goes on to the kernel. It applies no other rule of a router. With `fib`, the
kernel's routes and neighbours say which packets leave by TO, and to which station (bpf_fib_lookup).
"""

import ctypes
import ipaddress
import os
import platform
import signal
import socket
import struct
import sys

MAP_CREATE, MAP_UPDATE, PROG_LOAD, LINK_CREATE = 0, 2, 5, 28
ARRAY, LPM_TRIE, DEVMAP, NO_PREALLOC = 2, 11, 14, 1
XDP_PROGRAM, XDP_ATTACH, XDP_PASS, DRIVER_MODE = 6, 37, 2, 4
LOOK_UP, REDIRECT, FIB_LOOKUP = 1, 51, 69
NUMBER = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command, form, *values):
    """The system call; values that are bytes are given by their address."""
    kept = [ctypes.create_string_buffer(value, len(value)) if isinstance(value, bytes) else value for value in values]
    plain = [value if isinstance(value, int) else ctypes.addressof(value) for value in kept]
    attributes = ctypes.create_string_buffer(struct.pack("=" + form, *plain).ljust(144, b"\0"), 144)
    result = LIBC.syscall(NUMBER, command, attributes, 144)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf {command}: {os.strerror(ctypes.get_errno())}")
    return result


def make_map(kind, key, value, entries, flags=0):
    return bpf(MAP_CREATE, "IIIII", kind, key, value, entries, flags)


def update(fd, key, value):
    bpf(MAP_UPDATE, "I4xQQQ", fd, key, value, 0)


def assemble(lines):
    """Instructions are (code, to, from, offset, value), jumps to PASS have None as their offset; a number is a map."""
    code = []
    for line in lines:
        code += [(0x18, 1, 1, 0, line), (0, 0, 0, 0, 0)] if isinstance(line, int) else [line]
    end = len(code) - 2
    fix = lambda at, op: (*op[:3], end - at - 1 if op[3] is None else op[3], op[4])
    code = [fix(at, op) for at, op in enumerate(code)]
    return b"".join(struct.pack("=BBhi", op[0], op[2] << 4 | op[1], op[3], op[4]) for op in code)


def move(to, source):
    return (0xBF, to, source, 0, 0)


# Registers of both programs: 6 the context, 7 the frame, 8 its end.
PLAIN = [
    move(6, 1), (0x61, 7, 6, 0, 0), (0x61, 8, 6, 4, 0),
    move(4, 7), (0x07, 4, 0, 0, 34), (0x2D, 4, 8, None, 0),  # fewer than 34 bytes
    (0x69, 2, 7, 12, 0), (0x55, 2, 0, None, 0x0008),  # not IPv4
    (0x71, 2, 7, 14, 0), (0x55, 2, 0, None, 0x45),  # with options
    (0x71, 2, 7, 22, 0), (0xA5, 2, 0, None, 2),  # the last hop
]  # fmt: skip
HOP = [
    (0x71, 3, 7, 22, 0), (0x07, 3, 0, 0, -1), (0x73, 7, 3, 22, 0),
    # RFC 1624, as the kernel's ip_decrease_ttl: the first byte of the sum in memory is one higher, with its carry.
    (0x69, 3, 7, 24, 0), (0x07, 3, 0, 0, 1), (0xA5, 3, 0, 1, 0xFFFF), (0x07, 3, 0, 0, 1), (0x6B, 7, 3, 24, 0),
]  # fmt: skip


def leave(devices):
    return [
        devices, (0xB7, 3, 0, 0, XDP_PASS), (0x85, 0, 0, 0, REDIRECT), (0x95, 0, 0, 0, 0),
        (0xB7, 0, 0, 0, XDP_PASS), (0x95, 0, 0, 0, 0),
    ]  # fmt: skip


def fib_program(devices):
    """On the stack, from 64 bytes below its top on, is a struct bpf_fib_lookup."""
    return assemble([
        *PLAIN,
        *[(0x7A, 10, 0, at, 0) for at in range(-64, 0, 8)],
        (0x72, 10, 0, -64, socket.AF_INET), (0x61, 2, 6, 12, 0), (0x63, 10, 2, -56, 0),
        (0x61, 2, 7, 26, 0), (0x63, 10, 2, -48, 0), (0x61, 2, 7, 30, 0), (0x63, 10, 2, -32, 0),
        move(1, 6), move(2, 10), (0x07, 2, 0, 0, -64), (0xB7, 3, 0, 0, 64), (0xB7, 4, 0, 0, 0), (0x85, 0, 0, 0, FIB_LOOKUP),
        (0x55, 0, 0, None, 0),
        *[op for at in (0, 2, 4) for op in ((0x69, 3, 10, at - 6, 0), (0x6B, 7, 3, at, 0))],
        *[op for at in (0, 2, 4) for op in ((0x69, 3, 10, at - 12, 0), (0x6B, 7, 3, at + 6, 0))],
        *HOP, (0xB7, 2, 0, 0, 0), *leave(devices),
    ])  # fmt: skip


def program(trie, hops, devices):
    """Register 9 is the next hop: two MAC addresses and a place of `devices`."""
    return assemble([
        *PLAIN,
        (0x62, 10, 0, -8, 32), (0x61, 3, 7, 30, 0), (0x63, 10, 3, -4, 0),
        trie, move(2, 10), (0x07, 2, 0, 0, -8), (0x85, 0, 0, 0, LOOK_UP), (0x15, 0, 0, None, 0),
        (0x61, 3, 0, 0, 0), (0x63, 10, 3, -12, 0),
        hops, move(2, 10), (0x07, 2, 0, 0, -12), (0x85, 0, 0, 0, LOOK_UP), (0x15, 0, 0, None, 0), move(9, 0),
        *[op for at in (0, 4, 8) for op in ((0x61, 3, 9, at, 0), (0x63, 7, 3, at, 0))],
        *HOP, (0x61, 2, 9, 12, 0), *leave(devices),
    ])  # fmt: skip


def main():
    if sys.byteorder != "little":
        sys.exit("only for little-endian machines")
    came, leaves, station, routes = sys.argv[1:]
    by_kernel = routes == "fib"
    prefixes = [] if by_kernel else [ipaddress.IPv4Network(line.split()[0]) for line in open(routes) if line.strip()]
    trie = make_map(LPM_TRIE, 8, 4, max(1, len(prefixes)), NO_PREALLOC)
    hops, devices = make_map(ARRAY, 4, 16, 1), make_map(DEVMAP, 4, 4, 1)
    mac = lambda text: bytes.fromhex(text.replace(":", ""))
    own = open(f"/sys/class/net/{leaves}/address").read().strip()
    update(hops, bytes(4), mac(station) + mac(own) + bytes(4))
    update(devices, bytes(4), struct.pack("=I", socket.if_nametoindex(leaves)))
    for prefix in prefixes:
        update(trie, struct.pack("=I", prefix.prefixlen) + prefix.network_address.packed, bytes(4))
    code = fib_program(devices) if by_kernel else program(trie, hops, devices)
    log = ctypes.create_string_buffer(1 << 16)
    try:
        loaded = bpf(PROG_LOAD, "IIQQIIQ", XDP_PROGRAM, len(code) // 8, code, b"GPL\0", 1, len(log), ctypes.addressof(log))
    except OSError:
        sys.exit(log.value.decode())
    link = bpf(LINK_CREATE, "IIII", loaded, socket.if_nametoindex(came), XDP_ATTACH, DRIVER_MODE)
    print("forwards", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    os.close(link)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
