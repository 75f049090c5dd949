#!/usr/bin/env python3
"""Floods a device from within the kernel, and counts what arrives: for netlab/measure-flood. A generator that sends by sockets is
slower than programs that forward.

    flood.py send DEVICE SECONDS TO-MAC ROUTES     64 bytes each, to random ones of so many /24 from 20.0.0.0 on (XDP live frames)
    flood.py count DEVICE SECONDS                  packets that arrive there in that time, with a TTL one lower and a right checksum
"""

import ctypes
import os
import socket
import struct
import sys
import time

from lpm_trie import ARRAY, DRIVER_MODE, LINK_CREATE, LOOK_UP, PROG_LOAD, XDP_ATTACH, XDP_PROGRAM, assemble, bpf, make_map, move

MAP_LOOKUP, PROG_TEST_RUN = 1, 10
RANDOM, LIVE_FRAMES, XDP_DROP, XDP_TX = 7, 2, 1, 3
TTL = 64
PLAIN = [move(6, 1), (0x61, 7, 6, 0, 0), (0x61, 8, 6, 4, 0), move(4, 7), (0x07, 4, 0, 0, 60), (0x2D, 4, 8, None, 0)]


def load(code):
    log = ctypes.create_string_buffer(1 << 16)
    try:
        return bpf(PROG_LOAD, "IIQQIIQ", XDP_PROGRAM, len(code) // 8, code, b"GPL\0", 1, len(log), ctypes.addressof(log))
    except OSError:
        sys.exit(log.value.decode())


def frame(destination, source):
    packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, TTL, 17, 0, bytes([10, 0, 1, 2]), bytes(4))
    return destination + source + b"\x08\x00" + packet + struct.pack("!HHHH", 1000, 2000, 26, 0) + bytes(18)


def generator(head, routes):
    """Writes all headers anew, because a frame that was forwarded comes back as it was left; then a random destination and the sum."""
    words = struct.unpack("=7I", head[:28])
    base = sum(struct.unpack("=10H", head[14:34]))
    return assemble([
        *PLAIN, *[(0x62, 7, 0, 4 * at, word - (1 << 32) * (word >> 31)) for at, word in enumerate(words)],
        (0x85, 0, 0, 0, RANDOM), (0xBC, 0, 0, 0, 0), (0x97, 0, 0, 0, routes), (0x67, 0, 0, 0, 8), (0x07, 0, 0, 0, 0x14000001),
        (0xDC, 0, 0, 0, 32), (0x63, 7, 0, 30, 0),
        (0xB7, 3, 0, 0, base), (0x69, 1, 7, 30, 0), (0x0F, 3, 1, 0, 0), (0x69, 1, 7, 32, 0), (0x0F, 3, 1, 0, 0),
        *[op for _ in range(2) for op in (move(1, 3), (0x77, 1, 0, 0, 16), (0x57, 3, 0, 0, 0xFFFF), (0x0F, 3, 1, 0, 0))],
        (0xA7, 3, 0, 0, 0xFFFF), (0x6B, 7, 3, 24, 0),
        (0xB7, 0, 0, 0, XDP_TX), (0x95, 0, 0, 0, 0), (0xB7, 0, 0, 0, XDP_DROP), (0x95, 0, 0, 0, 0),
    ])  # fmt: skip


def counter(counts):
    """Counts UDP packets with the TTL that is left, whose header's sum is right; drops all."""
    halves = [op for at in range(14, 34, 2) for op in ((0x69, 1, 7, at, 0), (0x0F, 3, 1, 0, 0))]
    return assemble([
        *PLAIN, (0x71, 1, 7, 22, 0), (0x55, 1, 0, None, TTL - 1), (0x71, 1, 7, 23, 0), (0x55, 1, 0, None, 17), (0xB7, 3, 0, 0, 0), *halves,
        *[op for _ in range(2) for op in (move(1, 3), (0x77, 1, 0, 0, 16), (0x57, 3, 0, 0, 0xFFFF), (0x0F, 3, 1, 0, 0))],
        (0x55, 3, 0, None, 0xFFFF),
        (0x62, 10, 0, -4, 0), counts, move(2, 10), (0x07, 2, 0, 0, -4), (0x85, 0, 0, 0, LOOK_UP), (0x15, 0, 0, None, 0),
        (0xB7, 1, 0, 0, 1), (0xDB, 0, 1, 0, 0),
        (0xB7, 0, 0, 0, XDP_DROP), (0x95, 0, 0, 0, 0),
    ])  # fmt: skip


def send(device, seconds, station, routes):
    mac = lambda text: bytes.fromhex(text.strip().replace(":", ""))
    head = frame(mac(station), mac(open(f"/sys/class/net/{device}/address").read()))
    program = load(generator(head, int(routes)))
    context = struct.pack("=6I", 0, len(head), 0, socket.if_nametoindex(device), 0, 0)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        # prog_fd, retval, data_size_in and _out, data_in and _out, repeat, duration, ctx_size_in and _out, ctx_in and _out, flags, cpu, batch
        bpf(PROG_TEST_RUN, "IIIIQQIIIIQQIII", program, 0, len(head), 0, head, 0, 1 << 16, 0, len(context), 0, context, 0, LIVE_FRAMES, 0, 64)


def count(device, seconds):
    counts = make_map(ARRAY, 4, 8, 1)
    program = load(counter(counts))
    link = bpf(LINK_CREATE, "IIII", program, socket.if_nametoindex(device), XDP_ATTACH, DRIVER_MODE)
    value = ctypes.create_string_buffer(8)

    def now():
        bpf(MAP_LOOKUP, "I4xQQQ", counts, bytes(4), ctypes.addressof(value), 0)
        return time.monotonic(), struct.unpack("=Q", value.raw)[0]

    time.sleep(1)
    (begin, before), _ = now(), time.sleep(float(seconds))
    end, after = now()
    print(round((after - before) / (end - begin)))
    os.close(link)


if __name__ == "__main__":
    {"send": send, "count": count}[sys.argv[1]](*sys.argv[2:])
