#!/usr/bin/env python3
"""How many packets are lost when a next hop dies, counted from the event, and which flows moved.

failover.py send RATE SECONDS ADDRESS FLOWS        sends RATE UDP packets a second from FLOWS ports in turn; each has its number and time
failover.py receive FILE DEVICE...                 writes the packets that come by each device to FILE: number, time of sending, port, device
failover.py cut FILE COMMAND...                    writes the time to FILE, and runs the command
failover.py watch SOCKET FILE                      writes the time of each session's failure, as bfdd tells it, to FILE
failover.py judge SENT RECEIVED EVENT RATE DEAD    says what was lost after EVENT, and whether flows of devices other than DEAD have moved
"""
import collections
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

PORT = 9


def send(rate, seconds, address, flows):
    rate, socks = float(rate), []
    for port in range(20000, 20000 + int(flows)):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("", port))
        # Not connected: an answer that nobody listens there would be an error of the next packet.
        socks.append(s)
    number, begin = 0, time.monotonic()
    while (passed := time.monotonic() - begin) < float(seconds):
        due = int(passed * rate)
        # What a pause of this machine has kept from being sent is left out: a burst would test the rings.
        if due - number > 200:
            begin += (due - number - 200) / rate
            continue
        while number < due:
            try:
                socks[number % len(socks)].sendto(struct.pack("!Qd", number, time.monotonic()), (address, PORT))
            except OSError:
                pass
            number += 1
        time.sleep(0.001)
    print(number)


def receive(file, *devices):
    socks = {}
    for name in devices:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x800))
        s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        s.bind((name, 0x800))
        s.setblocking(False)
        socks[s] = name
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(1))
    with open(file, "w") as out:
        while not over:
            for s in select.select(list(socks), [], [], 0.1)[0]:
                try:
                    for _ in range(1000):
                        frame, where = s.recvfrom(200)
                        if where[2] != 4 and frame[23] == 17 and frame[36:38] == struct.pack("!H", PORT):
                            number, at = struct.unpack("!Qd", frame[42:58])
                            out.write("%d %.6f %d %s\n" % (number, at, frame[34] << 8 | frame[35], socks[s]))
                except OSError:  # nothing more, or the device is down
                    pass


def watch(path, file):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(struct.pack("!IHBB", 8, 1, 4, 1) + struct.pack("=Q", 1))
    bytes_ = b""
    while part := s.recv(65536):
        at = time.monotonic()
        bytes_ += part
        while len(bytes_) >= 8 and len(bytes_) >= (end := 8 + struct.unpack("!I", bytes_[:4])[0]):
            body = json.loads(bytes_[8:end])
            bytes_ = bytes_[end:]
            if body.get("state") in ("down", "up"):
                with open(file, "a") as out:
                    out.write("%.6f %s %s\n" % (at, body["state"], body["peer-address"]))


def cut(file, *command):
    at = time.monotonic()
    subprocess.run(command, check=True)
    with open(file, "w") as out:
        out.write("%.6f\n" % at)


def judge(sent, received, event, rate, dead):
    sent, event, rate = int(sent), float(event), float(rate)
    where, times = {}, {}
    for line in open(received):
        number, at, port, device = line.split()
        where[int(number)] = (int(port), device)
        times[int(number)] = float(at)
    # A lost packet was sent between those that came before and after it.
    lost, last = [], None
    for number in range(sent):
        if number in times:
            last = times[number]
        elif last is not None:
            lost.append((number, last))
    ways = [collections.defaultdict(set), collections.defaultdict(set)]
    for number, (port, device) in where.items():
        # A busy machine may be late with either.
        if not event - 1 < times[number] < event + 1:
            ways[times[number] >= event][port].add(device)
    stays = [port for port, devices in ways[0].items() if devices != {dead}]
    moved = [port for port in stays if ways[0][port] != ways[1][port]]
    left = [port for port, devices in ways[1].items() if dead in devices]
    after = [number for number, at in lost if at >= event - 1 / rate]
    print(json.dumps({
        "sent": sent, "lost": len(lost), "lost_after_the_event": len(after), "ms_after_the_event": round(1000 * len(after) / rate, 1),
        "flows": len(ways[0]), "flows_of_the_dead": len(ways[0]) - len(stays), "others_moved": len(moved), "not_moved": len(left),
    }))


def main():
    {"send": send, "receive": receive, "cut": cut, "watch": watch, "judge": judge}[sys.argv[1]](*sys.argv[2:])


main()
