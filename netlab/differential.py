#!/usr/bin/env python3
"""The same frames through the kernel's forwarding and through the router, and whether the same comes out.

differential.py record OUT A-NS A-DEVICE B-NS B-DEVICE SEED COUNT [LIMIT]
    sends the frames of differential.txt (at most LIMIT of them, spread over all) and COUNT random ones made of SEED, each from its side, and
    writes to OUT what each brought out at both. Stands for the hosts: answers ARP and neighbour discovery.
differential.py compare KERNEL ROUTER HOST [FRAGMENTS]
    compares two such files byte for byte, but for what differences.toml permits. HOST is `kernel`, or `none` where the router has no kernel
    behind it and answers pings alone. FRAGMENTS is `none` where a driver puts fragments of IPv4 together before the router has them. Exits 1 if there is another difference, and prints how often each was met.
"""
import ctypes
import itertools
import json
import os
import random
import re
import socket
import struct
import sys
import time
import tomllib

FOLDER = os.path.dirname(os.path.abspath(__file__))
MACS = {
    "A": bytes.fromhex("02000000000a"), "B": bytes.fromhex("02000000000b"), "ALL": b"\xff" * 6,
    ("left", "R"): bytes.fromhex("020000000101"), ("right", "R"): bytes.fromhex("020000000201"),
}
v4, v6 = socket.inet_aton, lambda text: socket.inet_pton(socket.AF_INET6, text)
HOSTS = {
    "left": {v4("10.0.1.2"), v4("10.0.1.9"), v6("fd00:1::2"), v6("fd00:1::9"), v6("fe80::a")},
    "right": {v4("10.0.2.2"), v4("10.0.2.9"), v6("fd00:2::2"), v6("fd00:2::9"), v6("fe80::b")},
}
OWN4 = {v4("10.0.1.1"), v4("10.0.2.1")}
OWN6 = {v6("fd00:1::1"), v6("fd00:2::1"), v6("fe80::ff:fe00:101"), v6("fe80::ff:fe00:201")}
# What the subnet-router anycast address of a network has is the router too.
OWN6 |= {v6("fd00:1::"), v6("fd00:2::")}
NOT_ALONE = {"icmp6": 58, "icmp": 1, "udp": 17, "tcp": 6, "frag": 44}


def checksum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


# Frames in words.

def expand(line):
    choices = re.split(r"\{([^}]*)\}", line)
    fields = []
    for number, part in enumerate(choices):
        if number % 2 == 0:
            fields.append([part])
            continue
        words = []
        for word in part.split(","):
            span = re.fullmatch(r"(\d+)\.\.(\d+)", word)
            words += [str(n) for n in range(int(span[1]), int(span[2]) + 1)] if span else [word]
        fields.append(words)
    return ["".join(words) for words in itertools.product(*fields)]


def protocol(rest):
    if not rest:
        return 59
    if rest[0][0] == "ext":
        return int(rest[0][1])
    return NOT_ALONE.get(rest[0][0], 59)


def ether_type(rest):
    kind = rest[0][0] if rest else ""
    value = {"ip4": 0x800, "ip6": 0x86dd, "vlan": 0x8100}.get(kind, 0)
    return struct.pack("!H", int(rest[0][1], 16) if kind == "type" else value)


def layer(side, layers, pseudo=None):
    if not layers:
        return b""
    (kind, *words), rest = layers[0], layers[1:]
    values = dict(word.split("=", 1) for word in words if "=" in word)
    number = lambda key, otherwise: int(values.get(key, str(otherwise)), 0)
    if kind == "eth":
        mac = lambda name: MACS.get(name) or MACS.get((side, name)) or bytes.fromhex(name.replace(":", ""))
        return mac(words[0]) + mac(words[1]) + ether_type(rest) + layer(side, rest)
    if kind == "vlan":
        return struct.pack("!H", int(words[0])) + ether_type(rest) + layer(side, rest)
    if kind == "type":
        return layer(side, rest)
    if kind == "ip4":
        payload = layer(side, rest)
        options = bytes.fromhex(values.get("opt", ""))
        options += b"\0" * (-len(options) % 4)
        length = 20 + len(options)
        flags = 0x4000 * ("df" in words) | 0x2000 * ("mf" in words) | number("off", 0)
        header = struct.pack(
            "!BBHHHBBH4s4s", number("first", 0x40 | length // 4), number("tos", 0), number("len", length + len(payload)), number("id", 0),
            flags, number("ttl", 64), number("proto", protocol(rest)), 0, v4(words[0]), v4(words[1])) + options
        return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload
    if kind == "ip6":
        payload = layer(side, rest, (v6(words[0]), v6(words[1])))
        first = number("version", 6) << 28 | number("label", 0)
        return struct.pack(
            "!IHBB16s16s", first & 0xffffffff, number("len", len(payload)), number("next", protocol(rest)), number("hop", 64), v6(words[0]),
            v6(words[1])) + payload
    if kind == "ext":
        return bytes([protocol(rest)]) + bytes.fromhex(words[1]) + layer(side, rest, pseudo)
    if kind == "frag":
        return struct.pack("!BBHI", protocol(rest), 0, int(words[0]) << 3 | (words[1] == "more"), 9) + layer(side, rest, pseudo)
    if kind in ("udp", "tcp"):
        return struct.pack("!HHI", int(words[0]), int(words[1]), 0) + layer(side, rest)
    if kind in ("icmp", "icmp6"):
        body = struct.pack("!BBH", int(words[0]), int(words[1]), 0) + (bytes.fromhex(words[2]) if len(words) > 2 else bytes(4))
        body += layer(side, rest)
        head = b"".join(pseudo) + struct.pack("!II", len(body), 58) if kind == "icmp6" and pseudo else b""
        return body[:2] + struct.pack("!H", checksum(head + body)) + body[4:]
    if kind == "data":
        return bytes(n & 255 for n in range(int(words[0])))
    if kind == "hex":
        return bytes.fromhex(words[0])
    raise ValueError(f"no layer '{kind}'")


def build(line):
    side, text = line.split(" ", 1)
    layers = [words.split() for words in text.split("/")]
    frame = bytearray(layer(side, [words for words in layers if words[0] not in ("cut", "pad", "xor")]))
    for words in layers:
        if words[0] == "cut":
            del frame[int(words[1]):]
        elif words[0] == "pad":
            frame += bytes(int(words[1]))
        elif words[0] == "xor":
            for at, byte in enumerate(bytes.fromhex(words[2])):
                frame[int(words[1]) + at] ^= byte
    return side, bytes(frame)


def written():
    frames = []
    with open(f"{FOLDER}/differential.txt") as file:
        for line in file:
            line = line.split("#")[0].strip()
            frames += [(text, *build(text)) for text in expand(line)] if line else []
    return frames


# Random frames: written ones, changed.

ADDRESSES4 = ["10.0.1.2", "10.0.2.2", "10.9.1.1", "10.8.1.1", "10.7.1.1", "10.6.1.1", "10.5.1.1", "192.0.2.1", "0.0.0.0",
              "0.1.1.1", "127.0.0.1", "169.254.1.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "10.0.1.255", "10.0.2.255"]
ADDRESSES6 = ["fd00:1::2", "fd00:2::2", "fd00:9::1", "fd00:8::1", "fd00:7::1", "fd00:6::1", "fd00:5::1", "2001:db8::1", "fe80::a", "::",
              "::1", "ff02::1", "ff0e::1", "::ffff:10.0.1.2"]


def changed(chance, frame):
    frame = bytearray(frame)
    if len(frame) < 34:
        return bytes(frame)
    is_v6 = frame[12:14] == b"\x86\xdd"
    header = 40 if is_v6 else 4 * (frame[14] & 15)
    for _ in range(chance.randrange(1, 4)):
        what = chance.randrange(8)
        if what == 0:
            frame[14 + chance.randrange(header if header else 1) if 14 + header <= len(frame) else 14] = chance.randrange(256)
        elif what == 1 and is_v6 and len(frame) >= 54:
            at = chance.choice([22, 38])
            frame[at:at + 16] = v6(chance.choice(ADDRESSES6))
        elif what == 1 and not is_v6:
            at = chance.choice([26, 30])
            frame[at:at + 4] = v4(chance.choice(ADDRESSES4))
        elif what == 2:
            frame[21 if is_v6 else 22] = chance.choice([0, 1, 2, 64, 255])
        elif what == 3 and not is_v6 and header == 20 and len(frame) < 1400:
            options = bytes(chance.choice([0, 1, 7, 68, 148, 131, 4, 5, 8, 3, 7, 12, 130]) for _ in range(4 * chance.randrange(1, 11)))
            frame[34:34] = options
            header += len(options)
            frame[14] = 0x40 | header // 4
            frame[16:18] = struct.pack("!H", min(len(frame) - 14, 65535))
        elif what == 4 and len(frame) < 400:
            frame += chance.randbytes(chance.randrange(1100))
            size = len(frame) - 14 - (40 if is_v6 else 0)
            at = 18 if is_v6 else 16
            frame[at:at + 2] = struct.pack("!H", max(size, 0))
        elif what == 5 and not is_v6:
            frame[20:22] = struct.pack("!H", chance.choice([0, 0x4000, 0x2000, 1, 0x2001, 185, 8191, 0x8000, 0x6000]))
        elif what == 6:
            frame[chance.randrange(14, len(frame))] ^= 1 << chance.randrange(8)
        elif what == 7 and chance.randrange(4) == 0:
            del frame[chance.randrange(14, len(frame)):]
            if len(frame) < 54:
                break
    if not is_v6 and chance.randrange(10) and 14 + header <= len(frame) and header >= 20:
        frame[24:26] = b"\0\0"
        frame[24:26] = struct.pack("!H", checksum(bytes(frame[14:14 + header])))
    return bytes(frame)


def may_be_sent(frame):
    """Not what changes the state of a router, which the next frame would meet."""
    packet = Packet(frame)
    for address in (packet.source, packet.to):
        # Nobody would answer for it, and what follows from that comes seconds later.
        near = network(address, v4("10.0.1.0")[:3], v4("10.0.2.0")[:3], v6("fd00:1::")[:8], v6("fd00:2::")[:8], b"\xfe\x80")
        groups = {v4("10.0.1.255"), v4("10.0.2.255")}
        if near and address not in set.union(*HOSTS.values(), OWN4, OWN6, groups):
            return False
    if packet.kind == 4 and (packet.to in OWN4 or packet.source in OWN4):
        return packet.protocol == 1 and packet.body[:1] == b"\x08" and not packet.is_fragment
    if packet.kind == 6:
        if packet.to in OWN6 or packet.source in OWN6 or packet.to[:2] == b"\xfe\x80":
            return False
        return not (packet.protocol == 58 and packet.body[:1] and (130 <= packet.body[0] <= 137 or packet.body[0] == 143))
    return frame[12:14] != b"\x08\x06"


def made(seed, count):
    chance = random.Random(seed)
    base = [(side, frame) for _, side, frame in written() if frame[12:14] in (b"\x08\0", b"\x86\xdd")]
    frames = []
    while len(frames) < count:
        side, frame = chance.choice(base)
        frame = changed(chance, frame)
        if may_be_sent(frame) and len(frame) <= (1514 if side == "left" else 1314):
            frames.append((f"{side} random {seed}:{len(frames)} {frame.hex()}", side, frame))
    return frames


# Packets, read.

class Packet:
    """An IP packet in a frame, as far as it is one."""

    def __init__(self, frame):
        self.kind, self.protocol, self.body, self.options, self.header = 0, None, b"", b"", 0
        self.is_fragment, self.extensions, self.source, self.to = False, [], b"", b""
        at = 18 if frame[12:14] == b"\x81\0" else 14
        kind, data = frame[at - 2:at], frame[at:]
        self.at = at
        if kind == b"\x08\0" and len(data) >= 20 and data[0] >> 4 == 4:
            self.kind, self.header = 4, 4 * (data[0] & 15)
            self.length, field = struct.unpack("!H2xH", data[2:8])
            self.protocol, self.source, self.to, self.ttl = data[9], data[12:16], data[16:20], data[8]
            self.offset, self.is_fragment = field & 0x1fff, field & 0x3fff != 0
            self.options, self.body = data[20:self.header], data[self.header:]
        elif kind == b"\x86\xdd" and len(data) >= 40 and data[0] >> 4 == 6:
            self.kind, self.header, self.source, self.to, self.ttl = 6, 40, data[8:24], data[24:40], data[7]
            protocol, rest = data[6], data[40:]
            while protocol in (0, 43, 44, 51, 60) and len(rest) >= 8:
                self.extensions.append((protocol, rest[:8]))
                size = {44: 8, 51: 4 * (rest[1] + 2)}.get(protocol, 8 * (rest[1] + 1))
                later = protocol == 44 and struct.unpack("!H", rest[2:4])[0] & 0xfff8
                self.is_fragment |= protocol == 44
                protocol, rest = rest[0], rest[size:]
                if later:
                    protocol = None
                    break
            self.protocol, self.body = protocol, rest

    def option_kinds(self):
        """The options as far as they can be read, each with its place in the header."""
        at, found = 0, []
        while at < len(self.options) and self.options[at] != 0:
            found.append((self.options[at], 20 + at))
            if self.options[at] != 1:
                length = self.options[at + 1] if at + 1 < len(self.options) else 0
                if length < 2 or at + length > len(self.options):
                    break
                at += length - 1
            at += 1
        return found


def network(address, *prefixes):
    return any(address.startswith(prefix) for prefix in prefixes)


def is_martian(packet):
    special = lambda ip: network(ip, b"\xa9\xfe") or ip[0] >= 240 and ip != b"\xff" * 4
    return packet.kind == 4 and (special(packet.source) or special(packet.to) or 0 in (packet.source[0], packet.to[0]) and packet.source != bytes(4))


# The differences that are permitted. Those that judge an input and both outputs return whether the router has done what
# differences.toml says; the masks take away from both outputs what may differ.

def judge(name):
    def add(function):
        JUDGES[name] = function
        return function
    return add


def mask(name):
    def add(function):
        MASKS[name] = function
        return function
    return add


JUDGES, MASKS = {}, {}
NOTHING = [[], []]


@judge("martians")
def _(packet, kernel, router):
    return is_martian(packet) and router == NOTHING


@judge("unspecified-destination")
def _(packet, kernel, router):
    return packet.kind == 6 and packet.to == bytes(16) and router == NOTHING


@judge("own-ipv6-source")
def _(packet, kernel, router):
    return packet.kind == 6 and packet.source in OWN6 and router == NOTHING


@judge("errors-about-redirects")
def _(packet, kernel, router):
    theirs = sum(kernel, [])
    is_error = len(theirs) == 1 and Packet(theirs[0]).source in OWN6
    return packet.kind == 6 and packet.protocol == 58 and packet.body[:1] == b"\x89" and is_error and router == NOTHING


@judge("source-routes")
def _(packet, kernel, router):
    return any(kind in (131, 137) for kind, _ in packet.option_kinds()) and router == NOTHING


@judge("routing-header-0")
def _(packet, kernel, router):
    return any(kind == 43 and data[2] == 0 for kind, data in packet.extensions) and router == NOTHING


@judge("hop-by-hop-options")
def _(packet, kernel, router):
    ours = sum(router, [])
    is_error = all(Packet(frame).protocol == 58 and Packet(frame).body[:1] == b"\x04" for frame in sum(kernel, []))
    # The router has done with it what it does with any packet.
    return any(kind == 0 for kind, _ in packet.extensions) and is_error and len(ours) <= 1


@judge("overlong-fragments")
def _(packet, kernel, router):
    return packet.kind == 4 and packet.offset * 8 + packet.length > 65535 and router == NOTHING


def is_icmp(frame, kind):
    packet = Packet(frame)
    return packet.kind == 4 and packet.protocol == 1 and packet.source in OWN4 and packet.body[:1] == bytes([kind])


@judge("later-fragments-of-icmpv6")
def _(packet, kernel, router):
    later = [data for kind, data in packet.extensions if kind == 44 and struct.unpack("!H", data[2:4])[0] & 0xfff8]
    theirs = sum(kernel, [])
    is_error = len(theirs) == 1 and Packet(theirs[0]).source in OWN6
    return packet.kind == 6 and any(data[0] == 58 for data in later) and is_error and router == NOTHING


@judge("rate-of-errors")
def _(packet, kernel, router):
    ours = sum(router, [])
    said = len(ours) == 1 and is_icmp(ours[0], 3) and Packet(ours[0]).body[1] in (0, 1, 13)
    has_route = packet.kind == 4 and network(packet.to, *(v4(f"10.{n}.0.0")[:2] for n in (8, 9)), v4("10.0.1.0")[:3], v4("10.0.2.0")[:3])
    return packet.kind == 4 and kernel == NOTHING and said and not has_route


@judge("source-of-errors")
def _(packet, kernel, router):
    def without(sides):
        return [[got[:22] + bytes(16) + got[38:56] + b"\0\0" + got[58:] for got in side] for side in sides]
    theirs, ours = sum(kernel, []), sum(router, [])
    are_errors = all(Packet(got).source in OWN6 and Packet(got).protocol == 58 and Packet(got).body[0] < 128 for got in theirs + ours)
    return packet.kind == 6 and len(theirs) == len(ours) == 1 and are_errors and without(kernel) == without(router)


@judge("options-of-errors")
def _(packet, kernel, router):
    # The kernel fails to record it, and then says nothing.
    ours = sum(router, [])
    asks = any(kind in (7, 68) for kind, _ in packet.option_kinds())
    return asks and kernel == NOTHING and len(ours) == 1 and any(is_icmp(ours[0], kind) for kind in (3, 11, 12))


@judge("labels")
def _(packet, kernel, router):
    theirs, ours = sum(kernel, []), sum(router, [])
    # No error is about a later fragment.
    refused = not theirs or len(theirs) == 1 and is_icmp(theirs[0], 12)
    return any(kind == 134 for kind, _ in packet.option_kinds()) and refused and len(ours) <= 2 and not any(is_icmp(got, 12) for got in ours)


@judge("parameter-pointer")
def _(packet, kernel, router):
    theirs, ours = sum(kernel, []), sum(router, [])
    if not (len(theirs) == len(ours) == 1 and is_icmp(theirs[0], 12) and is_icmp(ours[0], 12)):
        return False
    at = Packet(ours[0]).at + 20 + 4
    same = theirs[0][:at - 2] == ours[0][:at - 2] and theirs[0][at + 1:] == ours[0][at + 1:]
    return same and ours[0][at] == theirs[0][at] + 1


def rewritten(frame, change):
    """The frame with its IPv4 header changed, and without the checksum, which `compare` has looked at before."""
    packet = Packet(frame)
    header = bytearray(frame[packet.at:packet.at + packet.header])
    header[10:12] = b"\0\0"
    return frame[:packet.at] + bytes(change(header)) + frame[packet.at + packet.header:]


@mask("identification-of-errors")
def _(frame):
    packet = Packet(frame)
    if packet.kind != 4 or packet.source not in OWN4 or packet.header < 20:
        return frame

    def change(header):
        header[4:8] = bytes(4)
        return header
    return rewritten(frame, change)


@mask("flow-label")
def _(frame):
    packet = Packet(frame)
    if packet.kind == 6 and packet.source in OWN6 and packet.protocol == 58 and (packet.body[0] < 128 or packet.body[0] == 129):
        return frame[:packet.at + 1] + bytes([frame[packet.at + 1] & 0xf0, 0, 0]) + frame[packet.at + 4:]
    return frame


@mask("redirects")
def _(frame):
    packet = Packet(frame)
    is_v6 = packet.kind == 6 and packet.source in OWN6 and packet.protocol == 58 and packet.body[:1] == b"\x89"
    return None if is_v6 or is_icmp(frame, 5) else frame


@mask("unreachable-routes")
def _(frame):
    packet = Packet(frame)
    if packet.kind == 6 and packet.source in OWN6 and packet.protocol == 58 and packet.body[:2] in (b"\x01\0", b"\x01\x03"):
        if network(packet.body[32:48], v6("fd00:7::")[:4]):
            return frame[:packet.at + 40] + b"\x01\0\0\0" + frame[packet.at + 44:]
    return frame


def times_away(options):
    """Takes away what a timestamp option has recorded: two machines, or a moment later, record another time."""
    options, at = bytearray(options), 0
    while at < len(options) and options[at] != 0:
        size = 1 if options[at] == 1 else options[at + 1] if at + 1 < len(options) else 0
        if size < 1 or at + size > len(options):
            break
        if options[at] == 68 and size >= 4:
            pairs = options[at + 3] & 15 in (1, 3)
            for word in range(at + (8 if pairs else 4), at + min(options[at + 2] - 1, size), 8 if pairs else 4):
                options[word:word + 4] = bytes(len(options[word:word + 4]))
        at += size
    return options


def end_of_options(options):
    at = 0
    while at < len(options) and options[at] != 0:
        size = 1 if options[at] == 1 else options[at + 1] if at + 1 < len(options) else 0
        if size < 1 or at + size > len(options):
            return len(options)
        at += size
    return at


@mask("address-of-timestamps")
def _(frame):
    packet = Packet(frame)
    asks = any(kind == 68 and packet.options[at - 17:at - 16] and packet.options[at - 17] & 15 == 1 for kind, at in packet.option_kinds())
    if packet.kind != 4 or not asks:
        return frame

    def change(header):
        for kind, at in packet.option_kinds():
            if kind == 68 and len(header) > at + 3 and header[at + 3] & 15 == 1:
                end = min(at + header[at + 1], at + max(header[at + 2] - 1, 4), len(header))
                header[at + 4:end] = bytes(max(end - at - 4, 0))
        return header
    return rewritten(frame, change)


@mask("after-the-end-of-options")
def _(frame):
    packet = Packet(frame)
    if packet.kind != 4 or packet.header <= 20:
        return frame

    def change(header):
        options = times_away(header[20:])
        end = end_of_options(options)
        return header[:20] + options[:end] + bytes(len(options) - end)
    return rewritten(frame, change)


@mask("options-of-later-fragments")
def _(frame):
    packet = Packet(frame)
    if packet.kind != 4 or packet.header < 20 or not packet.offset:
        return frame

    def change(header):
        # Without them a header has no checksum either, to be like one that had some.
        if len(header) == 20:
            return header
        options = bytes(byte for kind, at in packet.option_kinds() if kind & 0x80 for byte in header[at:at + header[at + 1]])
        options += bytes(-len(options) % 4)
        header[2:4] = struct.pack("!H", packet.length - packet.header + 20 + len(options))
        header[0] = 0x40 | 5 + len(options) // 4
        return header[:20] + options
    return rewritten(frame, change)


@mask("options-of-errors")
def _(frame):
    packet = Packet(frame)
    if packet.kind != 4 or packet.protocol != 1 or packet.source not in OWN4 or packet.body[:1] not in (b"\x03", b"\x0b", b"\x0c"):
        return frame
    if len(packet.body) < 29 or packet.body[8] & 15 <= 5:
        return frame
    # Options leave less room for the quotation, so only what both have of a long one is compared.
    header = bytearray(frame[packet.at:packet.at + 20])
    header[0], header[2:4], header[10:12] = 0x45, b"\0\0", b"\0\0"
    return frame[:packet.at] + bytes(header) + packet.body[:2] + b"\0\0" + packet.body[4:400]


@mask("quoted-options")
def _(frame):
    packet = Packet(frame)
    quoted = packet.body[8:]
    if packet.kind != 4 or packet.protocol != 1 or packet.source not in OWN4 or packet.body[:1] not in (b"\x03", b"\x0b", b"\x0c"):
        return frame
    size = 4 * (quoted[0] & 15) if quoted else 0
    if size <= 20:
        return frame
    # The options that were quoted, and both checksums, which hold them.
    quoted = quoted[:10] + b"\0\0" + quoted[12:20] + bytes(size - 20) + quoted[size:]
    return frame[:packet.at + packet.header] + packet.body[:2] + b"\0\0" + packet.body[4:8] + quoted


# Sending and recording.

class Side:
    def __init__(self, name, space, device):
        self.name, self.other = name, None
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/var/run/netns/{space}") as there, open("/proc/self/ns/net") as here:
            if libc.setns(there.fileno(), 0x40000000):
                raise OSError(ctypes.get_errno(), "setns")
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            # PACKET_IGNORE_OUTGOING
            self.socket.setsockopt(263, 23, 1)
            self.socket.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
            self.socket.bind((device, 3))
            libc.setns(here.fileno(), 0x40000000)
        self.socket.setblocking(False)
        self.mac = MACS["A" if name == "left" else "B"]
        self.router = MACS[(name, "R")]

    def send(self, frame):
        """Sends; where the device is busy, again."""
        for _ in range(1000):
            try:
                return self.socket.send(frame)
            except BlockingIOError:
                time.sleep(0.005)
        sys.exit(f"{self.name} takes no frame")

    def read(self):
        """The frames that have come, but for those that hosts and routers say of themselves; what asks for a host is answered."""
        frames = []
        while True:
            try:
                frame = self.socket.recv(70000)
            except BlockingIOError:
                return frames
            if frame[12:14] == b"\x08\x06":
                if frame[20:22] == b"\0\1" and frame[38:42] in HOSTS[self.name]:
                    self.send(frame[6:12] + self.mac + b"\x08\x06" + frame[14:20] + b"\0\2" + self.mac + frame[38:42] + frame[22:32])
                continue
            packet = Packet(frame)
            kind = packet.body[0] if packet.kind == 6 and packet.protocol == 58 and packet.body else 0
            if kind == 135 and packet.source in OWN6:
                target = packet.body[8:24]
                if target in HOSTS[self.name]:
                    body = b"\x88\0\0\0\x60\0\0\0" + target + b"\x02\x01" + self.mac
                    sum_of = checksum(target + packet.source + struct.pack("!II", len(body), 58) + body)
                    body = body[:2] + struct.pack("!H", sum_of) + body[4:]
                    ip = struct.pack("!IHBB16s16s", 6 << 28, len(body), 58, 255, target, packet.source)
                    self.send(frame[6:12] + self.mac + b"\x86\xdd" + ip + body)
                continue
            if kind == 136 and packet.source in OWN6 or frame[0] & 1:
                continue
            frames.append(frame)


class Recorder:
    def __init__(self, left, right):
        self.sides = {"left": left, "right": right}
        self.number = 0

    def mark(self, side, other, collected):
        """Sends a packet that passes, and waits for it: what came before it has been dealt with."""
        self.number += 1
        name = f"mark {self.number:08}".encode()
        to, source = ("10.0.2.2", "10.0.1.2") if side == "left" else ("10.0.1.2", "10.0.2.2")
        frame = self.sides[side].router + self.sides[side].mac + b"\x08\0" + layer(side, [["ip4", source, to], ["udp", "99", "99"], ["hex", name.hex()]])
        for attempt in range(40):
            self.sides[side].send(frame)
            until = time.monotonic() + (0.5 if attempt < 20 else 2)
            while time.monotonic() < until:
                for here in ("left", "right"):
                    for got in self.sides[here].read():
                        if b"mark " not in got:
                            collected[here].append(got)
                        elif name in got and here == other:
                            return
        sys.exit(f"nothing passes from {side} to {other}")

    def meet(self):
        """Has the router look for every host, as what follows from that comes later than what it is about."""
        ways = [("left", "10.0.1.2", "10.0.2."), ("right", "10.0.2.2", "10.0.1."), ("left", "fd00:1::2", "fd00:2::"), ("right", "fd00:2::2", "fd00:1::")]
        lines = [f"{side} eth R {'A' if side == 'left' else 'B'} / ip{'6' if ':' in source else '4'} {source} {to}{n} / udp 1 2"
                 for side, source, to in ways for n in (2, 9)]
        # These are told that they may not leave their link.
        lines += ["left eth R A / ip6 fe80::a fd00:2::2 / udp 1 2", "right eth R B / ip6 fe80::b fd00:1::2 / udp 1 2"]
        collected = {"left": [], "right": []}
        for _ in range(3):
            for line in lines:
                side, frame = build(line)
                self.sides[side].send(frame)
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                for name in ("left", "right"):
                    self.sides[name].read()
            self.mark("left", "right", collected)
            self.mark("right", "left", collected)

    def record(self, frame, side):
        other = "right" if side == "left" else "left"
        collected = {"left": [], "right": []}
        self.sides[side].send(frame)
        # The first is behind the frame at its side, the second behind whatever the router has sent back there.
        self.mark(side, other, collected)
        self.mark(other, side, collected)
        return [[got.hex() for got in collected[name]] for name in ("left", "right")]


def record(out, a_space, a_device, b_space, b_device, seed, count, limit=None):
    # One processor after the other would take turns at the queues of a device.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    recorder = Recorder(Side("left", a_space, a_device), Side("right", b_space, b_device))
    recorder.meet()
    cases = written()
    if limit:
        cases = random.Random(seed).sample(cases, min(int(limit), len(cases)))
    cases += made(int(seed), int(count))
    results = []
    for text, side, frame in cases:
        if len(frame) >= 14:
            results.append([text, frame.hex(), *recorder.record(frame, side)])
    with open(out, "w") as file:
        json.dump(results, file)
    print(f"{len(results)} frames")


# Comparing.

def compare(kernel, router, host, fragments=None):
    listed = {line["name"] for line in tomllib.load(open(f"{FOLDER}/differences.toml", "rb"))["difference"]}
    assert listed == JUDGES.keys() | MASKS.keys(), f"differences.toml and the functions here: {listed ^ (JUDGES.keys() | MASKS.keys())}"
    counts, wrong, total, left_out = dict.fromkeys(listed, 0), [], 0, 0
    for (text, frame, *theirs), (same, _, *ours) in zip(*(json.load(open(path)) for path in (kernel, router)), strict=True):
        assert text == same
        packet = Packet(bytes.fromhex(frame))
        theirs, ours = ([[bytes.fromhex(got) for got in side] for side in sides] for sides in (theirs, ours))
        is_hosts = host == "none" and packet.to in OWN4 | OWN6 and not is_plain_ping(packet)
        if is_hosts or fragments == "none" and packet.kind == 4 and packet.is_fragment:
            left_out += 1
            continue
        total += 1
        used = set()
        for got in sum(ours, []):
            # Masks take checksums away.
            sent = Packet(got)
            assert sent.kind != 4 or checksum(got[sent.at:sent.at + sent.header]) == 0, f"{text}: wrong checksum: {got.hex()}"
        for name, function in MASKS.items():
            after = [[[got for got in map(function, side) if got is not None] for side in sides] for sides in (theirs, ours)]
            if theirs != ours and after != [theirs, ours]:
                used.add(name)
            theirs, ours = after
        if theirs != ours:
            found = [name for name, function in JUDGES.items() if function(packet, theirs, ours)]
            if not found:
                wrong.append((text, theirs, ours))
            used |= set(found[:1])
        for name in used:
            counts[name] += 1
    for text, theirs, ours in wrong[:20]:
        show = lambda sides: " | ".join(",".join(got.hex() for got in side) or "nothing" for side in sides)
        print(f"{text}\n  kernel {show(theirs)}\n  router {show(ours)}")
    print(f"{total} frames compared, {left_out} left out, {len(wrong)} differ without a reason; " +
          ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count))
    sys.exit(bool(wrong))


def is_plain_ping(packet):
    ping = packet.body[:2] in (b"\x08\0", b"\x80\0")
    return ping and not packet.options and not packet.extensions and not packet.is_fragment


if __name__ == "__main__":
    {"record": record, "compare": compare}[sys.argv[1]](*sys.argv[2:])
