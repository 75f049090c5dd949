"""The contract of columns, `testdata/columns/contract.toml`, which every face passes: each case in every form that Python has of its kinds."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

import fibula
from conftest import REPOSITORY
from shared import arrow_type

CONTRACT = tomllib.loads((REPOSITORY / "testdata/columns/contract.toml").read_text())

INTEGERS = {"uint32", "int32", "uint64", "int64", "uint128"}


def table_of(routes: list[str]) -> fibula.Table:
    prefixes = [route.split(" ")[0] for route in routes]
    ids = [int(route.split(" ")[1]) for route in routes]
    return fibula.Table.build(prefixes, {"id": ids})


def cell(kind: str, text: str) -> Any:
    """Return an input of a kind; None is a null."""
    if text == "null":
        return None
    if kind in INTEGERS:
        return int(text)
    if text.startswith('"'):
        value = text[1:-1]
        return value.encode() if kind.endswith("_text") else value
    return bytes.fromhex(text.removeprefix("x"))


def forms(kind: str, case: dict[str, Any], cells: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the rows as each object that holds such a kind."""
    np = pytest.importorskip("numpy")
    strided, base = kind.startswith("strided_"), kind.removeprefix("strided_")
    # Buffers have no nulls: their rows are the others.
    there = [cell for cell in cells if cell is not None]
    if base in {"uint32", "int32", "uint64", "int64"}:
        array = np.array(there, dtype=base)
        if strided:
            wide = np.zeros((len(there), 3), dtype=base)
            wide[:, 1] = array
            yield "numpy strided", wide[:, 1]
            yield "numpy backwards", wide[::-1, 1][::-1]
        else:
            yield "numpy", array
            if base in {"uint32", "int32"}:
                yield "numpy big-endian", array.astype(array.dtype.newbyteorder(">"))
            yield "memoryview", memoryview(array)
    if base in {"fixed_4", "fixed_16"}:
        width = int(base.removeprefix("fixed_"))
        rows = np.frombuffer(b"".join(there), dtype="uint8").reshape(len(there), width)
        if strided:
            wide = np.zeros((len(there), width + 3), dtype="uint8")
            wide[:, 2 : width + 2] = rows
            yield "numpy records", wide[:, 2 : width + 2]
        else:
            yield "numpy rows of bytes", rows
            yield "numpy V", np.frombuffer(b"".join(there), dtype=f"V{width}")
            yield "list of bytes", cells
    if strided:
        return
    if base in {"binary"} and not case.get("text"):
        yield "list of bytes", cells
    if base == "string":
        yield "list of str", cells
        yield "iterator of str", iter(cells)
        yield "objects of numpy", np.array(cells, dtype=object)
        # NumPy cuts zeros at the end.
        if not any(text.endswith("\0") for text in there):
            yield "numpy U", np.array(there, dtype=str)
    if base == "uint128":
        yield "list of IPv6Address", [None if cell is None else ipaddress.IPv6Address(cell) for cell in cells]
    try:
        import pyarrow as pa
    except ImportError:
        return
    kind_of_arrow = arrow_type(pa, base)
    if kind_of_arrow is None:
        return
    if base in {"fixed_4", "fixed_16"}:
        cells = [cell if cell is None else bytes(cell) for cell in cells]
    array = pa.array(cells, type=kind_of_arrow)
    skip = case.get("skip", 0)
    if skip:
        around = pa.array([None] * skip, type=kind_of_arrow)
        yield "arrow sliced", pa.concat_arrays([around, array, around]).slice(skip, len(cells))
    else:
        yield "arrow", array
    middle = len(cells) // 2
    yield "arrow in chunks", pa.chunked_array([array.slice(0, middle), array.slice(middle), array.slice(0, 0)])


def answers(result: Any) -> list[int]:
    """Return ids from whatever holds them; 0 for none."""
    if hasattr(result, "__arrow_c_array__"):
        import pyarrow as pa

        return [value or 0 for value in pa.array(result).to_pylist()]
    if hasattr(result, "__arrow_c_stream__"):
        import pyarrow as pa

        return [value or 0 for value in pa.chunked_array(result).to_pylist()]
    return [0 if value is None else int(value) for value in result.tolist()]


def cases() -> list[Any]:
    found = []
    for case in CONTRACT["case"]:
        for kind in case["kinds"]:
            if "vrfs" not in case:
                found.append(pytest.param(kind, case, id=f"{case['name']}-{kind}"))
    return found


@pytest.mark.parametrize(("kind", "case"), cases())
def test_every_case_of_the_contract(kind: str, case: dict[str, Any]) -> None:
    table = table_of(CONTRACT["routes"])
    ids = {int(route.split(" ")[1]): row + 1 for row, route in enumerate(CONTRACT["routes"])}
    rows = [row.rsplit(" ", 1) for row in case["rows"]]
    expected = [0 if answer in {"none", "invalid"} else int(answer) for _, answer in rows]
    text = kind.endswith("_text") or bool(case.get("text"))
    base = kind.removesuffix("_text")
    options: dict[str, Any] = {"v4_mapped": case.get("v4_mapped", "ipv6"), "text": text}
    made: list[tuple[str, Any]]
    if "entries" in case:
        pa = pytest.importorskip("pyarrow")
        kind_of_arrow = arrow_type(pa, base)
        if kind_of_arrow is None:
            pytest.skip("Arrow has no such type")
        entries = pa.array([cell(base, entry) for entry in case["entries"]], type=kind_of_arrow)
        numbers = [None if given == "null" else int(given) for given, _ in rows]
        made = [("dictionary", pa.DictionaryArray.from_arrays(pa.array(numbers, type=pa.int32()), entries, safe=False))]
    else:
        made = list(forms(base, case, [cell(kind.removeprefix("strided_"), given) for given, _ in rows]))
    if not made:
        pytest.skip("Python has no such form")
    for name, addresses in made:
        taken = list(zip(rows, expected, strict=True))
        if name.startswith(("numpy", "memoryview")):
            taken = [one for one in taken if one[0][0] != "null"]
        wanted = [answer for _, answer in taken]
        wrong = [at for at, (row, _) in enumerate(taken) if row[1] == "invalid"]
        assert len(wrong) == case["invalid"]
        if name.startswith("iterator"):
            addresses = list(addresses)
            found = table.lookup_ids(iter(addresses), **options)
        else:
            found = table.lookup_ids(addresses, **options)
        assert answers(found) == [ids.get(value, 0) for value in wanted], name
        assert table.last_invalid == case["invalid"], name
        # Values too.
        values = table.lookup_many(addresses, **options)
        if isinstance(values, list):
            assert [value or 0 for value in values] == wanted, name
        elif hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
            assert answers(values) == wanted, name
        else:
            assert values.filled(0).tolist() == wanted, name
        if case["invalid"]:
            with pytest.raises(ValueError, match=rf"row {wrong[0]}: "):
                table.lookup_ids(addresses, invalid="raise", **options)
        else:
            table.lookup_ids(addresses, invalid="raise", **options)


@pytest.mark.parametrize("case", [case for case in CONTRACT["case"] if "vrfs" in case], ids=lambda case: case["name"])
def test_every_case_of_vrfs(case: dict[str, Any]) -> None:
    vrfs = fibula.Vrfs()
    # The table is VRF 0, which is there from the beginning, or the first that is made.
    numbers = [0, vrfs.create()] if 0 in vrfs.vrfs else [vrfs.create(), vrfs.create()]
    for number, routes in zip(numbers, ["routes", "routes_1"], strict=True):
        changes = [(route.split(" ")[0], int(route.split(" ")[1])) for route in CONTRACT[routes]]
        assert vrfs.apply(number, changes) == len(changes)
    rows = [row.rsplit(" ", 1) for row in case["rows"]]
    expected = [0 if answer in {"none", "invalid"} else int(answer) for _, answer in rows]
    columns = [numbers[vrf] if vrf < len(numbers) else vrf for vrf in case["vrfs"]]
    options: dict[str, Any] = {"v4_mapped": case.get("v4_mapped", "ipv6")}
    tried = 0
    for kind in case["kinds"]:
        if "entries" in case:
            pa = pytest.importorskip("pyarrow")
            entries = pa.array([cell(kind, entry) for entry in case["entries"]], type=arrow_type(pa, kind))
            numbers_of = pa.array([None if given == "null" else int(given) for given, _ in rows], type=pa.int32())
            made: Any = [("dictionary", pa.DictionaryArray.from_arrays(numbers_of, entries, safe=False))]
        else:
            made = forms(kind, case, [cell(kind.removeprefix("strided_"), given) for given, _ in rows])
        for name, addresses in made:
            taken = list(zip(rows, expected, columns, strict=True))
            if name.startswith(("numpy", "memoryview")):
                taken = [one for one in taken if one[0][0] != "null"]
            found = vrfs.lookup_ids([vrf for *_, vrf in taken], addresses, **options)
            assert answers(found) == [answer for _, answer, _ in taken], name
            assert vrfs.last_invalid == case["invalid"], name
            tried += 1
    assert tried > 0
