"""The extension of DuckDB: the shared questions, files that are replaced, bad input. `bindings/duckdb/build` makes it; FIBULA_EXTENSION names another one."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import threading
from typing import Any

import pytest

import fibula
import questions
from conftest import REPOSITORY
from questions import Asked

duckdb = pytest.importorskip("duckdb")

ALL = questions.questions()

TYPES = {
    "string": "varchar",
    "uint32": "uinteger",
    "int32": "integer",
    "uint64": "ubigint",
    "int64": "bigint",
    "uint128": "uhugeint",
    "fixed_4": "blob",
    "fixed_16": "blob",
    "binary": "blob",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return questions.saved(tmp_path_factory.mktemp("duckdb"))


@pytest.fixture(scope="module")
def con() -> Any:
    from fibula.duckdb import extension, load

    try:
        extension()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    load(con)
    return con


def literal(kind: str, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"'{''.join(f'{chr(92)}x{byte:02x}' for byte in value)}'::blob"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"'{value}'::{TYPES[kind]}"


def fill(con: Any, asked: Asked) -> None:
    con.execute(f"create or replace table asked (n integer, ip {TYPES[asked.kind]}, asn bigint)")
    asns = asked.asns if asked.call == "rov" else [None] * len(asked.addresses)
    rows = [f"({at}, {literal(asked.kind, ip)}, {'null' if asn is None else asn})" for at, (ip, asn) in enumerate(zip(asked.addresses, asns, strict=True))]
    con.execute(f"insert into asked values {', '.join(rows)}")


def call(asked: Asked, path: str, ip: str = "ip", asn: str = "asn", rule: str = "") -> str:
    if asked.call == "rov":
        return f"rov('{questions.VRPS}', {ip}, {asn}{rule})"
    column = "" if asked.argument is None else f", '{asked.argument}'"
    return f"{asked.call}('{path}', {ip}{column}{rule})"


@pytest.mark.parametrize("asked", ALL, ids=lambda asked: asked.name)
def test_questions(asked: Asked, path: str, con: Any) -> None:
    fill(con, asked)
    select = f"select {call(asked, path)} from asked order by n"
    assert [row[0] for row in con.execute(select).fetchall()] == asked.answers
    # Many chunks; and each row as a constant.
    many = f"select {call(asked, path)} from asked, range(300) t(k) order by k, n"
    assert [row[0] for row in con.execute(many).fetchall()] == asked.answers * 300
    for ip, asn, answer in list(zip(asked.addresses, asked.asns, asked.answers, strict=True))[:4]:
        constant = call(asked, path, f"{literal(asked.kind, ip)}::{TYPES[asked.kind]}", "null::bigint" if asn is None else str(asn) if asked.call == "rov" else "")
        assert con.execute(f"select {constant}").fetchone() == (answer,)
    if asked.invalid:
        with pytest.raises(duckdb.InvalidInputException, match=asked.call):
            con.execute(f"select {call(asked, path, rule=', %r' % 'raise')} from asked").fetchall()
        assert [row[0] for row in con.execute(f"select {call(asked, path, rule=', %r' % 'null')} from asked order by n").fetchall()] == asked.answers


def test_types_of_answers(path: str, con: Any) -> None:
    calls = ["lpm('{}', '10.0.0.1')", "lpm_id('{}', '10.0.0.1')", "lpm_u64('{}', '10.0.0.1', 'asn')", "lpm_f64('{}', '10.0.0.1', 'latitude')"]
    found = con.execute("select " + ", ".join(f"typeof({one.format(path)})" for one in calls)).fetchone()
    assert found == ("VARCHAR", "UINTEGER", "UBIGINT", "DOUBLE")
    # Literals of numbers, as DuckDB reads them.
    assert con.execute(f"select lpm('{path}', 167837696), lpm('{path}', 3221225985), lpm('{path}', 42540766411282592856903984951653826561)").fetchone() == (
        "lab",
        "amsterdam",
        "documentation",
    )
    assert con.execute(f"select lpm('{path}', null), lpm(null, '10.0.0.1'), lpm_column('{path}', '10.0.0.1', null)").fetchone() == (None, None, None)


def test_types_of_ases(con: Any) -> None:
    for kind in ["utinyint", "smallint", "usmallint", "integer", "uinteger", "bigint", "ubigint"]:
        assert con.execute(f"select rov('{questions.VRPS}', '192.0.2.0/24', 100::{kind})").fetchone() == ("invalid-as",)
    assert con.execute(f"select rov('{questions.VRPS}', '192.0.2.0/24', 64500)").fetchone() == ("valid",)


def test_texts_that_repeat_and_that_do_not(con: Any, tmp_path: pathlib.Path) -> None:
    """In DuckDB 1.5.6 and later, texts of a chunk that repeat are entries of a dictionary."""
    path = tmp_path / "many.fibula"
    names = [f"value {at} that is longer than what a vector holds in place" if at % 7 else None for at in range(5_000)]
    fibula.Table.build([f"10.{at >> 8}.{at & 255}.0/24" for at in range(5_000)], {"name": names, "number": [at % 5 for at in range(5_000)]}).save(path)
    for spread in [1, 2, 40, 300, 1100, 1500, 5_200]:
        # Every so many rows another route, and addresses beyond all routes.
        rows = f"select n, 167772160 + hash(n) % {spread} * 256 as ip from range(20000) r(n)"
        found = con.execute(f"select (ip - 167772160) // 256, lpm('{path}', ip::uinteger), lpm_column('{path}', ip::uinteger, 'number') from ({rows}) order by n").fetchall()
        for at, name, number in found:
            assert (name, number) == ((names[at], str(at % 5)) if at < 5_000 else (None, None)), spread
        # Kept, sorted and compared, where a chunk's dictionary is gone.
        con.execute(f"create or replace table kept as select n, lpm('{path}', ip::uinteger) as name from ({rows})")
        assert con.execute("select name from kept order by n").fetchall() == [(name,) for _, name, _ in found]
        assert con.execute(f"select count(*) from (select lpm('{path}', ip::uinteger) as name from ({rows})) join kept using (name) where kept.n < 20").fetchone() == (
            sum(found[at][1] is not None and found[at][1] == other[1] for at in range(20) for other in found),
        )
    # One address in all rows, which is a constant to DuckDB.
    for ip, name in [("167772161 + 256", names[1]), ("167772161", None), ("0", None)]:
        select = f"select min(x), max(x), count(x) from (select lpm('{path}', a.ip) as x from (values (({ip})::uinteger)) a(ip), range(5000))"
        assert con.execute(select).fetchone() == (name, name, 5_000 if name else 0)
    # The table of a prepared query is bound later; it and the column may also be of one row alone.
    con.execute("prepare asked as select count(lpm_column($1, 167772161::uinteger + 256 * n::uinteger, $2)) from range(5000) r(n)")
    for column, count in [("name", 4_285), ("number", 5_000)]:
        assert con.execute(f"execute asked('{path}', '{column}')").fetchone() == (count,)


def test_the_interface_that_is_used(path: str, con: Any) -> None:
    """DuckDB 1.5.6 and later run what the tests of older versions run, too, where the variable says so."""
    program = f"import duckdb, fibula.duckdb; con = duckdb.connect(config={{'allow_unsigned_extensions': 'true'}}); fibula.duckdb.load(con); print(con.execute(\"select lpm('{path}', ip), lpm_id('{path}', ip) is null from (values ('10.0.0.1'), ('x')) a(ip), range(300)\").fetchall() == [('private', False)] * 300 + [(None, True)] * 300)"
    program = program.replace("range(300)", "range(300) order by ip")
    for interface in ["1.2.0", "newest"]:
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, "FIBULA_DUCKDB_INTERFACE": interface})
        assert run.stdout == "True\n"


def test_tables_and_columns_of_rows(path: str, con: Any, tmp_path: pathlib.Path) -> None:
    other = tmp_path / "other.fibula"
    fibula.Table.build(["10.0.0.0/8"], ["other"]).save(other)
    rows = con.execute(f"select lpm(case when n % 3 = 0 then '{other}' when n % 3 = 1 then '{path}' end, '10.0.0.1') from range(5000) r(n) order by n")
    assert [row[0] for row in rows.fetchall()] == (["other", "private", None] * 1667)[:5000]
    rows = con.execute(f"select lpm_column('{path}', '10.0.0.1', case when n % 2 = 0 then 'asn' else 'country' end) from range(5000) r(n) order by n")
    assert [row[0] for row in rows.fetchall()] == ["4294967295", "FR"] * 2500


def test_routes_are_those_of_the_file(path: str, con: Any, tmp_path: pathlib.Path) -> None:
    from fibula import sql

    for name in questions.TYPES:
        assert con.execute(f"select * from fibula_routes('{path}', value := '{name}')").fetchall() == list(sql.fibula_routes(path, name))
    assert con.execute(f"select * from fibula_routes('{path}')").fetchall() == list(sql.fibula_routes(path))
    many = tmp_path / "many.fibula"
    prefixes = [f"10.{at >> 8}.{at & 255}.0/24" for at in range(20_000)] + [f"2001:db8:{at:x}::/48" for at in range(5_000)] + ["::1.2.3.4/128", "::1/128", "::ffff:1.2.3.0/120"]
    fibula.Table.build(prefixes).save(many)
    found = con.execute(f"select prefix, value from fibula_routes('{many}')").fetchall()
    assert found == list(sql.fibula_routes(many))
    assert con.execute(f"select count(*), count(value) from fibula_routes('{many}')").fetchone() == (25_003, 25_003)


def test_a_table_that_is_replaced_is_followed(con: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.fibula"
    select = f"select distinct lpm('{path}', ip) from (select '10.0.0.' || (n % 256) as ip from range(10000) r(n))"
    for name in ["one", "two", "three"]:
        fibula.Table.build(["10.0.0.0/8"], [name]).save(path)
        assert con.execute(select).fetchall() == [(name,)]
    broken = tmp_path / "broken"
    broken.write_bytes(path.read_bytes()[:100])
    broken.rename(path)
    assert con.execute(select).fetchall() == [("three",)]
    (said,) = con.execute(f"select error from fibula_tables() where file = '{path}'").fetchone()
    assert "table.fibula" in said
    path.unlink()
    assert con.execute(select).fetchall() == [("three",)]
    fibula.Table.build(["10.0.0.0/8"], ["four"]).save(path)
    assert con.execute(select).fetchall() == [("four",)]
    assert con.execute(f"select error from fibula_tables() where file = '{path}'").fetchone() == (None,)


def test_replaced_while_queries_run(con: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.fibula"
    fibula.Table.build(["10.0.0.0/8"], ["0"]).save(path)
    is_done = threading.Event()

    def replace() -> None:
        number = 0
        while not is_done.is_set():
            number += 1
            fibula.Table.build(["10.0.0.0/8"], [str(number)]).save(path)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        con.execute("set threads to 4")
        last = 0
        for _ in range(10):
            select = f"select lpm('{path}', 167772160 + n) as number, count(*) from range(500000) r(n) group by 1 order by 1"
            found = con.execute(select).fetchall()
            assert sum(count for _, count in found) == 500_000
            numbers = [int(number) for number, _ in found]
            assert min(numbers) >= last
            last = min(numbers)
    finally:
        is_done.set()
        writer.join()


def test_payloads_that_are_replaced_are_read_again(con: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "vrps.csv"
    heading = "ASN,IP Prefix,Max Length,Trust Anchor\n"
    select = f"select rov('{path}', '192.0.2.0/24', asn) from (values (64500::bigint)) r(asn)"
    path.write_text(heading + "AS64500,192.0.2.0/24,24,test\n")
    assert con.execute(select).fetchone() == ("valid",)
    path.write_text(heading + "AS64501,192.0.2.0/24,24,test\nAS64502,192.0.2.0/24,24,test\n")
    assert con.execute(select).fetchone() == ("invalid-as",)
    path.write_text("nothing")
    assert con.execute(select).fetchone() == ("invalid-as",)
    (said,) = con.execute(f"select error from fibula_tables() where file = '{path}'").fetchone()
    assert "vrps.csv" in said


def test_what_is_wrong_is_an_error_of_duckdb(path: str, con: Any, tmp_path: pathlib.Path) -> None:
    table = tmp_path / "broken.fibula"
    image = pathlib.Path(path).read_bytes()
    for bad in [b"", b"x", image[:-1], image[: len(image) // 2], image[:100] + b"x" + image[101:]]:
        table.write_bytes(bad)
        with pytest.raises(duckdb.InvalidInputException, match=r"lpm: .*broken\.fibula"):
            con.execute(f"select lpm('{table}', '10.0.0.1')").fetchall()
    for sql, said in [
        (f"lpm('{tmp_path}/absent', ip)", "lpm: .*absent.*No such file"),
        (f"lpm('{tmp_path}', ip)", "lpm: "),
        (f"lpm('{questions.FOLDER}/routes.csv', ip)", r"lpm: .*routes\.csv"),
        ("lpm('', ip)", "lpm: "),
        (f"lpm('{path}' || chr(0), ip)", "byte 0"),
        (f"lpm_column('{path}', ip, 'city')", "lpm_column: .*no column 'city'"),
        (f"lpm_u64('{path}', ip, 'name')", "lpm_u64: column 'name' is of type text, and not u32 and u64"),
        (f"lpm_u64('{path}', ip, 'offset')", "of type i64"),
        (f"lpm_f64('{path}', ip, 'bytes')", "of type u64, and not f64 and u32"),
        (f"lpm('{path}', 'zehn', 'raise')", "lpm: 'zehn': "),
        (f"lpm('{path}', ip || chr(0), 'raise')", "lpm: '10.0.0.1.x00': "),
        (f"lpm('{path}', repeat('x', 1000000), 'raise')", r"lpm: 'x{64}\.\.\.': "),
        (f"lpm('{path}', ip, 'skip')", "'null' or 'raise', and not 'skip'"),
        (f"lpm_prefix('{path}', '10.0.0.0/8', 'raise')", "lpm_prefix: '10.0.0.0/8': "),
        (f"rov('{tmp_path}/absent', ip, 1)", "rov: .*absent.*No such file"),
        (f"rov('{questions.FOLDER}/routes.csv', ip, 1)", r"rov: .*routes\.csv"),
        (f"rov('{questions.VRPS}', 'x/8', 1, 'raise')", "rov: 'x/8' is not a prefix"),
        (f"rov('{questions.VRPS}', '10.0.0.0/8', -1, 'raise')", "rov: -1 is not an AS number"),
        (f"rov('{questions.VRPS}', '10.0.0.0/8', 4294967296, 'raise')", "4294967296 is not an AS"),
        (f"rov('{questions.VRPS}', '10.0.0.0/8', 18446744073709551615::ubigint, 'raise')", "rov: 18446744073709551615 is not an AS"),
    ]:
        with pytest.raises(duckdb.InvalidInputException, match=said):
            con.execute(f"select {sql} from (select '10.0.0.1' as ip)").fetchall()
    # The connection goes on.
    assert con.execute(f"select lpm('{path}', '10.0.0.1'), rov('{questions.VRPS}', '10.0.0.0/8', -1)").fetchone() == ("private", None)
    for sql in ["lpm()", "lpm('x')", f"lpm('{path}', 1.5)", f"lpm('{path}', true, 'null', 1)", f"lpm('{path}', [1])"]:
        with pytest.raises(duckdb.Error):
            con.execute(f"select {sql}").fetchall()
    for sql, said in [("null", "null"), (f"'{tmp_path}/absent'", "absent"), (f"'{path}', value := 'city'", "no column 'city'")]:
        with pytest.raises(duckdb.Error, match=said):
            con.execute(f"select * from fibula_routes({sql})").fetchall()


def test_the_sql_of_the_guide(con: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (REPOSITORY / "docs/guide/data-engines.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    made = next(code for language, code in blocks if language == "python")
    exec(made, {})
    compared = 0
    for at, (language, code) in enumerate(blocks):
        if language != "sql":
            continue
        rows = []
        for statement in duckdb.extract_statements(code):
            found = con.execute(statement)
            if statement.type == duckdb.StatementType.SELECT:
                rows += found.fetchall()
        assert "".join(f"{row}\n" for row in rows) == blocks[at + 1][1]
        compared += 1
    assert compared >= 3


def test_a_file_that_is_no_extension_of_this_version_is_said_to_be_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    from fibula.duckdb import load

    monkeypatch.setenv("FIBULA_EXTENSION", str(tmp_path / "absent.duckdb_extension"))
    with pytest.raises(FileNotFoundError, match="absent"):
        load(duckdb.connect())


def test_a_connection_that_refuses_unsigned_extensions_says_what_to_do(con: Any) -> None:
    from fibula.duckdb import load

    with pytest.raises(duckdb.Error, match="allow_unsigned_extensions"):
        load(duckdb.connect())
