"""Random columns of every kind against a reader that asks row by row. `FIBULA_FUZZ_SECONDS` is how long; `.ci/scheduled python-columns` runs two half hours."""

from __future__ import annotations

import ipaddress
import os
import random
import time
from typing import Any

import pytest

import fibula

SECONDS = float(os.environ.get("FIBULA_FUZZ_SECONDS", "2"))

TABLE = {f"{a}.0.0.0/8": a + 1 for a in range(0, 250, 3)} | {"10.1.0.0/16": 301, "2001:db8::/32": 302, "2001:db8:1::/48": 303, "::/3": 304}


def texts(generator: random.Random) -> str:
    match generator.randint(0, 7):
        case 0 | 1 | 2:
            return str(ipaddress.IPv4Address(generator.getrandbits(32)))
        case 3:
            return str(ipaddress.IPv6Address(0x20010DB8 << 96 | generator.getrandbits(90)))
        case 4:
            return str(ipaddress.IPv6Address(generator.getrandbits(128)))
        case 5:
            return f"::ffff:{ipaddress.IPv4Address(generator.getrandbits(32))}"
        case 6:
            good = str(ipaddress.IPv4Address(generator.getrandbits(32)))
            at = generator.randrange(len(good))
            return good[:at] + generator.choice("0.:x/% \u00e4") + good[at:]
        case _:
            return "".join(generator.choice("0123456789abcdef.:") for _ in range(generator.randint(0, 20)))


def read(cell: Any) -> Any:
    """Return the address of a row as an object of `ipaddress`, or None."""
    if cell is None:
        return None
    try:
        if isinstance(cell, str):
            # `ipaddress` takes zones, which are no addresses here.
            return None if "%" in cell or not cell.isascii() else ipaddress.ip_address(cell)
        if isinstance(cell, bytes):
            return ipaddress.ip_address(cell) if len(cell) in (4, 16) else None
        return ipaddress.IPv4Address(cell) if 0 <= cell < 2**32 else None
    except ValueError:
        return None


def columns(generator: random.Random) -> tuple[Any, list[Any]]:
    """Return a column and its rows as plain objects; integers are those of IPv4."""
    np, rows = pytest.importorskip("numpy"), generator.choice([0, 1, 5, 64, 255, 256, 257, 700])
    kind = generator.randint(0, 8)
    if kind == 0:
        size = generator.choice(["uint32", "int32", "uint64", "int64"])
        wide = np.frombuffer(generator.randbytes(rows * 3 * np.dtype(size).itemsize), dtype=size).copy().reshape(rows, 3)
        if size.endswith("64"):
            wide &= np.array(0x1_FFFF_FFFF, dtype=size)
        column = [wide[:, 1], wide[::-1, 0], np.ascontiguousarray(wide[:, 2]), wide.reshape(-1)[::3]][generator.randrange(4)]
        return column, [int(one) & 0xFFFFFFFF if size == "int32" else int(one) for one in column]
    if kind == 1:
        width = generator.choice([4, 16])
        wide = np.frombuffer(generator.randbytes(rows * (width + 5)), dtype="uint8").reshape(rows, width + 5)
        column = wide[:: generator.choice([1, 2, -1]), 3 : 3 + width]
        return column, [bytes(one) for one in column]
    if kind == 2:
        cells = [generator.getrandbits(32) for _ in range(rows)]
        return np.array(cells, dtype=">u4"), cells
    if kind == 3:
        cells = [texts(generator) if generator.random() < 0.9 else None for _ in range(rows)]
        return cells, cells
    if kind == 4:
        made: list[Any] = []
        for _ in range(rows):
            made.append(generator.choice([texts(generator), None, generator.getrandbits(32), generator.randbytes(generator.choice([4, 16, 5]))]))
        return (made if generator.random() < 0.5 else tuple(made)), made
    pa = pytest.importorskip("pyarrow")
    skip, count = generator.choice([0, 1, 7, 9]), rows
    match generator.randint(0, 3):
        case 0:
            cells = [texts(generator) for _ in range(count + 2 * skip)]
            type_ = generator.choice([pa.string(), pa.large_string(), pa.string_view()])
        case 1:
            cells = [generator.randbytes(generator.choice([4, 16, 4, 16, 3])) for _ in range(count + 2 * skip)]
            type_ = generator.choice([pa.binary(), pa.large_binary(), pa.binary_view()])
        case 2:
            width = generator.choice([4, 16])
            cells, type_ = [generator.randbytes(width) for _ in range(count + 2 * skip)], pa.binary(width)
        case _:
            type_ = generator.choice([pa.uint32(), pa.uint64(), pa.int64()])
            cells = [generator.getrandbits(32 if type_ == pa.uint32() else 33) for _ in range(count + 2 * skip)]
    cells = [None if generator.random() < generator.choice([0.0, 0.2]) else cell for cell in cells]
    array = pa.array(cells, type=type_)
    if generator.random() < 0.2 and "view" not in str(type_):
        array = array.dictionary_encode()
    array = array.slice(skip, count)
    if generator.random() < 0.4:
        cuts = sorted(generator.randint(0, count) for _ in range(generator.randint(0, 3)))
        ends = [0, *cuts, count]
        parts = [array.slice(a, b - a) for a, b in zip(ends, ends[1:], strict=False)]
        return pa.chunked_array(parts, type=array.type), cells[skip : skip + count]
    return array, cells[skip : skip + count]


def test_random_columns_row_by_row() -> None:
    table = fibula.Table.build(list(TABLE), list(TABLE.values()))
    live = fibula.LiveTable(list(TABLE), list(TABLE.values()))
    seed, rows, end = int(os.environ.get("FIBULA_FUZZ_SEED", "0")), 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        seed += 1
        column, cells = columns(random.Random(seed))
        addresses = [read(cell) for cell in cells]
        expected = [0 if one is None else table.lookup(one) or 0 for one in addresses]
        invalid = sum(one is None and cell is not None for one, cell in zip(addresses, cells, strict=True))
        for owner, found in [(table, table.lookup_many(column)), (live, live.lookup_ids(column))]:
            if hasattr(found, "__arrow_c_array__") or hasattr(found, "__arrow_c_stream__"):
                import pyarrow as pa

                made = pa.array(found) if hasattr(found, "__arrow_c_array__") else pa.chunked_array(found)
                answer = [one or 0 for one in made.to_pylist()]
            else:
                answer = [one or 0 for one in (found if isinstance(found, list) else found.tolist())]
            assert answer == expected, f"FIBULA_FUZZ_SEED={seed - 1}"
            assert owner.last_invalid == invalid, f"FIBULA_FUZZ_SEED={seed - 1}"
        rows += len(cells)
    print(f"{seed} columns, {rows} rows")
    assert rows > 1000
