"""`fibula.maxminddb`, judged by the original: record by record, in every form of file, and with damage."""

from __future__ import annotations

import copy
import ipaddress
import os
import pathlib
import random
import threading
from typing import Any

import pytest

import fibula.maxminddb
import mmdb

NETWORKS = int(os.environ.get("FIBULA_MMDB_NETWORKS", "100000"))


def original() -> Any:
    return pytest.importorskip("maxminddb", reason="the original of fibula.maxminddb is not installed")


def value(generator: random.Random, depth: int = 0) -> Any:
    """Return a value of any type."""
    match generator.randint(0, 11 if depth < 3 else 9):
        case 0:
            return generator.choice(["", "a", "Zürich", "x" * 28, "y" * 29, "z" * 284, "q" * 285, "ü" * 200])
        case 1:
            return generator.random() * 360 - 180
        case 2:
            return mmdb.Single(generator.choice([0.0, 1.5, -2.25, float("inf")]))
        case 3:
            return generator.randbytes(generator.choice([0, 1, 16, 300]))
        case 4:
            return mmdb.Uint16(generator.getrandbits(16))
        case 5:
            return generator.choice([0, 1, 255, 2**32 - 1, generator.getrandbits(32)])
        case 6:
            return generator.choice([2**32, 2**64 - 1])
        case 7:
            return generator.choice([2**64, 2**128 - 1])
        case 8:
            return -generator.randint(1, 2**31)
        case 9:
            return generator.random() < 0.5
        case 10:
            return [value(generator, depth + 1) for _ in range(generator.choice([0, 1, 3, 40]))]
    return {f"key {at}": value(generator, depth + 1) for at in range(generator.choice([0, 1, 4, 35]))}


def networks(generator: random.Random, count: int, version: int, *, is_dense: bool = False) -> list[Any]:
    """Return random networks that nest, of both families if the version is 6; if they are to be dense, of small parts of the space."""
    found: set[Any] = set()
    while len(found) < count:
        if version == 4 or generator.random() < 0.6:
            length = generator.choice([20, 22, 24] if is_dense else [8, 12, 16, 20, 22, 23, 24, 24, 24, 28, 32])
            first = generator.getrandbits(32) if generator.random() < 0.9 else 10 << 24 | generator.getrandbits(12)
            first &= 0x1FFFFFFF if is_dense else 0xFFFFFFFF
            found.add(ipaddress.IPv4Network((first >> 32 - length << 32 - length, length)))
        else:
            length = generator.choice([40, 44, 48, 48] if is_dense else [20, 29, 32, 36, 44, 48, 48, 56, 64, 128])
            first = 0x2001 << 112 | generator.getrandbits(4 if is_dense else 12) << 96 | generator.getrandbits(16) << 80 | generator.getrandbits(80)
            found.add(ipaddress.IPv6Network((first >> 128 - length << 128 - length, length)))
    return sorted(found, key=str)


def judge(ours: Any, theirs: Any, asked: list[Any]) -> None:
    """Compare every answer of two readers, and its types."""
    for address in asked:
        expected, found = outcome(lambda: theirs.get_with_prefix_len(address)), outcome(lambda: ours.get_with_prefix_len(address))
        # By their texts, which tell 1 from True and bytes from their arrays.
        assert repr(found) == repr(expected), address
        alone = found[0] if isinstance(found, tuple) else found
        assert repr(outcome(lambda: ours.get(address))) == repr(alone), address
    for one, two in zip(ours, theirs, strict=True):
        assert one[0] == two[0] and repr(one[1]) == repr(two[1])
    for name in ["node_count", "record_size", "ip_version", "database_type", "languages", "build_epoch", "description",
                 "binary_format_major_version", "binary_format_minor_version"]:  # fmt: skip
        assert getattr(ours.metadata(), name) == getattr(theirs.metadata(), name), name


def outcome(call: Any) -> Any:
    try:
        return call()
    except (ValueError, TypeError) as error:
        return type(error)
    except RuntimeError as error:
        assert type(error).__name__ == "InvalidDatabaseError"
        return "InvalidDatabaseError"


def addresses(generator: random.Random, of: list[Any], count: int) -> list[Any]:
    """Return addresses of random networks, their neighbours, any others, in each form, and what is no address."""
    asked: list[Any] = ["", "x", "1.2.3.256", " 1.2.3.4", "1.2.3.4/8", "1.2.3.4%eth0", "fe80::1%lo", "fe80::1%", None, 7, b"1234", ["1.2.3.4"], 1.5]
    while len(asked) < count:
        network = generator.choice(of)
        kind = type(network.network_address)
        first = int(network.network_address)
        chosen = generator.choice([
            first, first + network.num_addresses - 1, max(first - 1, 0), first + generator.randrange(network.num_addresses),
            generator.getrandbits(network.max_prefixlen), (0xFFFF << 32 if network.version == 6 else 0) | generator.getrandbits(32),
            0x2002 << 112 | generator.getrandbits(112) if network.version == 6 else 1,
        ])  # fmt: skip
        address = kind(chosen)
        asked.append(str(address) if generator.random() < 0.7 else address)
    return asked


def both(path: pathlib.Path, mode: int = 0) -> tuple[Any, Any]:
    return fibula.maxminddb.open_database(path, mode), original().open_database(path)


@pytest.mark.parametrize("record_bits", [24, 28, 32])
@pytest.mark.parametrize("version", [4, 6])
def test_small_databases_of_every_form(tmp_path: pathlib.Path, record_bits: int, version: int) -> None:
    for seed in range(6):
        generator = random.Random(seed)
        of = networks(generator, generator.choice([1, 10, 200]), version)
        aliases = ("2002::/16", "::ffff:0:0/96") if version == 6 and seed % 2 and any(one.version == 4 for one in of) else ()
        records = [value(generator) for _ in range(20)]
        image = mmdb.database({one: generator.choice(records) for one in of}, version=version, record_bits=record_bits,
                              with_pointers=bool(seed % 3), aliases=aliases)  # fmt: skip
        path = tmp_path / f"{seed}.mmdb"
        path.write_bytes(image)
        for mode in [fibula.maxminddb.MODE_AUTO, fibula.maxminddb.MODE_MEMORY]:
            ours, theirs = both(path, mode)
            judge(ours, theirs, addresses(generator, of, 500))
            # Both have found something.
            assert len(list(ours)) > 0


def test_a_large_database_record_by_record(tmp_path: pathlib.Path) -> None:
    generator = random.Random(7)
    of = networks(generator, NETWORKS, 6, is_dense=True)
    countries = [{"iso_code": code, "names": {"en": code.lower(), "de": f"{code} auf Deutsch"}} for code in ["DE", "FR", "NL", "SE", "US"]]
    records = {}
    for network in of:
        record = {"country": generator.choice(countries), "location": {"latitude": round(generator.random() * 90, 4), "accuracy": mmdb.Uint16(50)}}
        if generator.random() < 0.3:
            record["traits"] = [generator.random() < 0.5, generator.randint(1, 70_000)]
        records[network] = record
    path = tmp_path / "large.mmdb"
    path.write_bytes(mmdb.database(records, record_bits=28, aliases=("2002::/16", "::ffff:0:0/96")))
    ours, theirs = both(path)
    judge(ours, theirs, [str(network.network_address) for network in of] + addresses(generator, of, NETWORKS // 10))
    # And against what was written, which needs no other reader: the longest network of an address is at least the one it is of.
    for network in generator.sample(of, 1000):
        record, length = ours.get_with_prefix_len(network[-1])
        longest = ipaddress.ip_network((network[-1], length), strict=False)
        assert longest.subnet_of(network) and (record == records.get(longest, record))


def test_records_are_not_shared() -> None:
    image = mmdb.database({ipaddress.ip_network("10.0.0.0/8"): {"a": [1]}})
    path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"fibula-{os.getpid()}.mmdb"
    path.write_bytes(image)
    with fibula.maxminddb.open_database(path) as reader:
        path.unlink()
        record = reader.get("10.0.0.1")
        before = copy.deepcopy(record)
        record["a"].append(2)
        assert reader.get("10.0.0.1") == before


def test_closing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.mmdb"
    path.write_bytes(mmdb.database({ipaddress.ip_network(f"10.{at}.0.0/16"): {"at": at} for at in range(9)}))
    ours, theirs = both(path)
    for reader in [ours, theirs]:
        going = iter(reader)
        next(going)
        assert not reader.closed
        reader.close()
        reader.close()
        assert reader.closed
        for call in [lambda: reader.get("10.0.0.1"), lambda: reader.get_with_prefix_len("10.0.0.1"), lambda: iter(reader), lambda: next(going), reader.__enter__]:
            with pytest.raises(ValueError, match="closed"):
                call()
        with pytest.raises(OSError):
            reader.metadata()
    with fibula.maxminddb.open_database(str(path)) as opened:
        assert opened.get("10.3.0.1") == {"at": 3}
    assert opened.closed
    with open(path, "rb") as file:
        assert fibula.maxminddb.open_database(file, fibula.maxminddb.MODE_FD).get("10.3.0.1") == {"at": 3}
    # While threads look up: a record or the error.
    shared = fibula.maxminddb.open_database(bytes(path))
    wrong: list[Any] = []

    def look() -> None:
        try:
            while True:
                if shared.get("10.3.0.1") != {"at": 3}:
                    wrong.append("another record")
        except ValueError:
            pass

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    shared.close()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_files_that_are_no_databases(tmp_path: pathlib.Path) -> None:
    package = original()
    good = mmdb.database({ipaddress.ip_network("10.0.0.0/8"): {"a": 1}})
    bad = {
        "empty": b"",
        "other": b"x" * 1000,
        "no tree": good[good.index(b"\xab\xcd\xefMaxMind.com") :],
        "no end": good[:-20],
        "size": mmdb.database({}, metadata={"record_size": mmdb.Uint16(26)}),
        "count": mmdb.database({}, metadata={"node_count": 10**9}),
        "words": mmdb.database({}, metadata={"node_count": "many"}),
    }
    for name, image in bad.items():
        path = tmp_path / name
        path.write_bytes(image)
        for open_database, error in [
            (fibula.maxminddb.open_database, fibula.maxminddb.InvalidDatabaseError),
            (package.open_database, package.InvalidDatabaseError),
        ]:
            with pytest.raises(error):
                open_database(path)
    for opened in [fibula.maxminddb.open_database, package.open_database]:
        with pytest.raises(FileNotFoundError):
            opened(tmp_path / "absent")
        with pytest.raises(TypeError):
            opened(None)
        with pytest.raises(ValueError):
            opened(tmp_path / "other", 99)


def test_damage_is_an_error_or_another_record() -> None:
    generator = random.Random(3)
    of = networks(generator, 40, 6)
    image = mmdb.database({one: value(generator) for one in of}, aliases=("2002::/16",))
    asked = [address for address in addresses(generator, of, 60) if isinstance(address, str)]
    path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"fibula-{os.getpid()}-damaged.mmdb"
    refused = 0
    for _ in range(400):
        damaged = bytearray(image)
        for _ in range(generator.randint(1, 30)):
            damaged[generator.randrange(len(damaged))] = generator.getrandbits(8)
        if generator.random() < 0.2:
            del damaged[generator.randrange(len(damaged)) :]
        path.write_bytes(damaged)
        try:
            reader = fibula.maxminddb.open_database(path, fibula.maxminddb.MODE_MEMORY)
            for address in asked:
                outcome(lambda: reader.get(address))
            reader.metadata()
            list(reader)
        except fibula.maxminddb.InvalidDatabaseError:
            refused += 1
    path.unlink()
    assert refused > 20


def test_records_that_refer_to_themselves_end(tmp_path: pathlib.Path) -> None:
    # A list whose only element is a pointer to the list; lists of two pointers, which would be 2^40 values.
    for made in [b"\x01\x04\x20\x00", b"".join(b"\x02\x04" + mmdb.pointer(6 * (at + 1)) * 2 for at in range(40)) + b"\xa0"]:
        image = mmdb.database({ipaddress.ip_network("10.0.0.0/8"): "x" * 300}, with_pointers=False)
        at = image.index(mmdb.control(2, 300) + b"xxx")
        path = tmp_path / "self.mmdb"
        path.write_bytes(image[:at] + made + image[at + len(made) :])
        ours, theirs = both(path)
        assert outcome(lambda: ours.get("10.0.0.1")) == outcome(lambda: theirs.get("10.0.0.1")) == "InvalidDatabaseError"


@pytest.mark.parametrize("method", ["get", "get_with_prefix_len", "__iter__", "metadata"])
def test_the_judge_finds_a_difference_in_each_method(tmp_path: pathlib.Path, method: str) -> None:
    generator = random.Random(1)
    of = networks(generator, 50, 6)
    path = tmp_path / "a.mmdb"
    path.write_bytes(mmdb.database({one: {"a": generator.randint(0, 9), "b": True} for one in of}))
    whole = fibula.maxminddb.Reader
    calls = 0

    def planted(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        answer = getattr(whole, method)(self, *arguments)
        match method:
            case "get":
                return {**answer, "b": 1} if answer and calls % 7 == 0 else answer
            case "get_with_prefix_len":
                return (answer[0], answer[1] + 1) if calls % 7 == 0 else answer
            case "__iter__":
                return iter(list(answer)[1:])
        return fibula.maxminddb.Metadata(**{**vars(answer), "build_epoch": 1})

    broken = type("Reader", (whole,), {method: planted})
    theirs = original().open_database(path)
    judge(whole(path), theirs, addresses(generator, of, 300))
    with pytest.raises(AssertionError):
        judge(broken(path), theirs, addresses(generator, of, 300))
