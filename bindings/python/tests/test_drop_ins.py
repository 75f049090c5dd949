"""The drop-ins, judged by the originals: random operations on both, with the same answers and the same errors.

`FIBULA_JUDGED` is the number of operations for each package. Where an original is not installed, its tests are skipped, by name.
"""

from __future__ import annotations

import gc
import importlib
import ipaddress
import os
import pickle
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import fibula.pyasn
import fibula.pytricia
import fibula.radix

JUDGED = int(os.environ.get("FIBULA_JUDGED", "20000"))


def original(name: str) -> Any:
    return pytest.importorskip(name, reason=f"the original of fibula.{name} is not installed")


def outcome(call: Callable[[], Any], as_seen: Callable[[Any], Any] = lambda answer: answer) -> Any:
    """Return an answer, or the type of an error."""
    try:
        return as_seen(call())
    except SystemError:
        # The original returns an error that it forgot to set, where a text is no key; ours is the ValueError of its other methods.
        return ValueError
    except (KeyError, ValueError, TypeError) as error:
        return type(error)


def masked(key: Any) -> Any:
    """Return keys without bits after their length, which pytricia keeps as they were inserted."""
    if isinstance(key, list):
        return [masked(one) for one in key]
    return str(ipaddress.ip_network(key, strict=False)) if isinstance(key, str) and "/" in key else key


class Keys:
    """Random prefixes and addresses of small spaces, so that many nest; and texts that are none."""

    def __init__(self, seed: int, families: str) -> None:
        self.random = random.Random(seed)
        self.families = families

    def prefix(self) -> str:
        is_v4 = self.random.choice(self.families) == "4"
        length = self.random.randint(0, 7) if self.random.random() < 0.9 else (32 if is_v4 else 128)
        bits = self.random.getrandbits(5) << 3
        # Host bits are there sometimes, as the originals take them.
        if self.random.random() < 0.8 and length < 8:
            bits &= 0xFF << 8 - length & 0xFF
        address = ipaddress.IPv4Address(bits << 24) if is_v4 else ipaddress.IPv6Address(0x20 << 120 | bits << 112)
        return f"{address}/{length}"

    def key(self) -> str:
        chance = self.random.random()
        if chance < 0.02:
            return self.random.choice(["", "x"])
        if chance < 0.5:
            return self.prefix()
        return self.prefix().partition("/")[0]


def judge_pytricia(ours: Any, theirs: Any, steps: int, seed: int) -> None:
    keys = Keys(seed, "4")
    for step in range(steps):
        key = keys.key()
        match keys.random.randint(0, 12):
            case 0 | 1:
                calls = [lambda one: one.insert(key, step)]
            case 2:
                calls = [lambda one: one.__setitem__(key, step)]
            case 3:
                calls = [lambda one: one.delete(key)]
            case 4:
                calls = [lambda one: one.get(key), lambda one: one.get(key, -1)]
            case 5:
                calls = [lambda one: one[key]]
            case 6:
                calls = [lambda one: key in one]
            case 7:
                calls = [lambda one: one.has_key(key)]
            case 8:
                calls = [lambda one: one.get_key(key)]
            case 9:
                calls = [lambda one: one.parent(key)]
            case 10:
                calls = [lambda one: sorted(masked(one.children(key)))]
            case 11:
                calls = [lambda one: one.__delitem__(key)]
            case _:
                calls = [len]
        if step % 400 == 0:
            calls += [lambda one: sorted(masked(one.keys())), lambda one: sorted(masked(list(one)))]
        for call in calls:
            expected, found = outcome(lambda: call(theirs), masked), outcome(lambda: call(ours))
            assert found == expected, f"step {step}, key {key!r}"


def seen(node: Any) -> Any:
    """Return what is comparable of nodes."""
    if node is None or isinstance(node, type):
        return node
    if isinstance(node, list):
        return [seen(one) for one in node]
    return node.prefix, node.network, node.prefixlen, node.family, node.packed, dict(node.data)


def judge_radix(ours: Any, theirs: Any, steps: int, seed: int) -> None:
    keys = Keys(seed, "46")

    def put(one: Any, key: str, step: int) -> Any:
        node = one.add(key)
        node.data["step"] = step
        return node

    for step in range(steps):
        key = keys.key()
        address, _, length = key.partition("/")
        arguments: dict[str, Any] = {"network": key}
        if length.isdigit() and keys.random.random() < 0.3:
            arguments = {"network": address, "masklen": int(length)}
        match keys.random.randint(0, 9):
            case 0 | 1:
                calls = [lambda one: seen(put(one, key, step))]
            case 2:
                calls = [lambda one: one.delete(**arguments)]
            case 3:
                calls = [lambda one: seen(one.search_exact(**arguments))]
            case 4 | 5:
                calls = [lambda one: seen(one.search_best(**arguments))]
            case 6:
                calls = [lambda one: seen(one.search_worst(**arguments))]
            case 7:
                calls = [lambda one: sorted(node.prefix for node in one.search_covered(**arguments))]
            case 8:
                calls = [lambda one: seen(one.search_covering(**arguments))]
            case _:
                calls = [lambda one: seen(getattr(one.search_best(**arguments), "parent", None))]
        if step % 400 == 0:
            calls += [lambda one: sorted(one.prefixes()), lambda one: sorted(map(seen, one.nodes())), lambda one: sorted(map(seen, one))]
        for call in calls:
            expected, found = outcome(lambda: call(theirs)), outcome(lambda: call(ours))
            assert found == expected, f"step {step}, {arguments!r}"


def judge_pyasn(ours: Any, theirs: Any, steps: int, seed: int) -> None:
    keys = Keys(seed, "46")
    for step in range(steps):
        key = keys.key().partition("/")[0]
        assert outcome(lambda: ours.lookup(key)) == outcome(lambda: theirs.lookup(key)), f"step {step}, key {key!r}"
        if step % 500 == 0:
            asn = keys.random.randint(1, 60)
            for name in ["get_as_prefixes", "get_as_prefixes_effective", "get_as_size"]:
                expected, found = getattr(theirs, name)(asn), getattr(ours, name)(asn)
                assert found == expected, f"step {step}, {name} of {asn}"
            assert ours.convert_32bit_to_asdot_asn_format(asn * step) == theirs.convert_32bit_to_asdot_asn_format(asn * step)
            text = theirs.convert_32bit_to_asdot_asn_format(asn * step)
            assert ours.convert_asdot_to_32bit_asn(text) == theirs.convert_asdot_to_32bit_asn(text)


def origins(seed: int) -> str:
    generator = Keys(seed, "46")
    lines = {}
    for _ in range(300):
        network = ipaddress.ip_network(generator.prefix(), strict=False)
        # The original refuses a default route.
        if network.prefixlen == 0:
            continue
        lines[network] = generator.random.randint(1, 50)
    return "".join(f"{network}\t{asn}\n" for network, asn in lines.items())


def test_pytricia_is_the_original() -> None:
    package = original("pytricia")
    for seed in range(4):
        judge_pytricia(fibula.pytricia.PyTricia(), package.PyTricia(), JUDGED // 4, seed)


def test_radix_is_the_original() -> None:
    package = original("radix")
    for seed in range(4):
        judge_radix(fibula.radix.Radix(), package.Radix(), JUDGED // 4, seed)


def test_pyasn_is_the_original() -> None:
    package = original("pyasn")
    for seed in range(4):
        text = origins(seed)
        judge_pyasn(fibula.pyasn.pyasn(None, ipasn_string=text), package.pyasn(None, ipasn_string=text), JUDGED // 4, seed)


# The methods of each drop-in that its judge must watch.
WATCHED = {
    "pytricia": ["insert", "__setitem__", "delete", "__delitem__", "get", "__getitem__", "__contains__", "has_key", "get_key", "parent",
                 "children", "__len__", "keys", "__iter__"],
    "radix": ["add", "delete", "search_exact", "search_best", "search_worst", "search_covered", "search_covering", "nodes", "prefixes", "__iter__"],
    "pyasn": ["lookup", "get_as_prefixes", "get_as_prefixes_effective", "get_as_size", "convert_32bit_to_asdot_asn_format",
              "convert_asdot_to_32bit_asn"],
}  # fmt: skip


@pytest.mark.parametrize(("package", "method"), [(package, method) for package in WATCHED for method in WATCHED[package]])
def test_the_judge_finds_a_difference_in_each_method(package: str, method: str) -> None:
    theirs, module = original(package), importlib.import_module(f"fibula.{package}")
    name = {"pytricia": "PyTricia", "radix": "Radix", "pyasn": "pyasn"}[package]
    whole = getattr(module, name)
    calls = 0

    def planted(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 7:
            return getattr(whole, method)(self, *arguments, **named)
        if method in {"insert", "__setitem__", "delete", "__delitem__"}:
            return None
        if method == "add":
            return whole().add(*arguments, **named)
        answer = getattr(whole, method)(self, *arguments, **named)
        match answer:
            case bool():
                return not answer
            case int():
                return answer + 1
            case list():
                return answer[1:] if answer else [None]
            case None:
                return "planted"
            case _ if method == "__iter__":
                return iter(list(answer)[1:])
        return None

    def planted_static(*arguments: Any) -> Any:
        return getattr(whole, method)(*arguments) * 2

    broken = type(name, (whole,), {method: staticmethod(planted_static) if method.startswith("convert") else planted})
    judge = {"pytricia": judge_pytricia, "radix": judge_radix, "pyasn": judge_pyasn}[package]
    text = origins(1)
    made = [broken(None, ipasn_string=text), theirs.pyasn(None, ipasn_string=text)] if package == "pyasn" else [broken(), getattr(theirs, name)()]
    with pytest.raises((AssertionError, AttributeError)):
        judge(*made, 8000, 1)


def test_documented_examples_of_pytricia() -> None:
    names = fibula.pytricia.PyTricia()
    names["10.0.0.0/8"] = "a"
    names["10.1.0.0/16"] = "b"
    assert (names["10.0.0.0/8"], names["10.1.0.0/16"], names["10.0.0.0"], names["10.1.0.0"], names["10.1.0.1"]) == ("a", "b", "a", "b", "b")
    assert "10.0.0.0" in names and "10.1.0.0" in names and "10.0.0.0/8" in names and "10.2.0.0/8" in names
    with pytest.raises(KeyError, match="Prefix not found"):
        names["11.0.0.0"]
    names.insert("10.2.0.0", 16, "c")
    assert names.get_key("10.2.3.4") == "10.2.0.0/16" and sorted(names.children("10.0.0.0/8")) == ["10.1.0.0/16", "10.2.0.0/16"]
    assert names.parent("10.2.0.0/16") == "10.0.0.0/8" and names[ipaddress.IPv4Address("10.2.0.1")] == "c"
    assert names[0x0A020001] == "c"
    names.freeze()
    with pytest.raises(ValueError):
        names["10.3.0.0/16"] = "d"
    names.thaw()
    del names["10.1.0.0/16"]
    assert names["10.1.0.1"] == "a" and not names.has_key("10.1.0.0/16")
    six = fibula.pytricia.PyTricia(128)
    six["fe80::/64"] = "six"
    assert six["fe80::1"] == "six"
    with pytest.raises(ValueError, match="Invalid prefix"):
        names.get([])
    with pytest.raises(ValueError, match="Invalid key type"):
        "x" in names  # noqa: B015
    copied = pickle.loads(pickle.dumps(names))
    assert copied.keys() == names.keys() and copied["10.2.0.1"] == "c"


def test_documented_examples_of_radix() -> None:
    tree = fibula.radix.Radix()
    node = tree.add("10.0.0.0/8")
    tree.add(network="10.0.0.0", masklen=16).data["asn"] = 32
    tree.add(packed=b"\xac\x10\x00\x00", masklen=12)
    assert node.prefix == "10.0.0.0/8" and tree.search_exact("10.0.0.0/16").data["asn"] == 32  # type: ignore[union-attr]
    assert tree.search_best("10.123.45.6").prefix == "10.0.0.0/8"  # type: ignore[union-attr]
    assert tree.search_worst("10.0.1.1").prefix == "10.0.0.0/8"  # type: ignore[union-attr]
    assert [one.prefix for one in tree.search_covering("10.0.1.1")] == ["10.0.0.0/16", "10.0.0.0/8"]
    assert tree.prefixes() == ["10.0.0.0/8", "10.0.0.0/16", "172.16.0.0/12"]
    with pytest.raises(TypeError):
        tree.add()
    with pytest.raises(TypeError):
        tree.search_best("10.0.0.0", packed=b"\x0a\0\0\0")
    with pytest.raises(TypeError):
        tree.search_best(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        tree.search_best("10.0.0.0/8", 8)
    with pytest.raises(AttributeError):
        node.data = {}  # type: ignore[misc]
    assert tree.add("10.1.2.3/8") is node and (node.network, node.prefixlen, node.packed) == ("10.0.0.0", 8, b"\x0a\0\0\0")
    assert tree.search_best(packed=b"\x0a\0\1\2", masklen=-1).parent is node  # type: ignore[union-attr]
    copied = pickle.loads(pickle.dumps(tree))
    assert copied.prefixes() == tree.prefixes() and copied.search_best("10.0.1.1").data == {"asn": 32}
    tree.delete("10.0.0.0/8")
    with pytest.raises(KeyError):
        tree.delete("10.0.0.0/8")
    # A node that holds its own tree is garbage with it.
    thing = type("Thing", (), {})()
    tree.add("11.0.0.0/8").data.update(tree=tree, thing=thing)
    gone = weakref.ref(thing)
    del tree, thing, node
    gc.collect()
    assert gone() is None


def test_documented_examples_of_pyasn(tmp_path: Any) -> None:
    path = tmp_path / "ipasn.dat"
    path.write_text("; a comment\n8.8.8.0/24\t15169\n2001:500:88::/48\t16876\n0.0.0.0/0\t0\n")
    origins = fibula.pyasn.pyasn(str(path))
    assert origins.lookup("8.8.8.8") == (15169, "8.8.8.0/24") and origins.lookup("2001:500:88:200::8") == (16876, "2001:500:88::/48")
    # The original refuses AS 0.
    assert origins.lookup("9.9.9.9") == (0, "0.0.0.0/0")
    assert origins.get_as_prefixes(15169) == {"8.8.8.0/24"} and origins.get_as_size(15169) == 256
    assert pickle.loads(pickle.dumps(origins)).lookup("8.8.8.8") == (15169, "8.8.8.0/24")
    assert origins.lookup("8.8.8.8") is origins.lookup("8.8.8.9"), "an answer is made once"
    # A network is looked up as the original does, the last line of a prefix counts, and a table that is read again replaces the first.
    again = fibula.pyasn.pyasn(None, ipasn_string="10.0.0.0/8 1\n10.1.0.0/16 2\n10.0.0.1/8 3\n")
    assert again.lookup("10.1.0.0/16") == (2, "10.1.0.0/16") and again.lookup("10.0.0.0/15") == (3, "10.0.0.0/8")
    assert again.lookup("9.0.0.0/8") == (None, None) and again.get_as_prefixes(1) is None and "2 prefixes" in repr(again)
    again.__init__(None, ipasn_string="::/1 4")  # type: ignore[misc]
    assert again.lookup("10.0.0.1") == (None, None) and again.lookup("1::1") == (4, "::/1")
    for bad in ["8.8.8.0/24", "8.8.8.0/24 x", "8.8.8.0/33 1", "x 1", "8.8.8.0/24 -1"]:
        with pytest.raises(RuntimeError, match="record: 1"):
            fibula.pyasn.pyasn(None, ipasn_string=bad)
    with pytest.raises(ValueError):
        fibula.pyasn.pyasn(None)
