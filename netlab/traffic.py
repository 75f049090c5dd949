#!/usr/bin/env python3
"""Paced traffic with numbers in it, and how much of it is lost.

traffic.py send RATE ADDRESS...   sends RATE UDP packets a second, to one address after the other, until SIGTERM; prints how many
traffic.py receive FILE           writes {"received", "twice", "highest", "lost"} to FILE twice a second, until SIGTERM; lost are numbers
                                  and when the next one came
traffic.py missing RECEIVED MONITOR ADDRESS...
                                  prints how many are lost so far, but for those whose route the daemon had taken out: MONITOR has
                                  routes that come and go as `ip -ts monitor route` has them
traffic.py judge SENT RECEIVED MONITOR RINGS ADDRESS...
                                  says whether all arrived once, but those and RINGS packets
"""
import collections
import datetime
import ipaddress
import json
import os
import selectors
import signal
import socket
import sys
import time

PORT = 9
over = False


def end(*_):
    global over
    over = True


def send(rate, *addresses):
    sockets = {4: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 6: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)}
    ways = [(sockets[6 if ":" in address else 4], (address, PORT)) for address in addresses]
    number, refused, behind = 0, 0, time.monotonic()
    while not over:
        due = int((time.monotonic() - behind) * float(rate))
        # After a pause of this machine, what was not sent is left out: a burst would test the rings.
        if due > 200:
            behind = time.monotonic()
            due = 200
        behind += due / float(rate)
        for _ in range(due):
            way, to = ways[number % len(ways)]
            try:
                way.sendto(number.to_bytes(8, "big") + bytes(10), to)
                number += 1
            except OSError:
                refused += 1
                time.sleep(0.01)
        time.sleep(0.002)
    print(json.dumps({"sent": number, "refused": refused}))


def receive(file):
    selector = selectors.DefaultSelector()
    for family, address in (socket.AF_INET, ""), (socket.AF_INET6, "::"):
        s = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        s.setblocking(False)
        s.bind((address, PORT))
        selector.register(s, selectors.EVENT_READ)
    received, twice, follows, missing, written = 0, 0, 0, {}, 0
    while not over:
        for key, _ in selector.select(0.1):
            try:
                while True:
                    number = int.from_bytes(key.fileobj.recv(64)[:8], "big")
                    if number >= follows:
                        now = time.time()
                        missing.update((n, now) for n in range(follows, number))
                        follows = number + 1
                        received += 1
                    elif missing.pop(number, None) is not None:
                        received += 1
                    else:
                        twice += 1
            except BlockingIOError:
                pass
        now = time.time()
        if now - written > 0.5 or over:
            written = now
            # What came late by another family's socket is not lost.
            lost = [(n, at) for n, at in missing.items() if now - at > 1 or over]
            with open(file + ".new", "w") as f:
                json.dump({"received": received, "twice": twice, "highest": follows, "lost": lost}, f)
            os.replace(file + ".new", file)


def unexplained(lost, monitor, addresses):
    changes = []
    with open(monitor) as file:
        for line in file:
            stamp, *words = line.split()
            at = datetime.datetime.fromisoformat(stamp.strip("[]") + "+00:00").timestamp()
            gone = words[0] == "Deleted"
            try:
                changes.append((at, gone, ipaddress.ip_network(words[1 if gone else 0])))
            except ValueError:
                pass
    # From when to when an address had no route.
    without = collections.defaultdict(list)
    for address in addresses:
        for at, gone, net in changes:
            if ipaddress.ip_address(address) in net:
                if gone:
                    without[address].append([at, float("inf")])
                elif without[address] and without[address][-1][1] == float("inf"):
                    without[address][-1][1] = at

    def explained(number, at):
        # The router hears of it a little later, and a packet counts as lost when the next one comes.
        return any(begin - 0.2 <= at <= end + 1 for begin, end in without[addresses[number % len(addresses)]])

    return [(number, at) for number, at in lost if not explained(number, at)]


def missing(received, monitor, *addresses):
    with open(received) as file:
        print(len(unexplained(json.load(file)["lost"], monitor, addresses)))


def judge(sent, received, monitor, rings, *addresses):
    with open(sent) as s, open(received) as r:
        sent, received = json.load(s), json.load(r)
    # What the receiver never heard of, as nothing came after it.
    lost = received["lost"] + [[n, time.time()] for n in range(received["highest"], sent["sent"])]
    rest = unexplained(lost, monitor, addresses)
    print(json.dumps({"sent": sent["sent"], "received": received["received"], "twice": received["twice"], "lost": len(rest),
                      "withdrawn": len(lost) - len(rest), "rings": int(rings)}))
    if received["twice"] or len(rest) > int(rings) or sent["sent"] != received["received"] + len(lost):
        sys.exit("lost: " + ", ".join(f"{addresses[n % len(addresses)]} at {at:.2f}" for n, at in rest[:5] + rest[-5:]))


signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, signal.SIG_IGN)
{"send": send, "receive": receive, "missing": missing, "judge": judge}[sys.argv[1]](*sys.argv[2:])
