"""Makes the documented calls of each original on the original and on its stand-in, and compares the results.

The calls are those of the README files of pytricia 1.3.0, py-radix 1.1.0, pyasn 1.6.2 and maxminddb 3.2.0; where one prints, its result is taken.
"""

from __future__ import annotations

import importlib
import ipaddress
import pathlib
import socket
from collections.abc import Callable
from typing import Any

import pytest

import mmdb


def result(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or its error."""
    try:
        return call()
    except (KeyError, ValueError, TypeError) as error:
        return type(error)


def pytricia(module: Any, _folder: pathlib.Path) -> list[Any]:
    pyt = module.PyTricia()
    pyt["10.0.0.0/8"] = "a"
    pyt["10.1.0.0/16"] = "b"
    seen: list[Any] = [pyt["10.0.0.0/8"], pyt["10.1.0.0/16"], pyt["10.0.0.0"], pyt["10.1.0.0"], pyt["10.1.0.1"], pyt["10.0.0.1"]]
    seen += ["10.0.0.0" in pyt, "10.1.0.0" in pyt, "10.0.0.0/8" in pyt, "10.2.0.0/8" in pyt, "11.0.0.0" in pyt]
    seen += [pyt.has_key("10.0.0.0/8"), pyt.has_key("10.2.0.0/16"), pyt.has_key("10.0.0.0"), list(pyt), pyt.keys(), len(pyt)]
    seen += [pyt.get("10.0.0.1"), pyt.get("11.0.0.1"), pyt.get("11.0.0.1", "x"), pyt.get_key("10.1.2.3"), result(lambda: pyt["11.0.0.0"])]
    pyt.insert("10.2.0.0/16", "c")
    pyt.insert("10.3.0.0", 16, "d")
    pyt.insert(ipaddress.IPv4Network("10.4.0.0/16"), "e")
    seen += [pyt[ipaddress.IPv4Address("10.3.0.1")], pyt[socket.inet_aton("10.2.0.1")], sorted(pyt.children("10.0.0.0/8")), pyt.children("10.2.0.0/16")]
    seen += [pyt.parent("10.1.0.0/16"), pyt.parent("10.0.0.0/8"), result(lambda: pyt.parent("10.9.0.0/16")), result(lambda: pyt.children("10.9.0.0/16"))]
    del pyt["10.1.0.0/16"]
    pyt.delete("10.2.0.0/16")
    seen += [pyt["10.1.0.1"], len(pyt), result(lambda: pyt.delete("10.2.0.0/16"))]
    pyt.freeze()
    seen += [pyt["10.3.0.1"], result(lambda: pyt.insert("10.5.0.0/16", 1))]
    pyt.thaw()
    pyt.insert("10.5.0.0/16", 1)
    six = module.PyTricia(128)
    six["fe80:beef::/96"] = "xyz"
    six["fe80::/64"] = "abc"
    return [*seen, pyt["10.5.1.1"], six["fe80:beef::1"], six["fe80::1:2"], result(lambda: six["fe81::1"]), sorted(six.keys())]


def radix(module: Any, _folder: pathlib.Path) -> list[Any]:
    tree = module.Radix()
    node = tree.add("10.0.0.0/8")
    node.data["blah"] = "whatever you want"
    same = [tree.add("10.0.0.0/16"), tree.add("10.0.0.0", 16), tree.add(network="10.0.0.0", masklen=16)]
    seen: list[Any] = [len({one.prefix for one in same}), tree.add(packed=socket.inet_aton("172.18.22.0"), masklen=23).prefix]
    seen += [tree.search_exact("10.0.0.0/8").data["blah"], tree.search_exact(packed=socket.inet_aton("10.0.0.0"), masklen=8).prefix]
    seen += [tree.search_best("10.123.45.6").prefix, tree.search_worst("10.123.45.6").prefix, tree.search_covered("10.123.0.0/16")]
    seen += [sorted(one.prefix for one in tree.search_covered("10.0.0.0/8"))]
    seen += [node.network, node.prefix, node.prefixlen, node.family, node.packed]
    tree.add("2001:DB8::/3")
    tree.add("::/0")
    seen += [sorted(one.prefix for one in tree.nodes()), sorted(tree.prefixes()), sorted(one.prefix for one in tree)]
    tree.delete("10.0.0.0/16")
    return [*seen, sorted(tree.prefixes()), result(lambda: tree.delete("10.0.0.0/16")), tree.search_exact("10.0.0.0/16")]


def pyasn(module: Any, folder: pathlib.Path) -> list[Any]:
    path = folder / "ipasn.dat"
    path.write_text("; IP-ASN32-DAT file\n8.8.8.0/24\t15169\n8.8.4.0/24\t15169\n128.189.32.0/19\t1128\n2001:500:88::/48\t16876\n")
    names = folder / "names.json"
    names.write_text('{"1128": "TU Delft", "15169": "Google"}')
    asndb = module.pyasn(str(path), as_names_file=str(names))
    seen: list[Any] = [asndb.lookup("8.8.8.8"), asndb.lookup("2001:500:88:200::8"), asndb.lookup("127.0.0.1")]
    seen += [sorted(asndb.get_as_prefixes(15169)), asndb.get_as_prefixes(1), sorted(asndb.get_as_prefixes("1128"))]
    seen += [asndb.get_as_prefixes_effective(1128), asndb.get_as_prefixes_effective(15169), asndb.get_as_size(1128), asndb.get_as_name(1128), asndb.get_as_name(5)]
    return [*seen, asndb.convert_32bit_to_asdot_asn_format(65536 + 10), asndb.convert_asdot_to_32bit_asn("AS1.10"), result(lambda: asndb.lookup("x"))]


def maxminddb(module: Any, folder: pathlib.Path) -> list[Any]:
    path = folder / "city.mmdb"
    record = {"country": {"iso_code": "DE", "names": {"en": "Germany"}}, "location": {"latitude": 52.5}}
    path.write_bytes(mmdb.database({ipaddress.ip_network("152.216.0.0/16"): record, ipaddress.ip_network("2001:db8::/32"): record}))
    seen: list[Any] = []
    with module.open_database(str(path)) as reader:
        seen += [reader.get("152.216.7.110"), reader.get_with_prefix_len("152.216.7.110"), reader.get("192.0.2.1"), reader.get(ipaddress.ip_address("2001:db8::1"))]
        seen += [list(reader), reader.metadata().ip_version, reader.metadata().database_type, reader.metadata().languages]
    return [*seen, reader.closed, result(lambda: reader.get("1.1.1.1")), *map(int, [module.MODE_AUTO, module.MODE_MMAP_EXT, module.MODE_FD])]


@pytest.mark.parametrize("session", [pytricia, radix, pyasn, maxminddb], ids=lambda session: session.__name__)
def test_what_the_documentation_of_the_original_shows(session: Callable[[Any, pathlib.Path], list[Any]], tmp_path: pathlib.Path) -> None:
    name = session.__name__
    theirs = pytest.importorskip(name, reason=f"the original of fibula.{name} is not installed")
    expected = session(theirs, tmp_path)
    found = session(importlib.import_module(f"fibula.{name}"), tmp_path)
    assert len(found) > 10
    for at, (one, two) in enumerate(zip(found, expected, strict=True)):
        assert one == two and type(one) is type(two), f"result {at}"
