"""`Follower`: a file that is replaced, damaged, gone and there again."""

from __future__ import annotations

import pathlib
import pickle
import threading
from typing import Any

import pytest

import fibula


def save(path: pathlib.Path, value: int, routes: int = 1) -> None:
    prefixes = [f"10.{at}.0.0/16" for at in range(routes)]
    fibula.Table.build(prefixes, {"asn": [value] * routes}).save(path)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    save(tmp_path / "table", 1)
    return tmp_path / "table"


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_that_is_replaced(path: pathlib.Path, mapped: bool) -> None:
    follower = fibula.Follower(path, mapped=mapped)
    first = follower.table
    assert follower.table is first and first.mapped == mapped and follower.path == path
    assert not follower.refresh() and follower.table is first
    stamps = [follower.stamp]
    for value in [2, 3]:
        save(path, value)
        # Nothing is taken before it is asked for.
        assert follower.table.lookup("10.0.0.1") == value - 1
        assert follower.refresh() and not follower.refresh()
        assert follower.table.lookup("10.0.0.1") == value and follower.table.stamp == follower.stamp
        stamps.append(follower.stamp)
    assert len(set(stamps)) == 3
    # What was taken before stays.
    assert first.lookup("10.0.0.1") == 1 and first.stamp == stamps[0]


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_that_is_damaged_is_refused_once(path: pathlib.Path, mapped: bool) -> None:
    follower = fibula.Follower(path, mapped=mapped)
    good = path.read_bytes()
    for bad in [b"", b"no table", good[:-1], good[: len(good) // 2], good[: len(good) // 2] + b"\xff" + good[len(good) // 2 + 1 :]]:
        other = path.with_name("other")
        other.write_bytes(bad)
        other.rename(path)
        with pytest.raises(ValueError):
            follower.refresh()
        assert not follower.refresh() and follower.table.lookup("10.0.0.1") == 1
    save(path, 2)
    assert follower.refresh() and follower.table.lookup("10.0.0.1") == 2


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_that_is_gone(path: pathlib.Path, mapped: bool) -> None:
    follower = fibula.Follower(path, mapped=mapped)
    path.unlink()
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            follower.refresh()
        assert follower.table.lookup("10.0.0.1") == 1
    save(path, 2)
    assert follower.refresh() and follower.table.lookup("10.0.0.1") == 2
    with pytest.raises(FileNotFoundError):
        fibula.Follower(path.with_name("absent"))
    path.with_name("bad").write_bytes(b"x")
    with pytest.raises(ValueError):
        fibula.Follower(path.with_name("bad"), mapped=mapped)


def test_a_table_that_was_closed_is_replaced_all_the_same(path: pathlib.Path) -> None:
    follower = fibula.Follower(path)
    before = follower.stamp
    follower.table.close()
    assert follower.stamp == before and not follower.refresh()
    save(path, 2)
    assert follower.refresh() and follower.table.lookup("10.0.0.1") == 2


def test_a_pickle_is_the_path(path: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(path.parent)
    pickled = pickle.dumps(fibula.Follower(path.name, mapped=True))
    save(path, 2)
    monkeypatch.chdir("/")
    other = pickle.loads(pickled)
    assert other.table.lookup("10.0.0.1") == 2 and other.table.mapped and other.path == path


def test_threads_refresh_while_others_look_up(path: pathlib.Path, np: Any) -> None:
    follower = fibula.Follower(path, mapped=True)
    addresses = np.full(2000, 10 << 24, dtype="uint32")
    is_done, wrong = threading.Event(), []

    def look_up() -> None:
        while not is_done.is_set():
            # One call answers from one file.
            found = set(follower.table.lookup_many(addresses).tolist())
            if len(found) != 1:
                wrong.append(found)

    def refresh() -> None:
        while not is_done.is_set():
            follower.refresh()

    threads = [threading.Thread(target=target) for target in [look_up, look_up, refresh, refresh]]
    for thread in threads:
        thread.start()
    for value in range(2, 40):
        save(path, value, routes=1 + value % 3)
    is_done.set()
    for thread in threads:
        thread.join()
    follower.refresh()
    assert wrong == [] and follower.table.lookup("10.0.0.1") == 39
