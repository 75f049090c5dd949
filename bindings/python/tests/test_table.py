"""Tables: made, opened, saved, looked up, listed, sent to other processes."""

from __future__ import annotations

import array
import asyncio
import ipaddress
import multiprocessing
import os
import pathlib
import pickle
import threading
import warnings
from typing import Any

import pytest

import fibula
import fibula._pickle
from conftest import ROUTES


def test_lookup_takes_every_kind_of_address(table: fibula.Table) -> None:
    four: list[Any] = ["10.1.2.3", 0x0A010203, bytes([10, 1, 2, 3]), ipaddress.IPv4Address("10.1.2.3")]
    six = ipaddress.IPv6Address("2001:db8::1")
    for address in four:
        assert table.lookup(address, "asn") == 3
    for address in ["2001:db8::1", int(six), six.packed, six]:
        assert table.lookup(address, "asn") == 11
    assert table.lookup("10.2.0.0") == {"asn": 2, "country": "FR", "latitude": 48.8}
    assert table.lookup("10.1.0.0") == {"asn": 3, "country": None, "latitude": 0.0}
    assert table.lookup("203.0.113.1") is None and table.lookup("203.0.113.1", "asn") is None
    assert table.lookup_id("203.0.113.1") == 0
    assert table.lookup_prefix("10.1.2.3", "asn") == (ipaddress.ip_network("10.1.0.0/16"), 3)
    assert table.lookup_prefix("203.0.113.1") is None


def test_one_column_or_none_answers_a_value_or_an_id() -> None:
    assert fibula.Table.build(["10.0.0.0/8"], [64500]).lookup("10.0.0.1") == 64500
    table = fibula.Table.build(["10.0.0.0/8", "10.1.0.0/16"])
    assert (table.lookup("10.0.0.1"), table.lookup("10.1.0.1"), table.lookup("11.0.0.0")) == (1, 2, None)
    assert table.columns == {} and table.lookup_many(["10.1.0.1"]) == array.array("I", [2])
    assert fibula.Table.build({"10.0.0.0/8": "ours"}).lookup("10.0.0.1") == "ours"


def test_exact_covers_and_iteration(table: fibula.Table) -> None:
    networks = [ipaddress.ip_network(prefix) for prefix in ROUTES]
    assert list(table) == networks and len(table) == len(networks)
    assert list(table.items("asn")) == list(zip(networks, ROUTES.values(), strict=True))
    assert table["10.0.0.0/8"]["asn"] == 2 and networks[0] in table and "10.0.0.0/9" not in table
    assert table.get("10.0.0.0/9", 7) == 7
    with pytest.raises(KeyError):
        table["10.0.0.0/9"]
    assert [value for _, value in table.covers("10.1.0.0/17", "asn")] == [1, 2, 3]
    assert table.covers("2001:db8::1", "country") == [(networks[4], "SE")]
    # More routes than an iterator fetches at a time, of both families, from memory and from a file.
    many = [f"10.{i // 256}.{i % 256}.0/24" for i in range(1000)] + [f"2001:db8:{i:x}::/48" for i in range(700)]
    built = fibula.Table.build(many)
    opened = fibula.Table.open(built.to_bytes())
    expected = sorted((ipaddress.ip_network(one) for one in many), key=lambda one: (one.version, one))  # type: ignore[arg-type]
    assert list(built) == list(opened) == expected


def test_files_are_saved_opened_and_mapped(table: fibula.Table, saved: pathlib.Path) -> None:
    for opened in [
        fibula.Table.open(saved),
        fibula.Table.open(str(saved), mapped=True),
        fibula.Table.open(saved, mapped=True, verify=False),
        fibula.Table.open(saved.read_bytes()),
        fibula.Table.open(memoryview(saved.read_bytes())),
    ]:
        assert list(opened.items()) == list(table.items())
        assert opened.columns == {"asn": "u32", "country": "text", "latitude": "f64"}
        assert opened.engines == table.engines and opened.nbytes > 0
    mapped = fibula.Table.open(saved, mapped=True)
    assert mapped.mapped and mapped.stamp == fibula.Table.open(saved).stamp and table.stamp is None
    again = saved.with_name("again")
    mapped.save(again)
    assert again.read_bytes() == saved.read_bytes()


def test_feeds_are_read_with_typed_values(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "sites.csv"
    path.write_text("prefix,asn,country\n192.0.2.0/24,64500,NL\n2001:db8::/32,64501,\n")
    table = fibula.Table.read(path, value=["asn", "country:text"])
    assert table.columns == {"asn": "u32", "country": "text"}
    assert table.lookup("192.0.2.1") == {"asn": 64500, "country": "NL"}
    routes = tmp_path / "routes.txt"
    routes.write_text("10.0.0.0/8 192.0.2.1\n10.0.0.0/33 192.0.2.2\n")
    assert fibula.Table.read(str(routes)).lookup("10.1.1.1") == "192.0.2.1"
    with pytest.raises(ValueError, match="33"):
        fibula.Table.read(routes, strict=True)
    with pytest.raises(FileNotFoundError):
        fibula.Table.read(tmp_path / "absent")
    with pytest.raises(ValueError, match="no form"):
        fibula.Table.read(routes, format="papyrus")
    assert len(fibula.Table.read(routes, path, value="asn")) == 3


def test_build_takes_columns(np: Any) -> None:
    addresses, lengths = np.array([0x0A000000, 0x0A010000], dtype="uint32"), np.array([8, 16], dtype="uint8")
    table = fibula.Table.build((addresses, lengths), {"n": np.array([-1, 5]), "b": [True, None]})
    assert table.columns == {"n": "i64", "b": "bool"}
    assert table.lookup("10.1.0.0") == {"n": 5, "b": None} and table.lookup("10.2.0.0") == {"n": -1, "b": True}
    networks = [ipaddress.ip_network("10.0.0.0/8"), ("10.1.0.0", 16), ipaddress.ip_interface("192.0.2.1/24")]
    assert fibula.Table.build(networks, [b"x", b"y", b"z"]).lookup("192.0.2.7") == b"z"
    # Values that are equal share an id; numbers of several kinds are widened.
    assert fibula.Table.build(["10.0.0.0/8", "11.0.0.0/8"], [7, 7]).lookup_id("11.0.0.0") == 1
    assert fibula.Table.build(["10.0.0.0/8", "11.0.0.0/8"], [7, 1.5]).columns == {"value": "f64"}
    for values, kind in [([7, 2**40], "i64"), ([2**63, 2**40, 7], "u64"), ([7, 2**40, 2**63], "u64"), ([-7, 2**40], "i64"), ([1.5, -1, 2**63], "f64")]:
        built = fibula.Table.build([f"{10 + row}.0.0.0/8" for row in range(len(values))], values)
        assert built.columns == {"value": kind}
        assert [built.lookup(f"{10 + row}.0.0.0") for row in range(len(values))] == values
    assert fibula.Table.build(["10.0.0.1/8"], [7], host_bits="mask").lookup("10.0.0.0") == 7
    assert fibula.Table.build(["10.0.0.0/8"] * 2, [7, 8], duplicates="last").lookup("10.0.0.0") == 8
    assert fibula.Table.build(["10.0.0.0/8"], engine="dir-18-lines").engines[0] == "dir-18-lines"


def test_values_are_typed_columns(table: fibula.Table, np: Any) -> None:
    addresses = np.array([0x0A020000, 0xCB007101, 0x0A010000], dtype="uint32")
    asn = table.lookup_many(addresses, "asn")
    assert asn.dtype == "uint32" and asn.tolist() == [2, None, 3]
    latitude = table.lookup_many(addresses, "latitude")
    assert latitude[0] == 48.8 and np.isnan(latitude[1]) and latitude[2] == 0.0
    assert table.lookup_many(addresses, "country").tolist() == ["FR", None, None]
    assert table.lookup_many(addresses.tolist(), "country") == ["FR", None, None]
    with pytest.raises(ValueError, match="'asn', 'country', 'latitude'"):
        table.lookup_many(addresses)
    with pytest.raises(ValueError, match="no column 'x'"):
        table.lookup_many(addresses, "x")


def test_values_of_arrow(table: fibula.Table, pa: Any) -> None:
    addresses = pa.array(["10.2.0.0", None, "203.0.113.1", "x", "10.1.0.0", "2001:db8::"])
    asn = pa.array(table.lookup_many(addresses, "asn"))
    assert asn.type == pa.uint32() and asn.to_pylist() == [2, None, None, None, 3, 11]
    assert table.last_invalid == 1
    country = pa.array(table.lookup_many(addresses, "country"))
    assert pa.types.is_dictionary(country.type)
    assert country.to_pylist() == ["FR", None, None, None, None, "SE"]
    plain = pa.array(table.lookup_many(addresses, "country", dictionary=False))
    assert plain.type == pa.large_string() and plain.to_pylist() == country.to_pylist()
    chunks = pa.chunked_array([addresses, addresses.slice(1, 2), addresses.slice(0, 0)])
    found = table.lookup_many(chunks, "country")
    assert len(found) == 8
    assert pa.chunked_array(found).to_pylist() == country.to_pylist() + country.to_pylist()[1:3]
    # A result may be taken twice.
    assert pa.chunked_array(found).num_chunks == 3
    assert pa.chunked_array(table.lookup_many(pa.chunked_array([], pa.string()), "country")).to_pylist() == []
    with pytest.raises(ValueError, match="row 9: 'x'"):
        table.lookup_ids(pa.chunked_array([addresses.slice(0, 3), addresses.slice(0, 3), addresses]), invalid="raise")
    with pytest.raises(TypeError, match="float|'f'|'g'"):
        table.lookup_ids(pa.array([1.5]))
    with pytest.raises(TypeError):
        table.lookup_ids(pa.table({"a": addresses}))


def test_polars_and_pandas(table: fibula.Table) -> None:
    polars = pytest.importorskip("polars")
    texts = polars.Series(["10.2.0.0", None, "x"])
    assert polars.Series(table.lookup_many(texts, "asn")).to_list() == [2, None, None]
    numbers = polars.Series([0x0A020000, 0], dtype=polars.UInt32)
    assert polars.Series(table.lookup_ids(numbers)).to_list() == [2, 1]
    pandas = pytest.importorskip("pandas")
    assert table.lookup_ids(pandas.Series([0x0A020000], dtype="uint32")).tolist() == [2]
    import pyarrow

    found = table.lookup_many(pandas.Series(["10.2.0.0", "x"]), "asn")
    read = pyarrow.chunked_array(found) if hasattr(found, "__arrow_c_stream__") else pyarrow.array(found)
    assert read.to_pylist() == [2, None]
    categories = pandas.Series(["10.2.0.0", "10.1.0.0", "10.2.0.0"], dtype="category")
    found = table.lookup_many(categories, "asn")
    read = pyarrow.chunked_array(found) if hasattr(found, "__arrow_c_stream__") else pyarrow.array(found)
    assert read.to_pylist() == [2, 3, 2]


def test_out_is_filled_and_returned(table: fibula.Table, np: Any) -> None:
    addresses = np.arange(0x0A000000, 0x0A000000 + 100_000, dtype="uint32")
    out = np.zeros(len(addresses), dtype="uint32")
    assert table.lookup_ids(addresses, out=out, threads=2) is out
    assert (out == table.lookup_ids(addresses)).all() and (out[:65_536] == 2).all()
    out = array.array("I", [9])
    assert table.lookup_ids(["10.2.0.0"], out=out) is out and out[0] == 2


def test_threads_share_a_table(table: fibula.Table, np: Any) -> None:
    addresses = np.random.default_rng(1).integers(0, 2**32, 200_000, dtype="uint32")
    expected = table.lookup_ids(addresses).tolist()
    wrong = []

    def look_up() -> None:
        for threads in [1, 2, 1]:
            if table.lookup_ids(addresses, threads=threads).tolist() != expected:
                wrong.append(threads)

    running = [threading.Thread(target=look_up) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert wrong == []


def test_asyncio_runs_lookups_beside_each_other(table: fibula.Table) -> None:
    async def all_of() -> list[Any]:
        return await asyncio.gather(*(asyncio.to_thread(table.lookup_many, ["10.2.0.0"] * 100, "asn") for _ in range(8)))

    assert asyncio.run(all_of()) == [[2] * 100] * 8


def test_a_table_outlives_a_fork(table: fibula.Table, saved: pathlib.Path) -> None:
    mapped = fibula.Table.open(saved, mapped=True)
    with warnings.catch_warnings():
        # Newer versions of Python warn of forks of processes with threads.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        good = table.lookup("10.2.0.0", "asn") == 2 and mapped.lookup_many(["10.2.0.0"] * 100, "asn") == [2] * 100
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def worker(table: fibula.Table) -> tuple[Any, str | None, bool]:
    return table.lookup_many(["10.2.0.0", "x"], "asn"), table.stamp, table.mapped


def test_spawned_processes_open_the_file(table: fibula.Table, saved: pathlib.Path) -> None:
    mapped = fibula.Table.open(saved, mapped=True)
    assert len(pickle.dumps(mapped)) < 300
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(worker, (mapped,)) == ([2, None], mapped.stamp, True)
        # One that was built is sent whole.
        assert pool.apply(worker, (table,))[0] == [2, None]


def test_a_pickle_names_the_file_that_it_means(table: fibula.Table, saved: pathlib.Path) -> None:
    opened, followed = fibula.Table.open(saved), fibula.Table.open(saved, follow=True)
    pickled, follows = pickle.dumps(opened), pickle.dumps(followed)
    assert pickle.loads(pickled) is pickle.loads(pickled)
    fibula.Table.build(["10.0.0.0/8"], {"asn": [9]}).save(saved)
    # This process still has the file that is meant; another one has it no more.
    assert pickle.loads(pickled).lookup("10.0.0.1", "asn") == 2
    fibula._pickle._opened.clear()
    with pytest.raises(ValueError, match="replaced") as error:
        pickle.loads(pickled)
    assert str(opened.stamp) in str(error.value)
    assert pickle.loads(follows).lookup_many(["10.0.0.1"]) == [9]


def test_a_followed_file_is_replaced(table: fibula.Table, saved: pathlib.Path) -> None:
    followed, still = fibula.Table.open(saved, mapped=True, follow=True), fibula.Table.open(saved, mapped=True)
    before = followed.stamp
    assert not followed.refresh()
    fibula.Table.build(["10.0.0.0/8"], {"asn": [9]}).save(saved)
    assert followed.lookup("10.0.0.1", "asn") == 2
    assert followed.lookup_many(["10.0.0.1"]) == [9] and followed.stamp != before
    assert still.lookup("10.0.0.1", "asn") == 2 and not still.refresh()
    # A bad file is refused, with a warning from calls that answer all the same.
    bad = saved.with_name("bad")
    bad.write_bytes(b"no table")
    bad.rename(saved)
    with pytest.warns(RuntimeWarning, match="the table before stays in use"):
        assert followed.lookup_many(["10.0.0.1"]) == [9]
    assert followed.lookup("10.0.0.1") == 9


def test_a_closed_table_says_so(saved: pathlib.Path) -> None:
    with fibula.Table.open(saved, mapped=True) as table:
        routes = iter(table)
        next(routes)
        assert table.lookup("10.0.0.1", "asn") == 2
    assert table.is_closed and "closed" in repr(table)
    # What began before goes on.
    assert next(routes) == ipaddress.ip_network("10.0.0.0/8")
    for call in [
        lambda: table.lookup("10.0.0.1"),
        lambda: table.lookup_ids(["10.0.0.1"]),
        lambda: len(table),
        lambda: table.columns,
        lambda: pickle.dumps(table),
        lambda: table.refresh(),
    ]:
        with pytest.raises(ValueError, match="the table is closed"):
            call()
    table.close()


def test_a_table_is_closed_while_others_look_up(saved: pathlib.Path, np: Any) -> None:
    addresses = np.zeros(500_000, dtype="uint32")
    for _ in range(5):
        table = fibula.Table.open(saved, mapped=True)
        said: list[str] = []

        def look_up(table: fibula.Table = table, said: list[str] = said) -> None:
            try:
                for _ in range(50):
                    assert (table.lookup_ids(addresses) == 1).all()
            except ValueError as error:
                said.append(str(error))

        running = [threading.Thread(target=look_up) for _ in range(3)]
        for thread in running:
            thread.start()
        table.close()
        for thread in running:
            thread.join()
        assert set(said) == {"the table is closed"}
