"""Maps and sets of prefixes, and sets of addresses, against models in plain Python."""

from __future__ import annotations

import gc
import ipaddress
import pickle
import random
import weakref
from collections.abc import MutableMapping, MutableSet
from typing import Any

import pytest

import fibula


def network(generator: random.Random, bits: int = 6) -> ipaddress.IPv4Network:
    """Return a prefix of a small space: so many bits at the top."""
    length = generator.randint(0, bits)
    return ipaddress.IPv4Network((generator.getrandbits(bits) << 32 - bits & (0xFFFFFFFF << 32 - length) & 0xFFFFFFFF, length))


def test_a_map_is_a_mutable_mapping() -> None:
    names: fibula.PrefixMap[Any] = fibula.PrefixMap({"10.0.0.0/8": [1], "2001:db8::/32": "six"})
    assert isinstance(names, MutableMapping) and len(names) == 2
    names["10.1.0.0/16"] = None
    assert list(names) == [ipaddress.ip_network(one) for one in ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]]
    assert names.texts() == ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]
    assert names.lookup("10.1.2.3", 7) is None and names.lookup("10.2.0.0") == [1] and names.lookup("11.0.0.0", 7) == 7
    assert names.lookup_prefix("10.2.0.0") == (ipaddress.ip_network("10.0.0.0/8"), [1])
    assert names.parent("10.1.0.0/16") == (ipaddress.ip_network("10.0.0.0/8"), [1])
    assert [value for _, value in names.covers("10.1.2.3")] == [[1], None]
    assert [str(prefix) for prefix, _ in names.subnets("10.0.0.0/8")] == ["10.0.0.0/8", "10.1.0.0/16"]
    assert names.pop("10.1.0.0/16") is None and names.setdefault("10.3.0.0/16", 5) == 5
    assert names == fibula.PrefixMap(names) == pickle.loads(pickle.dumps(names)) == names.copy() and names != {}
    assert eval(repr(names), {"PrefixMap": fibula.PrefixMap}) == names
    del names["10.3.0.0/16"]
    for bad in ["10.3.0.0/16", "10.0.0.0/9"]:
        with pytest.raises(KeyError):
            del names[bad]
    for wrong in ["10.0.0.1/8", "x", "10.0.0.0/33"]:
        with pytest.raises(ValueError):
            names[wrong] = 1
    with pytest.raises(TypeError):
        names[1.5] = 1  # type: ignore[index]
    with pytest.raises(RuntimeError, match="changed during iteration"):
        for prefix in names:
            del names[prefix]
    names.clear()
    assert len(names) == 0 and not names


def test_a_map_compiles_to_a_table() -> None:
    table = fibula.PrefixMap({"10.0.0.0/8": "ours", "10.1.0.0/16": "lab"}).compile()
    assert table.lookup_many(["10.1.0.0", "10.2.0.0"]) == ["lab", "ours"]
    with pytest.raises(TypeError):
        fibula.PrefixMap({"10.0.0.0/8": object()}).compile()


def test_a_map_against_a_dictionary() -> None:
    generator = random.Random(1)
    own: fibula.PrefixMap[int] = fibula.PrefixMap()
    model: dict[ipaddress.IPv4Network, int] = {}
    for step in range(4000):
        prefix = network(generator)
        match generator.randint(0, 2):
            case 0:
                own[prefix] = model[prefix] = step
            case 1:
                assert own.pop(prefix, None) == model.pop(prefix, None)
            case _:
                address = ipaddress.IPv4Address(generator.getrandbits(6) << 26)
                around = sorted((one for one in model if address in one), key=lambda one: one.prefixlen)
                assert own.covers(address) == [(one, model[one]) for one in around]
                assert own.lookup(address) == (model[around[-1]] if around else None)
                assert own.get(prefix) == model.get(prefix) and (prefix in own) == (prefix in model)
        assert len(own) == len(model)
    assert list(own.items()) == sorted(model.items())


def test_cycles_of_maps_are_collected() -> None:
    class Thing:
        pass

    thing = Thing()
    names: fibula.PrefixMap[Any] = fibula.PrefixMap({"10.0.0.0/8": thing})
    names["11.0.0.0/8"] = names
    thing.names = names  # type: ignore[attr-defined]
    gone = weakref.ref(thing)
    del thing, names
    gc.collect()
    assert gone() is None


def test_values_that_use_the_map_as_they_end() -> None:
    names: fibula.PrefixMap[Any] = fibula.PrefixMap()

    class Thing:
        def __del__(self) -> None:
            names["192.0.2.0/24"] = len(names)

    names["10.0.0.0/8"] = Thing()
    names["10.0.0.0/8"] = None
    names["10.0.0.0/8"] = Thing()
    del names["10.0.0.0/8"]
    assert "192.0.2.0/24" in names
    names["10.0.0.0/8"] = Thing()
    names.clear()


def test_a_set_of_prefixes_against_a_set() -> None:
    generator = random.Random(2)
    for _ in range(60):
        sets = [{network(generator) for _ in range(generator.randint(0, 12))} for _ in range(2)]
        one, two = (fibula.PrefixSet(prefixes) for prefixes in sets)
        assert isinstance(one, MutableSet) and list(one) == sorted(sets[0])
        assert set(one | two) == sets[0] | sets[1] and set(one & two) == sets[0] & sets[1]
        assert set(one - two) == sets[0] - sets[1] and set(one ^ two) == sets[0] ^ sets[1]
        assert (one <= two) == (sets[0] <= sets[1]) and (one < two) == (sets[0] < sets[1])
        assert (one >= two) == (sets[0] >= sets[1]) and (one > two) == (sets[0] > sets[1])
        assert (one == two) == (sets[0] == sets[1]) and one == sets[0] and one.isdisjoint(two) == sets[0].isdisjoint(sets[1])
        assert one == pickle.loads(pickle.dumps(one))
        prefix = network(generator)
        one.add(prefix)
        assert prefix in one and one.covers(prefix)[-1] == prefix and one.subnets(prefix)[0] == prefix
        one.discard(prefix)
        assert prefix not in one
    with pytest.raises(KeyError):
        fibula.PrefixSet().remove("10.0.0.0/8")
    one |= two  # type: ignore[misc]
    assert two <= one


def test_a_copy_of_a_set_changes_by_itself() -> None:
    one = fibula.PrefixSet(["10.0.0.0/8", "2001:db8::/32"])
    copies = [fibula.PrefixSet(one) for _ in range(4)]
    copies[0].add("192.0.2.0/24")
    copies[1].discard("10.0.0.0/8")
    copies[2].clear()
    one.add("198.51.100.0/24")
    texts = [copied.texts() for copied in [one, *copies]]
    assert texts == [
        ["10.0.0.0/8", "198.51.100.0/24", "2001:db8::/32"],
        ["10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32"],
        ["2001:db8::/32"],
        [],
        ["10.0.0.0/8", "2001:db8::/32"],
    ]
    # A prefix twice, out of order, and of the other family between them.
    assert fibula.PrefixSet(["10.0.0.0/9", "::/1", "10.0.0.0/8", "10.0.0.0/9"]).texts() == ["10.0.0.0/8", "10.0.0.0/9", "::/1"]


def test_sets_of_addresses_against_sets_of_numbers() -> None:
    generator = random.Random(3)
    bits = 6

    def numbers(prefixes: Any) -> set[int]:
        return {n for one in prefixes for n in range(int(one.network_address) >> 26, (int(one.broadcast_address) >> 26) + 1)}

    everything = set(range(1 << bits))
    for _ in range(150):
        given = [[network(generator) for _ in range(generator.randint(0, 6))] for _ in range(2)]
        (one, two), (a, b) = (fibula.AddressSet(x) for x in given), (numbers(x) for x in given)
        for made, expected in [(one | two, a | b), (one & two, a & b), (one - two, a - b), (one ^ two, a ^ b), ((~one).ipv4, everything - a)]:
            assert numbers(made) == expected and made.num_addresses == len(expected) << 26
            assert made == fibula.AddressSet(made) == fibula.AddressSet(made.texts()) == pickle.loads(pickle.dumps(made))
            assert hash(made) == hash(fibula.AddressSet(made.texts()))
            fewest = list(ipaddress.collapse_addresses(list(made)))
            assert list(made) == fewest and len(made) == len(fewest) and bool(made) == bool(expected)
            assert fibula.AddressSet.from_ranges(made.ranges()) == made
        assert (one <= two) == (a <= b) and (one < two) == (a < b) and (one >= two) == (a >= b) and (one > two) == (a > b)
        assert one.isdisjoint(two) == a.isdisjoint(b) and (one == two) == (a == b)
        prefix = network(generator)
        assert (prefix in one) == (numbers([prefix]) <= a) and one.overlaps(prefix) == bool(numbers([prefix]) & a)
    assert fibula.AddressSet(fibula.PrefixSet(["10.0.0.0/9", "10.128.0.0/9"])).texts() == ["10.0.0.0/8"]
    assert (~fibula.AddressSet()).num_addresses == 2**32 + 2**128
    assert (~fibula.AddressSet(["::/1"])).ipv6.texts() == ["8000::/1"]
    for bad in [[("10.0.0.2", "10.0.0.1")], [("10.0.0.1", "::1")], [("x", "10.0.0.1")]]:
        with pytest.raises(ValueError, match="row 0"):
            fibula.AddressSet.from_ranges(bad)
    with pytest.raises(TypeError):
        fibula.AddressSet() | ["10.0.0.0/8"]  # type: ignore[operator]


def test_a_map_answers_the_same_when_many_lookups_have_compiled_it() -> None:
    generator = random.Random(4)
    own: fibula.PrefixMap[Any] = fibula.PrefixMap()
    model: dict[ipaddress.IPv4Network, Any] = {}
    shared = object()

    def compare() -> None:
        for bits in range(64):
            address = ipaddress.IPv4Address(bits << 26)
            around = [one for one in model if address in one]
            assert own.lookup(address, 7) is (model[max(around, key=lambda one: one.prefixlen)] if around else 7)
            assert own.lookup(ipaddress.IPv6Address("2001:db8::1"), 7) == "six"

    own["2001:db8::/32"] = "six"
    for step in range(12):
        prefix = network(generator)
        if step % 3 == 2:
            own.pop(prefix, None), model.pop(prefix, None)
        else:
            own[prefix] = model[prefix] = shared if step % 2 else [step]
        for _ in range(8):
            compare()
    # What it was compiled of ends with it.
    gone = weakref.ref(thing := type("Thing", (), {})())
    own["10.0.0.0/8"] = thing
    for _ in range(1000):
        assert own.lookup("10.0.0.1") is thing
    del thing
    own["10.0.0.0/8"] = None
    assert gone() is None and own.lookup("10.0.0.1", 7) is None
    own["11.0.0.0/8"] = own
    for _ in range(1000):
        own.lookup("11.0.0.1")
    left = weakref.ref(own)
    del own
    gc.collect()
    assert left() is None
