#!/usr/bin/env python3
"""Times a column of addresses joined with a table of prefixes: fibula beside DuckDB, ClickHouse's ip_trie and polars with pytricia.

columns.py FIBULA [--addresses N] [--prefixes N] [--folder DIR] [--record FILE]   needs numpy, pyarrow; duckdb, chdb, polars and
                                                     pytricia where they are to be compared; FIBULA is a build with the feature parquet

Every program reads the same Parquet file of addresses (UInt32) and writes one with the value of each; fibula also reads and writes CSV.
Programs run one after the other, as processes of their own, the table's loading included. Their answers are compared: the number of
addresses that have a route, and a sum over the values.
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("fibula", type=pathlib.Path)
arguments.add_argument("--addresses", type=int, default=104_500_000)
arguments.add_argument("--prefixes", type=int, default=9_800_000)
arguments.add_argument("--folder", type=pathlib.Path)
arguments.add_argument("--record", type=pathlib.Path)
arguments.add_argument("--only", action="append", default=[])
arguments.add_argument("--child", help=argparse.SUPPRESS)


def make(folder, addresses, prefixes):
    """Random prefixes of all lengths from /8 to /32, most of them long, with 1,000 values; uniform addresses."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance = np.random.default_rng(1)
    lengths = chance.choice(np.arange(8, 33), prefixes, p=(w := 1.6 ** np.arange(25)) / w.sum())
    nets = chance.integers(0, 224 << 24, prefixes, dtype=np.uint32) & ~((np.uint64(1) << (32 - lengths).astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
    nets, first = np.unique((nets.astype(np.uint64) << np.uint64(6)) | lengths.astype(np.uint64), return_index=True)
    values = chance.integers(0, 1000, len(nets))
    with open(folder / "prefixes.csv", "w") as out:
        out.write("prefix,value\n")
        for key, value in zip(nets.tolist(), values.tolist()):
            net = key >> 6
            out.write(f"{net >> 24}.{net >> 16 & 255}.{net >> 8 & 255}.{net & 255}/{key & 63},v{value}\n")
    column = chance.integers(1 << 24, 224 << 24, addresses, dtype=np.uint32)
    pq.write_table(pa.table({"address": column}), folder / "addresses.parquet", row_group_size=1 << 20)


def csv_of(folder):
    import numpy as np
    import pyarrow.parquet as pq

    with open(folder / "addresses.csv", "wb") as out:
        out.write(b"address\n")
        for batch in pq.ParquetFile(folder / "addresses.parquet").iter_batches(1 << 20):
            column = np.asarray(batch.column(0))
            parts = [(column >> shift & 255).astype("U3") for shift in (24, 16, 8, 0)]
            text = np.char.add(np.char.add(np.char.add(parts[0], "."), np.char.add(parts[1], ".")), np.char.add(np.char.add(parts[2], "."), parts[3]))
            out.write("\n".join(text.tolist()).encode() + b"\n")


def ranges(folder, fibula):
    """Disjoint ranges with their values, which a join on the last start before an address needs."""
    subprocess.run([fibula, "table", "convert", "--quiet", "--to", "intervals", "--output", folder / "ranges.csv", folder / "prefixes.csv"], check=True)


CHILDREN = {}


def child(function):
    CHILDREN[function.__name__.replace("_", "-")] = function
    return function


@child
def duckdb(folder, out):
    import duckdb

    db = duckdb.connect()
    number = "+".join(f"split_part({{0}}, '.', {part})::uinteger * {256 ** (4 - part)}" for part in (1, 2, 3, 4))
    db.execute(f"""create table ranges as select {number.format("start")} as first, {number.format('"end"')} as last, value
        from read_csv(?, header=true, all_varchar=true) order by first""", [str(folder / "ranges.csv")])
    db.execute(f"""copy (select a.address, case when a.address <= r.last then r.value end as value
        from read_parquet('{folder}/addresses.parquet') a asof left join ranges r on a.address >= r.first) to '{out}' (format parquet)""")


@child
def chdb(folder, out):
    from chdb import session

    db = session.Session(str(out) + ".db")
    db.query("create database d")
    db.query("create table d.p (prefix String, value String) engine = Memory")
    db.query(f"insert into d.p select prefix, value from file('{folder}/prefixes.csv', 'CSVWithNames', 'prefix String, value String')")
    db.query("create dictionary d.t (prefix String, value String) primary key prefix source(clickhouse(table 'p' db 'd')) layout(ip_trie) lifetime(0)")
    db.query(f"""insert into function file('{out}', 'Parquet')
        select address, dictGetOrDefault('d.t', 'value', tuple(toIPv4(address)), '') as value from file('{folder}/addresses.parquet', 'Parquet', 'address UInt32')""")


@child
def polars_pytricia(folder, out):
    import polars
    import pytricia

    table = pytricia.PyTricia(32)
    with open(folder / "prefixes.csv") as lines:
        next(lines)
        for line in lines:
            prefix, value = line.rstrip().split(",")
            table.insert(prefix, value)
    frame = polars.read_parquet(folder / "addresses.parquet")
    frame.with_columns(value=frame["address"].map_elements(table.get, return_dtype=polars.String, skip_nulls=False)).write_parquet(out)


def answer(path, value):
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    matched = total = 0
    for batch in pq.ParquetFile(path).iter_batches(1 << 20, columns=[value]):
        column = batch.column(0)
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        text = column.cast("string")
        text = text.filter(pc.and_(pc.is_valid(text), pc.greater(pc.utf8_length(text), 0)))
        matched += len(text)
        total += pc.sum(pc.utf8_slice_codeunits(text, 1).cast("int64")).as_py() or 0
    return matched, total


def answer_csv(path):
    matched = total = 0
    with open(path) as lines:
        next(lines)
        for line in lines:
            value = line.rstrip("\n").rsplit(",", 1)[1]
            if value:
                matched += 1
                total += int(value[1:])
    return matched, total


def main():
    options = arguments.parse_args()
    fibula = options.fibula.resolve()
    folder = options.folder or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if options.child:
        return CHILDREN[options.child](folder, folder / f"{options.child}.parquet")
    made = folder / "made"
    if not made.exists():
        make(folder, options.addresses, options.prefixes)
        csv_of(folder)
        ranges(folder, fibula)
        made.touch()
    enrich = [fibula, "enrich", "--quiet", "--table", folder / "prefixes.csv", "--column", "address"]
    me = [sys.executable, __file__, fibula, "--folder", folder, "--child"]
    programs = {
        "fibula, Parquet": ([*enrich, folder / "addresses.parquet", "--output", folder / "fibula.parquet"], "fibula.parquet", "next_hop"),
        "fibula, CSV": ([*enrich, folder / "addresses.csv", "--output", folder / "fibula.csv"], "fibula.csv", None),
        **{name: ([*me, name], f"{name}.parquet", "value") for name in CHILDREN},
    }
    rows, expected = [], None
    for name, (command, out, column) in programs.items():
        if options.only and not any(name.startswith(only) for only in options.only):
            continue
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        run = subprocess.run(command, capture_output=True, text=True)
        seconds, after = time.time() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        row = {"program": name, "seconds": round(seconds, 1), "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
               "million_a_second": round(options.addresses / seconds / 1e6, 2)}
        if run.returncode:
            row["failed"] = (run.stderr.strip().splitlines() or ["no word"])[-1][:300]
        else:
            matched = answer(folder / out, column) if column else answer_csv(folder / out)
            expected = expected or matched
            row["matched"], row["agrees"] = matched[0], matched == expected
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
    cpu = {k.strip(): v.strip() for k, _, v in (l.partition(":") for l in open("/proc/cpuinfo"))}
    record = {"what": "addresses joined with prefixes, the table's loading and the files included (crates/fibula-cli/tests/columns.py)",
              "processor": f"{cpu.get('model name')}, family {cpu.get('cpu family')}, model {cpu.get('model')}", "processors": os.cpu_count(),
              "kernel": platform.release(), "addresses": options.addresses, "prefixes": options.prefixes, "programs": rows}
    text = json.dumps(record, indent=2) + "\n"
    print(text)
    if options.record:
        options.record.parent.mkdir(parents=True, exist_ok=True)
        options.record.write_text(text)


main()
