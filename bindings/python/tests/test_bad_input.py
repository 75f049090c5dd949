"""Input that is no column of addresses: an exception that names row and reason, never a crash."""

from __future__ import annotations

import array
import ipaddress
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import fibula


@pytest.mark.parametrize(
    ("dtype", "said"),
    [("float64", "no column"), ("float32", "no column"), ("uint8", "no column"), ("int16", "no column"), ("bool", "no column"),
     ("complex128", "no column"), ("S4", "zero byte"), ("S16", "zero byte"), ("datetime64[s]", "no column"), ("V5", "no column"), (">u8", "no column")],
)  # fmt: skip
def test_types_of_numpy_that_are_no_addresses(table: fibula.Table, np: Any, dtype: str, said: str) -> None:
    for rows in [0, 3]:
        with pytest.raises(TypeError, match=said):
            table.lookup_ids(np.zeros(rows, dtype=dtype))


def test_shapes_of_numpy_that_are_no_columns(table: fibula.Table, np: Any) -> None:
    for array_ in [
        np.uint32(1).reshape(()),
        np.zeros((3, 3), dtype="uint8"),
        np.zeros((3, 2), dtype="uint32"),
        np.zeros((2, 2, 4), dtype="uint8"),
        np.zeros((4, 8), dtype="uint8")[:, ::2],
        np.zeros((4, 4), dtype="uint8").T,
    ]:
        with pytest.raises(TypeError):
            table.lookup_ids(array_)


def test_objects_that_are_no_columns(table: fibula.Table) -> None:
    for one in ["10.0.0.1", b"1234", bytearray(4), 7, ipaddress.ip_address("10.0.0.1"), {"10.0.0.1": 1}, None, 1.5, object()]:
        with pytest.raises(TypeError):
            table.lookup_ids(one)
    for wrong in [1.5, object(), [], True, ("10.0.0.1",)]:
        with pytest.raises(TypeError, match="row 2: "):
            table.lookup_ids(["10.0.0.1", None, wrong])
        with pytest.raises(TypeError):
            table.lookup(wrong)  # type: ignore[arg-type]
    for text in ["", "10.0.0", "10.0.0.256", " 10.0.0.1", "10.0.0.1/32", "fe80::1%eth0", "\ud800", "10.0.0.1\0"]:
        with pytest.raises(ValueError):
            table.lookup(text)
        with pytest.raises(ValueError, match="row 1: "):
            table.lookup_ids(["10.0.0.1", text], invalid="raise")
        with pytest.raises(ValueError, match="row 1: "):
            table.lookup_ids([1, text], invalid="raise")
        assert table.lookup_ids(["10.0.0.1", text, 7]).tolist() == [2, 0, 1] and table.last_invalid == 1
    for number in [-1, 2**128]:
        with pytest.raises(ValueError):
            table.lookup(number)


def test_a_huge_list_of_wrong_types(table: fibula.Table) -> None:
    with pytest.raises(TypeError, match="row 1000000: "):
        table.lookup_ids(["10.0.0.1"] * 1_000_000 + [1.5] * 1_000_000)


def test_lengths_that_lie(table: fibula.Table) -> None:
    class Liar:
        def __init__(self, said: int) -> None:
            self.said = said

        def __len__(self) -> int:
            return self.said

        def __getitem__(self, at: int) -> str:
            if at > 2:
                raise IndexError
            return "10.0.0.1"

    for said in [0, 1, 2**62]:
        assert table.lookup_ids(Liar(said)).tolist() == [2, 2, 2]

    class Shrinking(list):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[Any]:
            self.clear()
            return super().__iter__()

    assert table.lookup_ids(Shrinking(["10.0.0.1"] * 100)).tolist() == []

    rows: list[Any] = ["10.0.0.1", None]

    class Clearing:
        @property
        def packed(self) -> bytes:
            rows.clear()
            return bytes(4)

    rows.extend([Clearing(), "10.0.0.1"])
    assert len(table.lookup_ids(rows)) <= 4

    def failing() -> Iterator[str]:
        yield "10.0.0.1"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        table.lookup_ids(failing())


def test_places_for_ids_that_do_not_fit(table: fibula.Table, np: Any) -> None:
    addresses = np.zeros(4, dtype="uint32")
    read_only = np.zeros(4, dtype="uint32")
    read_only.flags.writeable = False
    for out in [np.zeros(3, dtype="uint32"), read_only, np.zeros(8, dtype="uint32")[::2], np.zeros((2, 2), dtype="uint32"), addresses]:
        with pytest.raises(ValueError):
            table.lookup_ids(addresses, out=out)
    both = np.zeros(6, dtype="uint32")
    with pytest.raises(ValueError, match="same memory"):
        table.lookup_ids(both[:4], out=both[2:])
    for out in [np.zeros(4, dtype="int32"), np.zeros(4, dtype="uint64"), np.zeros(4, dtype=">u4"), [0] * 4, "text"]:
        with pytest.raises(TypeError):
            table.lookup_ids(addresses, out=out)
    with pytest.raises(ValueError):
        table.lookup_ids(["10.0.0.1"], out=array.array("I", [1, 2]))


def test_options_that_are_none(table: fibula.Table) -> None:
    for options in [{"invalid": "skip"}, {"v4_mapped": "x"}, {"threads": 0}]:
        with pytest.raises(ValueError):
            table.lookup_ids(["10.0.0.1"], **options)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        table.lookup_ids(["10.0.0.1"], threads=-1)


def test_four_billion_rows(table: fibula.Table, np: Any) -> None:
    # One address, seen 2^32 times: there is no memory for as many ids, or the call is refused before it.
    many = np.lib.stride_tricks.as_strided(np.zeros(1, dtype="uint32"), shape=(2**32,), strides=(0,))
    with pytest.raises(ValueError, match="4294967296"):
        table.lookup_ids(many, out=np.zeros(1, dtype="uint32"))
    huge = np.lib.stride_tricks.as_strided(np.zeros(1, dtype="uint32"), shape=(2**58,), strides=(0,))
    with pytest.raises((MemoryError, ValueError)):
        table.lookup_ids(huge)


def test_an_array_that_threads_change_gives_answers_of_some_address(table: fibula.Table, np: Any) -> None:
    addresses = np.zeros(300_000, dtype="uint32")
    is_done = threading.Event()

    def change() -> None:
        generator = np.random.default_rng(2)
        while not is_done.is_set():
            addresses[:] = generator.integers(0, 2**32, len(addresses), dtype="uint32")

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(20):
        assert table.lookup_ids(addresses).max() <= len(table)
    is_done.set()
    thread.join()


def test_columns_that_make_no_table(np: Any) -> None:
    build = fibula.Table.build
    for prefixes, values, said in [
        (["10.0.0.0/8", "10.0.0.0/33"], None, "row 1: .*33"),
        (["10.0.0.0/8", "10.0.0.1/8"], None, "row 1: "),
        (["2001:db8::/32", "10.0.0.0/8", "10.0.0.0/8"], None, "row 2: 10.0.0.0/8 is there already"),
        (["10.0.0.0/8", "x"], None, "row 1: "),
        (["10.0.0.0/8"], [1, 2], "differ in length"),
        ((np.zeros(2, dtype="uint32"), [8]), None, "differ in length"),
        (["10.0.0.0/8", "11.0.0.0/8"], [1, "x"], "row 1: .*text after .*u32"),
        (["10.0.0.0/8"], [2**64], "row 0"),
        (["10.0.0.0/8", "11.0.0.0/8", "12.0.0.0/8"], [2**63, 1, -1], "row 2: -1, and another number before it"),
        (["10.0.0.0/8"], {}, "1 to 256"),
        (["10.0.0.0/8"], {"a\nb": [1]}, "no name"),
    ]:
        with pytest.raises(ValueError, match=said):
            build(prefixes, values)
    for prefixes, values in [([1.5], None), (["10.0.0.0/8"], [object()]), ("10.0.0.0/8", None), (["10.0.0.0/8"], "x")]:
        with pytest.raises(TypeError):
            build(prefixes, values)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="engine"):
        build(["10.0.0.0/8"], engine="warp")


def test_files_that_are_no_tables(table: fibula.Table, tmp_path: Any) -> None:
    image = table.to_bytes()
    for bad in [b"", b"x", image[:-1], image[: len(image) // 2], image[:100] + b"x" + image[101:]]:
        with pytest.raises(ValueError):
            fibula.Table.open(bad)
        path = tmp_path / "bad"
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="bad"):
            fibula.Table.open(path)
        with pytest.raises(ValueError):
            fibula.Table.open(path, mapped=True)
    with pytest.raises(FileNotFoundError) as error:
        fibula.Table.open(tmp_path / "absent")
    assert error.value.errno == 2
    with pytest.raises(TypeError):
        fibula.Table.open(7)  # type: ignore[arg-type]
    with pytest.raises(OSError):
        table.save(tmp_path / "absent" / "table")
    with pytest.raises(ValueError):
        fibula.Table.open(image, mapped=True)
