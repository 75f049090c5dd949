"""The questions of `testdata/sql`, which every engine passes: columns of one call, kind and argument, with their answers."""

from __future__ import annotations

import csv
import json
import pathlib
from typing import Any, NamedTuple

import pytest

import fibula
from conftest import REPOSITORY

FOLDER = REPOSITORY / "testdata/sql"
VRPS = FOLDER / "vrps.csv"

TYPES = {"name": str, "country": str, "asn": int, "bytes": int, "offset": int, "latitude": float, "tunnel": lambda text: text == "true"}


class Asked(NamedTuple):
    """Rows that one call looks up at once."""

    call: str
    kind: str
    # The column of values; the rows of `rov` have ASes.
    argument: Any
    addresses: list[Any]
    asns: list[Any]
    answers: list[Any]
    invalid: list[int]

    @property
    def name(self) -> str:
        return "-".join(filter(None, [self.call, self.kind, self.argument]))


def routes() -> tuple[list[str], dict[str, list[Any]]]:
    """Return the prefixes, and the values by column, with their types."""
    with (FOLDER / "routes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    values = {name: [make(row[name]) if row[name] else None for row in rows] for name, make in TYPES.items()}
    return [row["prefix"] for row in rows], values


def table() -> fibula.Table:
    """Return the table of the questions."""
    pa = pytest.importorskip("pyarrow")
    types = {"name": pa.string(), "country": pa.string(), "asn": pa.uint32(), "bytes": pa.uint64(), "offset": pa.int64(), "latitude": pa.float64(), "tunnel": pa.bool_()}
    prefixes, values = routes()
    return fibula.Table.build(prefixes, {name: pa.array(values[name], kind) for name, kind in types.items()})


def saved(folder: pathlib.Path) -> str:
    """Write the table, and return its path."""
    path = folder / "questions.fibula"
    table().save(path)
    return str(path)


def questions() -> list[Asked]:
    """Return all questions, by call, kind and argument."""
    found: dict[tuple[str, str, Any], Asked] = {}
    for line in (FOLDER / "questions.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        call, kind, *cells, invalid = line.split("\t")
        address, argument, answer = map(json.loads, cells)
        column = None if call == "rov" else argument
        asked = found.setdefault((call, kind, column), Asked(call, kind, column, [], [], [], []))
        if kind in {"fixed_4", "fixed_16", "binary"} and address is not None:
            address = bytes.fromhex(address)
        if invalid:
            asked.invalid.append(len(asked.addresses))
        asked.addresses.append(address)
        asked.asns.append(argument)
        asked.answers.append(answer)
    assert sum(len(asked.addresses) for asked in found.values()) >= 200
    return list(found.values())


def answered(answers: list[Any]) -> list[Any]:
    """Return answers with missing ones as None, whatever an engine calls them."""
    return [None if type(answer).__name__ in {"NAType", "NaTType"} or answer != answer else answer for answer in answers]
