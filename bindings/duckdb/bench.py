#!/usr/bin/env python3
"""Measures the extension in DuckDB beside DuckDB's own best way, an ASOF join on disjoint ranges, and beside ClickHouse's dictionary of prefixes
(`ip_trie`) where chdb is installed.

    PYTHON bindings/duckdb/bench.py TABLE [--rows 10000000] [--runs 3]

TABLE is a table file with routes and a first column of values. Addresses are a random one of a random IPv4 prefix each. Each query runs so many times by one
thread, and the least processor time of the process counts, since a busy machine makes walls meaningless; caches and memory are shared all the same. All ways
give one sum, or it is an error. Prints JSON. `fibula.duckdb` finds the extension, which is to be built in release.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

import duckdb

import fibula
import fibula.duckdb

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from bench import place  # noqa: E402


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def clickhouse(con: duckdb.DuckDBPyConnection, table: str, folder: str) -> dict[str, Callable[[], Any]]:
    """Returns the queries in ClickHouse over the same rows; none where chdb is not there."""
    try:
        from chdb import session
    except ImportError:
        return {}
    con.execute(f"copy (select prefix, value from fibula_routes('{table}')) to '{folder}/routes.csv' (header)")
    con.execute(f"copy flows to '{folder}/flows.parquet'")
    con.execute(f"copy texts to '{folder}/texts.parquet'")
    # A dictionary reads no files outside the folder that it is started in.
    os.chdir(folder)
    server = session.Session(f"{folder}/clickhouse")
    for query in [
        "set max_threads = 1",
        "create database d engine = Atomic",
        f"""create dictionary d.routes (prefix String, value String) primary key prefix
            source(file(path '{folder}/routes.csv' format 'CSVWithNames')) layout(ip_trie) lifetime(0)""",
        f"create table d.flows engine = Memory as select ip::UInt32 as ip from file('{folder}/flows.parquet')",
        f"create table d.texts engine = Memory as select ip::String as ip from file('{folder}/texts.parquet')",
        "system reload dictionary d.routes",
    ]:
        server.query(query)

    def asked(query: str) -> Callable[[], Any]:
        return lambda: int(str(server.query(query, "TSV")).strip())

    return {
        "clickhouse ip_trie, UInt32 to String value": asked(
            "select sum(length(dictGet('d.routes', 'value', ip::IPv4))) from d.flows"
        ),
        "clickhouse ip_trie, String to String value": asked("select sum(length(dictGet('d.routes', 'value', toIPv4(ip)))) from d.texts"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    wanted = parser.parse_args()
    wanted.table = os.path.abspath(wanted.table)
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    fibula.duckdb.load(con)
    con.execute("set threads to 1")
    con.execute("select setseed(0.42)")
    con.execute(f"""
        create table prefixes as select split_part(prefix, '/', 1) as text, split_part(prefix, '/', 2)::integer as length
          from fibula_routes('{wanted.table}') where not contains(prefix, ':');
        create macro number(text) as split_part(text, '.', 1)::ubigint * 16777216 + split_part(text, '.', 2)::ubigint * 65536
          + split_part(text, '.', 3)::ubigint * 256 + split_part(text, '.', 4)::ubigint;
        create table starts as select row_number() over () - 1 as n, number(text) as first, (1::ubigint << (32 - length)) as size from prefixes;
        create table flows as select (first + (random() * 0.999999 * size)::ubigint)::uinteger as ip
          from (select (random() * 0.999999 * (select count(*) from starts))::bigint as n from range({wanted.rows})) join starts using (n);
        create table texts as select concat_ws('.', ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255) as ip from flows;
        create table bounds as select distinct b from (select first as b from starts union all select first + size from starts union all select 0) where b < 4294967296;
        create table found as select b::uinteger as first, coalesce(lpm_id('{wanted.table}', b::uinteger), 0) as id from bounds order by b;
        create table ranges as select first, id from (select first, id, lag(id) over (order by first) as before from found) where id is distinct from before order by first;
    """)
    rows = con.execute("select count(*) from flows").fetchone()[0]
    table = wanted.table
    queries = {
        "uinteger to id": f"select sum(lpm_id('{table}', ip)) from flows",
        "varchar to id": f"select sum(lpm_id('{table}', ip)) from texts",
        "uinteger to varchar value": f"select sum(length(lpm('{table}', ip))) from flows",
        "varchar to varchar value": f"select sum(length(lpm('{table}', ip))) from texts",
        "asof join, uinteger": "select sum(id) from flows asof join ranges on flows.ip >= ranges.first",
        "asof join, varchar": "select sum(id) from (select number(ip)::uinteger as ip from texts) asof join ranges on ip >= first",
        "reading alone, uinteger": "select sum(ip) from flows",
        "reading alone, varchar": "select sum(length(ip)) from texts",
    }
    results: dict[str, Any] = {}
    sums: dict[str, set[Any]] = {}

    def asked(query: str) -> Callable[[], Any]:
        return lambda: con.execute(query).fetchone()[0]

    ways = {name: asked(query) for name, query in queries.items()}
    folder = tempfile.TemporaryDirectory()
    ways |= clickhouse(con, table, folder.name)
    for name, way in ways.items():
        least = float("inf")
        for _ in range(wanted.runs):
            begin = time.process_time()
            found = way()
            least = min(least, time.process_time() - begin)
        sums.setdefault("value" if "value" in name else name if "alone" in name else "id", set()).add(found)
        results[name] = {"seconds": round(least, 3), "millions": round(rows / least / 1e6, 2)}
    assert all(len(found) == 1 for found in sums.values()), sums
    print(
        json.dumps(
            {
                **place(pathlib.Path(table)),
                "duckdb": duckdb.__version__,
                "chdb": version("chdb"),
                # The newest that DuckDB has, without the variable.
                "interface": os.environ.get("FIBULA_DUCKDB_INTERFACE", "newest"),
                "rows": rows,
                "ranges": con.execute("select count(*) from ranges").fetchone()[0],
                "processor seconds": results,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
