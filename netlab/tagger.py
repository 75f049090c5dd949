#!/usr/bin/env python3
"""A peer with VLANs, for kernels without VLAN devices: makes a tap whose frames leave a device with tags, and that has the frames of the
device with these tags, without them. Offloads go along in both directions: packets of several segments, checksums left to others.
The MTU of the device must have room for all tags but one.

    tagger.py DEVICE TAP TAG...    a TAG is 0x8100:VLAN or 0x88a8:VLAN, the outer one first
"""

import errno
import fcntl
import os
import select
import socket
import struct
import sys

PACKET, VNET_HDR, AUXDATA, ALL = 263, 15, 8, 3
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
device, name = sys.argv[1:3]
tags = [tuple(int(part, 0) for part in tag.split(":")) for tag in sys.argv[3:]]
header = b"".join(struct.pack("!HH", *tag) for tag in tags)

tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
# A tap without packet information and with a virtio header, which takes TCP segments and open checksums.
fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), 0x5002))
fcntl.ioctl(tap, TUNSETOFFLOAD, 7)
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
wire.setsockopt(PACKET, VNET_HDR, 1)
wire.setsockopt(PACKET, AUXDATA, 1)
for size in (33, 32):  # SO_RCVBUFFORCE, SO_SNDBUFFORCE
    wire.setsockopt(socket.SOL_SOCKET, size, 8 << 20)
wire.bind((device, ALL))
wire.setblocking(False)


def moved(front, by):
    """The virtio header of a frame whose Ethernet header has grown by so many bytes."""
    flags, kind, length, size, start, offset = struct.unpack("=BBHHHH", front)
    return struct.pack("=BBHHHH", flags, kind, length and length + by, size, start and start + by, offset)


def to_wire():
    try:
        frame = os.read(tap, 70000)
        front, frame = frame[:10], frame[10:]
        wire.send(moved(front, len(header)) + frame[:12] + header + frame[12:])
    except OSError as error:
        # Down, or no room: as a wire, it loses the frame. One that is too long would be lost again and again.
        if error.errno == errno.EMSGSIZE:
            print(f"{device}: too long with its tags: {len(frame)} bytes", file=sys.stderr, flush=True)


def from_wire():
    try:
        data, more, _, address = wire.recvmsg(70000, 256)
    except OSError:
        return
    if address[2] == socket.PACKET_OUTGOING:
        return
    front, frame, taken = data[:10], data[10:], b""
    for level, kind, aux in more:
        if (level, kind) == (PACKET, AUXDATA):
            status, _, _, _, _, control, ether_type = struct.unpack("IIIHHHH", aux[:20])
            if status & 0x10:
                taken = struct.pack("!HH", ether_type if status & 0x40 else 0x8100, control & 0xFFF)
    rest = header.removeprefix(taken)
    # The kernel takes the outer tag out; the others are in the frame.
    if not taken and tags or len(rest) != len(header) - len(taken) or frame[12 : 12 + len(rest)] != rest:
        return
    ether_type = frame[12 + len(rest) : 14 + len(rest)]
    if ether_type in (b"\x81\x00", b"\x88\xa8"):
        return
    try:
        os.write(tap, moved(front, -len(rest)) + frame[:12] + frame[12 + len(rest) :])
    except OSError:
        pass


while True:
    for ready in select.select([tap, wire], [], [])[0]:
        to_wire() if ready == tap else from_wire()
