"""Writes databases of MaxMind's form, to try readers with: every type of values, each size of nodes, aliases, and damage.

By the MaxMind DB File Format Specification 2.0.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Any, NamedTuple


class Single(float):
    """A number that is written in 4 bytes."""


class Uint16(int):
    """A number of the type uint16."""


class Uint64(int):
    """A number of the type uint64."""


def control(kind: int, size: int) -> bytes:
    """Return the first bytes of a value: its type and its size."""
    high = kind << 5 if kind <= 7 else 0
    extended = b"" if kind <= 7 else bytes([kind - 7])
    if size < 29:
        return bytes([high | size]) + extended
    if size < 285:
        return bytes([high | 29]) + extended + bytes([size - 29])
    if size < 65_821:
        return bytes([high | 30]) + extended + (size - 285).to_bytes(2, "big")
    return bytes([high | 31]) + extended + (size - 65_821).to_bytes(3, "big")


def pointer(to: int) -> bytes:
    """Return a pointer, in the fewest bytes."""
    if to < 2048:
        return bytes([0x20 | to >> 8, to & 0xFF])
    if to < 526_336:
        to -= 2048
        return bytes([0x28 | to >> 16]) + (to & 0xFFFF).to_bytes(2, "big")
    if to < 526_336 + (1 << 27):
        to -= 526_336
        return bytes([0x30 | to >> 24]) + (to & 0xFFFFFF).to_bytes(3, "big")
    return b"\x38" + to.to_bytes(4, "big")


class Data:
    """A data section, whose texts and records are there once."""

    def __init__(self, with_pointers: bool = True) -> None:
        self.bytes = bytearray()
        self.texts: dict[str, int] = {}
        self.records: dict[bytes, int] = {}
        self.with_pointers = with_pointers

    def encode(self, value: Any) -> bytes:
        match value:
            case bool():
                return control(14, int(value))
            case str():
                if self.with_pointers and len(value) > 2:
                    if value not in self.texts:
                        self.texts[value] = len(self.bytes)
                        self.bytes += control(2, len(value.encode())) + value.encode()
                    return pointer(self.texts[value])
                return control(2, len(value.encode())) + value.encode()
            case bytes() | bytearray():
                return control(4, len(value)) + bytes(value)
            case Single():
                return control(15, 4) + struct.pack("!f", value)
            case float():
                return control(3, 8) + struct.pack("!d", value)
            case int():
                if value < 0:
                    return control(8, 4) + struct.pack("!i", value)
                kind = 5 if isinstance(value, Uint16) else 6 if value < 2**32 and not isinstance(value, Uint64) else 9 if value < 2**64 else 10
                size = (value.bit_length() + 7) // 8
                return control(kind, size) + value.to_bytes(size, "big")
            case dict():
                return control(7, len(value)) + b"".join(self.encode(key) + self.encode(one) for key, one in value.items())
            case list():
                return control(11, len(value)) + b"".join(map(self.encode, value))
        raise TypeError(value)

    def place(self, value: Any) -> int:
        encoded = self.encode(value)
        if encoded not in self.records:
            self.records[encoded] = len(self.bytes)
            self.bytes += encoded
        return self.records[encoded]


class Leaf(NamedTuple):
    place: int


Node = list[Any]


def tree_of(networks: dict[Any, int], version: int) -> Node:
    """Return nodes of two halves, of networks and the places of their records; shorter ones first, so that longer ones split them."""
    root: Node = [None, None]
    width = 128 if version == 6 else 32
    for network in sorted(networks, key=lambda one: one.prefixlen + (96 if version == 6 and one.version == 4 else 0)):
        bits, length = int(network.network_address), network.prefixlen + width - network.max_prefixlen
        node = root
        for depth in range(length):
            side = bits >> (width - 1 - depth) & 1
            if depth == length - 1:
                node[side] = Leaf(networks[network])
            else:
                if not isinstance(node[side], list):
                    node[side] = [node[side], node[side]]
                node = node[side]
    return root


def database(
    networks: dict[Any, Any],
    *,
    version: int = 6,
    record_bits: int = 24,
    with_pointers: bool = True,
    aliases: tuple[str, ...] = (),
    metadata: dict[str, Any] | None = None,
) -> bytes:
    """Return a database of networks of `ipaddress` and their records. ``aliases`` lead to the part of IPv4."""
    data = Data(with_pointers)
    root = tree_of({network: data.place(record) for network, record in networks.items()}, version)
    if aliases:
        part = root
        for _ in range(96):
            part = part[0]
        for alias in map(ipaddress.IPv6Network, aliases):
            node = root
            for depth in range(alias.prefixlen):
                side = int(alias.network_address) >> (127 - depth) & 1
                if depth == alias.prefixlen - 1:
                    node[side] = part
                else:
                    if not isinstance(node[side], list):
                        node[side] = [node[side], node[side]]
                    node = node[side]
    numbers: dict[int, int] = {}
    order: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in numbers:
            numbers[id(node)] = len(order)
            order.append(node)
            waiting.extend(half for half in node if isinstance(half, list))
    tree = bytearray()
    for node in order:
        left, right = (
            numbers[id(half)] if isinstance(half, list) else len(order) if half is None else len(order) + 16 + half.place for half in node
        )
        if record_bits == 28:
            tree += (left & 0xFFFFFF).to_bytes(3, "big") + bytes([left >> 24 << 4 | right >> 24]) + (right & 0xFFFFFF).to_bytes(3, "big")
        else:
            tree += left.to_bytes(record_bits // 8, "big") + right.to_bytes(record_bits // 8, "big")
    said = {
        "node_count": len(order),
        "record_size": Uint16(record_bits),
        "ip_version": Uint16(version),
        "database_type": "Test",
        "languages": ["en", "de"],
        "binary_format_major_version": Uint16(2),
        "binary_format_minor_version": Uint16(0),
        "build_epoch": Uint64(1_700_000_000),
        "description": {"en": "of a test"},
        **(metadata or {}),
    }
    return bytes(tree) + bytes(16) + bytes(data.bytes) + b"\xab\xcd\xefMaxMind.com" + Data(with_pointers=False).encode(said)
