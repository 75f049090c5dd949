#!/usr/bin/env python3
"""Times a column of addresses joined with a table of prefixes: fibula beside DuckDB, ClickHouse's ip_trie and polars with pytricia.

columns.py FIBULA [--addresses N] [--prefixes N] [--folder DIR] [--limit SECONDS] [--only NAME]... [--table FILE] [--record]
    needs numpy and pyarrow; duckdb, chdb, polars and pytricia where they are to be compared; FIBULA is a build with the feature parquet

Every program reads the same Parquet file of addresses (UInt32) and writes one with the value of each; fibula also reads and writes CSV.
Programs run one after the other, as processes of their own, which load the table too. One that takes longer than the limit is ended,
and reported so. Their answers are compared: the number of addresses that have a route, and a sum over the values. With --table, half of
the addresses go through fibula from CSV to CSV with this table, compiled, several times. --record keeps the results for docs/values.md.
"""
import argparse
import importlib.metadata
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("fibula", type=pathlib.Path)
arguments.add_argument("--addresses", type=int, default=104_500_000)
arguments.add_argument("--prefixes", type=int, default=9_800_000)
arguments.add_argument("--folder", type=pathlib.Path)
arguments.add_argument("--limit", type=float, default=900)
arguments.add_argument("--only", action="append", default=[])
arguments.add_argument("--table", type=pathlib.Path)
arguments.add_argument("--record", action="store_true")
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

    # Without a path it keeps what it has in a folder that goes with it.
    db = session.Session()
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


def peak_bytes(pid):
    """Returns the most memory that a process has had. What the system says at its end counts this script's, from before the exec."""
    with open(f"/proc/{pid}/status") as lines:
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def run(command, limit):
    """Returns the seconds, the processor's seconds, the most memory in bytes, and the error if there was one."""
    with tempfile.TemporaryFile() as errors:
        begin, memory = time.time(), 0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        while True:
            memory = max(memory, peak_bytes(process.pid))
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            seconds = time.time() - begin
            if ended:
                break
            if seconds > limit:
                process.kill()
                os.wait4(process.pid, 0)
                return seconds, None, None, f"no end within {limit:.0f} s"
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
    return seconds, usage.ru_utime + usage.ru_stime, memory, said[-1][:200] if process.returncode else None


def programs(options, fibula, folder):
    """Yields name, command, file of the answers, and the column of it that has the value."""
    enrich = [fibula, "enrich", "--quiet", "--column", "address"]
    compiled = folder / "prefixes.fibula"
    for table, how in (folder / "prefixes.csv", "prefixes of CSV"), (compiled, "a compiled table"):
        for kind, column in ("parquet", "next_hop"), ("csv", None):
            out = f"fibula.{kind}"
            name = f"fibula enrich: {how}; {'Parquet' if column else 'CSV to CSV'}"
            yield name, [*enrich, "--table", table, folder / f"addresses.{kind}", "--output", folder / out], out, column
    me = [sys.executable, __file__, fibula, "--folder", folder, "--child"]
    names = {
        "duckdb": ("DuckDB {}: ASOF join with disjoint ranges", "duckdb"),
        "chdb": ("ClickHouse (chdb {}): dictionary ip_trie", "chdb"),
        "polars-pytricia": ("polars {} with pytricia: map_elements", "polars"),
    }
    for child, (name, package) in names.items():
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            print(f"SKIPPED {child}: {package} is not installed", file=sys.stderr)
            continue
        yield name.format(version), [*me, child], f"{child}.parquet", "value"


def load():
    """Says how many programs there were, this one included: the seconds of a busy machine say little, the processor's more."""
    return f"load {os.getloadavg()[2]:.0f} on {os.cpu_count()} processors"


def lines(options, fibula, folder, runs=7):
    """Returns a table of the record: CSV to CSV with a real table."""
    compiled, addresses, out = folder / "real.fibula", folder / "half.csv", folder / "half-out.csv"
    subprocess.run([fibula, "compile", "--quiet", options.table, "--output", compiled], check=True)
    count = options.addresses // 2
    with open(folder / "addresses.csv", "rb") as whole, open(addresses, "wb") as half:
        half.writelines(itertools.islice(whole, count + 1))
    command = [fibula, "enrich", "--quiet", "--table", compiled, "--column", "address", addresses, "--output", out]
    took = [run(command, options.limit) for _ in range(runs)]
    if any(error for *_, error in took):
        sys.exit(next(error for *_, error in took if error))
    seconds, cpu_seconds, memory = (statistics.median(column) for column in list(zip(*took))[:3])
    row = ["fibula enrich, CSV to CSV", f"{seconds:.2f}", f"{count / seconds / 1e6:.1f}", f"{cpu_seconds:.2f}",
           f"{cpu_seconds / count * 1e9:.0f} ({min(cpu for _, cpu, *_ in took) / count * 1e9:.0f} to {max(cpu for _, cpu, *_ in took) / count * 1e9:.0f})",
           f"{memory / 1e6:.0f}"]
    print(" | ".join(row), flush=True)
    addresses.unlink()
    out.unlink()
    return {"title": f"{count:,} addresses with the compiled table of {options.table.name}, median of {runs} runs ({load()})",
            "header": ["", "s", "million lines/s", "processor s", "processor ns a line", "most memory, MB"], "rows": [row]}


def machine(fibula):
    """Returns this machine and its folder's name, as the benchmark records it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([fibula.with_name("fibula-lab"), "rates", "--quiet", "--synth", "ipv4/1000", "--engine", "radix", "--record", folder],
                       check=True, stdout=subprocess.DEVNULL)
        record = next(pathlib.Path(folder).rglob("*.json"))
        return json.loads(record.read_text())["machine"], record.parent.name


def main():
    options = arguments.parse_args()
    fibula = options.fibula.resolve()
    folder = options.folder or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if options.child:
        return CHILDREN[options.child](folder, folder / f"{options.child}.parquet")
    if not (folder / "made").exists():
        make(folder, options.addresses, options.prefixes)
        csv_of(folder)
        ranges(folder, fibula)
        (folder / "made").touch()
    subprocess.run([fibula, "compile", "--quiet", folder / "prefixes.csv", "--output", folder / "prefixes.fibula"], check=True)
    rows, expected, differ = [], None, False
    for name, command, out, column in programs(options, fibula, folder):
        if options.only and not any(only in name for only in options.only):
            continue
        seconds, cpu_seconds, memory, error = run(command, options.limit)
        row = [name]
        if error:
            row += [error, "", "", "", ""]
        else:
            found = answer(folder / out, column) if column else answer_csv(folder / out)
            expected = expected or found
            differ |= found != expected
            row += [f"{seconds:.1f}", f"{cpu_seconds:.1f}", f"{options.addresses / seconds / 1e6:.1f}", f"{memory / 1e9:.1f}",
                    "yes" if found == expected else f"no: {found[0]} matched, not {expected[0]}"]
        (folder / out).unlink(missing_ok=True)
        print(" | ".join(row), flush=True)
        rows.append(row)
    real = [lines(options, fibula, folder)] if options.table else []
    if options.record:
        described, slug = machine(fibula)
        path = ROOT / "records/values" / slug / "data_engines.json"
        joined = [{
            "title": f"{options.addresses:,} addresses joined with {options.prefixes:,} prefixes, from file to file, the table's loading "
                     f"included; {expected[0]:,} of them match ({load()})",
            "header": ["", "s", "processor s", "million addresses/s", "most memory, GB", "same answers"],
            "rows": rows,
        }] if expected else []
        # What was not measured this time stays as it was.
        old = json.loads(path.read_text())["tables"] if path.exists() else []
        tables = [*(joined or old[:1]), *(real or old[1:])]
        given = f" --table {options.table.name}" if options.table else ""
        record = {"name": "data_engines", "command": f"crates/fibula-cli/tests/columns.py target/release/fibula{given} --record",
                  "machine": described, "tables": tables}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=2) + "\n")
        print(f"{path} written")
    sys.exit(differ)


main()
