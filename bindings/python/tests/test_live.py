"""Tables that change, many tables in one, and route origin validation."""

from __future__ import annotations

import ipaddress
import random
import threading
import tomllib
from typing import Any

import pytest

import fibula
from conftest import REPOSITORY


def test_a_live_table_changes_and_is_looked_up() -> None:
    table = fibula.LiveTable(["10.0.0.0/8", "2001:db8::/32"], [1, 2])
    assert len(table) == 2 and table["10.0.0.0/8"] == 1 and table.get("10.0.0.0/9") is None
    table.insert("10.1.0.0/16", 3)
    assert table.lookup("10.1.2.3") == 3 and table.lookup("11.0.0.0") is None
    assert table.lookup_prefix("10.1.2.3") == (ipaddress.ip_network("10.1.0.0/16"), 3)
    assert table.lookup_ids(["10.1.2.3", "2001:db8::1", "x", None]).tolist() == [3, 2, 0, 0] and table.last_invalid == 1
    assert [id for _, id in table.covers("10.1.2.3")] == [1, 3]
    assert table.apply([("10.1.0.0/16", None), ("2001:db8::/32", 9), ("10.2.0.0/16", 4)], atomic=True) == 3
    still = table.snapshot()
    assert table.remove("10.2.0.0/16") and not table.remove("10.2.0.0/16")
    assert still.lookup("10.2.0.0") == 4 and table.lookup("10.2.0.0") == 1
    with pytest.raises(KeyError):
        table["10.9.0.0/16"]
    for bad in [[("10.0.0.0/8", 0)], [("10.0.0.0/33", 1)], [("10.0.0.0/8",)], [1], [("10.0.0.0/8", -1)]]:
        with pytest.raises((ValueError, TypeError), match="row 0: "):
            table.apply(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="row 1"):
        fibula.LiveTable(["10.0.0.0/8", "11.0.0.0/8"], [1, 0])
    with pytest.raises(ValueError):
        fibula.LiveTable(["10.0.0.0/8"])


def test_threads_change_and_look_up(np: Any) -> None:
    table = fibula.LiveTable(["0.0.0.0/0"], [1])
    addresses = np.random.default_rng(3).integers(0, 2**32, 100_000, dtype="uint32")
    is_done, wrong = threading.Event(), []

    def look_up() -> None:
        while not is_done.is_set():
            found = table.lookup_ids(addresses)
            if not np.isin(found, [1, 2]).all():
                wrong.append(found)

    running = [threading.Thread(target=look_up) for _ in range(3)]
    for thread in running:
        thread.start()
    for i in range(500):
        table.insert(f"{i % 200}.0.0.0/8", 2)
        table.remove(f"{(i + 7) % 200}.0.0.0/8")
    is_done.set()
    for thread in running:
        thread.join()
    assert wrong == []


def test_vrfs() -> None:
    vrfs = fibula.Vrfs()
    one, two = vrfs.create(), vrfs.create()
    vrfs.insert(one, "10.0.0.0/8", 1)
    assert vrfs.apply(two, [("10.0.0.0/8", 2), ("2001:db8::/32", 3)]) == 2
    assert vrfs.lookup(one, "10.0.0.1") == 1 and vrfs.lookup(one, "2001:db8::") is None and vrfs.count(two) == 2
    assert vrfs.lookup_ids([two, one, 99], ["2001:db8::", "2001:db8::", "10.0.0.1"]).tolist() == [3, 0, 0]
    for rows in [[one], [one] * 3]:
        with pytest.raises(ValueError, match="differ in length"):
            vrfs.lookup_ids(rows, ["10.0.0.1", "10.0.0.2"])
    with pytest.raises(ValueError, match="vrfs, row 1"):
        vrfs.lookup_ids([one, -1], ["10.0.0.1", "10.0.0.2"])
    assert vrfs.remove(one, "10.0.0.0/8")
    vrfs.delete(two)
    assert two not in vrfs.vrfs
    with pytest.raises(KeyError):
        vrfs.insert(two, "10.0.0.0/8", 1)


def test_chunks_of_vrfs(pa: Any) -> None:
    vrfs = fibula.Vrfs()
    numbers = [vrfs.create(), vrfs.create()]
    for number in numbers:
        vrfs.insert(number, "10.0.0.0/8", number + 1)
    addresses = pa.chunked_array([["10.0.0.1", "x"], ["10.0.0.1"]])
    found = vrfs.lookup_ids([numbers[0], numbers[0], numbers[1]], addresses)
    assert pa.chunked_array(found).to_pylist() == [numbers[0] + 1, None, numbers[1] + 1]
    for count in [2, 4]:
        with pytest.raises(ValueError, match="differ in length"):
            vrfs.lookup_ids([0] * count, addresses)


def test_origin_validation_has_the_states_of_the_rfc(pa: Any, tmp_path: Any) -> None:
    for case in tomllib.loads((REPOSITORY / "testdata/rpki/origin-validation.toml").read_text())["case"]:
        roas = [roa.replace("-", " ").split() for roa in case["roas"]]
        columns = [roa[0] for roa in roas], [int(roa[1]) for roa in roas], [int(roa[2]) for roa in roas]
        routes = [route.split() for route in case["routes"]]
        prefixes = [route[0] for route in routes]
        asns = [None if route[1] == "-" else int(route[1]) for route in routes]
        states = fibula.rov(prefixes, asns, columns)
        # The file has one state for both kinds of invalid.
        assert [state.split("-")[0] if state.startswith("invalid") else state for state in states] == [r[2] for r in routes]
        assert pa.array(fibula.rov(pa.array(prefixes), pa.array(asns, pa.uint32()), fibula.Vrps(*columns))).to_pylist() == states
    path = tmp_path / "vrps.csv"
    path.write_text("ASN,IP Prefix,Max Length,Trust Anchor\nAS64500,192.0.2.0/24,24,x\n")
    assert fibula.rov(["192.0.2.0/24", "192.0.2.0/24"], [64500, 7], path) == ["valid", "invalid-as"]
    assert len(fibula.Vrps.read(path)) == 1
    with pytest.raises(ValueError, match="row 0"):
        fibula.Vrps(["10.0.0.0/8"], [7], [1])
    with pytest.raises(ValueError, match="asns, row 1"):
        fibula.rov(["10.0.0.0/8"] * 2, [1, "x"], path)
    with pytest.raises(FileNotFoundError):
        fibula.rov([], [], tmp_path / "absent")
    with pytest.raises(ValueError, match="not validated ROA payloads"):
        path.write_text("hello")
        fibula.Vrps.read(path)


def test_a_live_table_against_a_dictionary() -> None:
    generator = random.Random(5)
    table, model = fibula.LiveTable(), {}
    for _ in range(3000):
        length = generator.randint(0, 12)
        prefix = ipaddress.ip_network((generator.getrandbits(12) << 20 & (0xFFFFFFFF << 32 - length) & 0xFFFFFFFF, length))
        if generator.random() < 0.6:
            model[prefix] = generator.randint(1, 9)
            table.insert(prefix, model[prefix])
        else:
            assert table.remove(prefix) == (model.pop(prefix, None) is not None)
        address = ipaddress.ip_address(generator.getrandbits(12) << 20)
        found = [prefix for prefix in model if address in prefix]
        expected = model[max(found, key=lambda prefix: prefix.prefixlen)] if found else None
        assert table.lookup(address) == expected
    assert len(table) == len(model)
