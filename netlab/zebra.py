#!/usr/bin/env python3
"""Stands for FRR's zebra: tells routes by FPM, and again after each end of the session, until SIGTERM.

zebra.py PORT COUNT GATEWAY DEVICE [PREFIX...]    COUNT /24s from 20.0.0.0 on, and each PREFIX of IPv4, lead to GATEWAY by DEVICE
"""
import ipaddress
import signal
import socket
import struct
import sys
import time

from fpm import NEW_ROUTE, attribute, frame, message

MAIN, ZEBRA, UNICAST = 254, 11, 1
DST, OIF, GATEWAY = 1, 4, 5

port, count, gateway, device, *prefixes = sys.argv[1:]
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
via, out = ipaddress.ip_address(gateway).packed, struct.pack("=I", socket.if_nametoindex(device))
places = [((20 << 24) + (n << 8), 24) for n in range(int(count))]
places += [(int(p.network_address), p.prefixlen) for p in map(ipaddress.ip_network, prefixes)]


def told_route(address, length):
    route = struct.pack("=BBBBBBBBI", socket.AF_INET, length, 0, 0, MAIN, ZEBRA, 0, UNICAST, 0)
    route += attribute(DST, address.to_bytes(4, "big")) + attribute(GATEWAY, via) + attribute(OIF, out)
    return frame(message(NEW_ROUTE, route))


told = b"".join(told_route(*place) for place in places)
while True:
    try:
        with socket.create_connection(("127.0.0.1", int(port))) as session:
            session.sendall(told)
            print("told", flush=True)
            while session.recv(4096):
                pass
    except OSError:
        pass
    # As zebra does, it waits before it comes again.
    time.sleep(3)
