#!/usr/bin/env python3
"""Measures lookups in Spark beside those that people write without this package, and writes a record, from which `scaling.py` computes a cluster.

    SPARK_LOCAL_IP=127.0.0.1 PYTHON bindings/python/bench_spark.py TABLE.txt.xz [--record records/python/MACHINE/spark.json] [--rows 10000000] [--runs 3]

TABLE is a table of IPv4 whose next hops are numbers, such as an origin AS for each prefix. Rows are a random address of a random prefix each, from a seed, in a folder
of Parquet, as text and as an `int`. Each way looks up the same rows, and all of them sum up to the same number, or it is an error. What is counted is processor
time, of the JVM, of Python's workers, and of this process: the least of several runs, since other programs may have the machine. A way that takes more than a minute
runs once.

Needs PySpark and a Java of 17 or later, pyarrow and NumPy; pytricia, maxminddb, duckdb, polars and the command `fibula` (in the path or in FIBULA) where they are there.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import fibula
import fibula.spark
from bench import place

TICKS = os.sysconf("SC_CLK_TCK")


# The processor seconds of each process that this one started, also of those that have ended: Spark ends workers that wait for long.
SEEN: dict[int, tuple[str, float]] = {}


def processes() -> dict[int, tuple[int, str, float]]:
    """Return the parent, the name and the processor seconds of each process."""
    found = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            fields = rest.split()
            found[int(folder.name)] = int(fields[1]), name, sum(map(int, fields[11:13])) / TICKS
    return found


def seconds_by_kind() -> dict[str, float]:
    """Return the processor seconds of what this process started: `jvm` and `python`; `driver` is this process, with commands that have ended."""
    all_ = processes()
    totals = {"jvm": 0.0, "python": 0.0, "driver": sum(os.times()[:4])}
    for process in all_:
        at, is_ours = process, False
        while at in all_ and not is_ours:
            at = all_[at][0]
            is_ours = at == os.getpid()
        if is_ours:
            SEEN[process] = "jvm" if "java" in all_[process][1] else "python", all_[process][2]
    for kind, seconds in SEEN.values():
        totals[kind] += seconds
    return totals


def measured(run: Callable[[], Any], runs: int) -> tuple[Any, dict[str, float]]:
    """Return the answer, and the processor seconds of the run that took least."""
    best: dict[str, float] = {}
    answer = None
    for _ in range(runs):
        before, wall = seconds_by_kind(), time.perf_counter()
        answer = run()
        wall = time.perf_counter() - wall
        after = seconds_by_kind()
        took = {kind: round(after[kind] - before[kind], 2) for kind in after}
        # A tick at least, which is what the system counts in.
        took["processor"] = max(round(sum(took.values()), 2), 1 / TICKS)
        took["wall"] = round(wall, 2)
        if not best or took["processor"] < best["processor"]:
            best = took
        if wall > 60:
            break
    return answer, best


def rows_of(table: fibula.Table, count: int, folder: pathlib.Path) -> None:
    """Write rows, in sixteen files."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    prefixes = [prefix for prefix in table if prefix.version == 4]
    starts = np.array([int(prefix.network_address) for prefix in prefixes], dtype=np.uint32)
    lengths = np.array([prefix.prefixlen for prefix in prefixes], dtype=np.uint32)
    generator = np.random.default_rng(42)
    folder.mkdir()
    for part in range(16):
        at = generator.integers(0, len(prefixes), count // 16)
        hosts = generator.integers(0, 2**32, len(at), dtype=np.uint32)
        masks = np.where(lengths[at] == 0, np.uint32(0xFFFFFFFF), np.right_shift(np.uint32(0xFFFFFFFF), np.minimum(lengths[at], 31)))
        masks[lengths[at] == 32] = 0
        addresses = starts[at] | (hosts & masks)
        quads = addresses.astype(">u4").view(np.uint8).reshape(-1, 4)
        texts = pa.array([f"{a}.{b}.{c}.{d}" for a, b, c, d in quads.tolist()], pa.string())
        pq.write_table(pa.table({"ip": texts, "number": pa.array(addresses.view(np.int32))}), folder / f"{part}.parquet")


def ranges_of(table: fibula.Table, file: pathlib.Path) -> int:
    """Write disjoint ranges with their AS, as `fibula table convert --to intervals` has them. Return how many there are."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    bounds = {0}
    for prefix in table:
        if prefix.version == 4:
            bounds |= {int(prefix.network_address), int(prefix.broadcast_address) + 1}
    bounds.discard(2**32)
    starts = np.array(sorted(bounds), dtype=np.uint32)
    asns = pa.array(table.lookup_many(starts, "asn")).to_pandas().fillna(-1).to_numpy(dtype=np.int64)
    kept = np.flatnonzero(np.concatenate([[True], asns[1:] != asns[:-1]]))
    starts, asns = starts[kept].astype(np.int64), asns[kept]
    ends = np.concatenate([starts[1:] - 1, [2**32 - 1]])
    with_route = asns >= 0
    pq.write_table(pa.table({"first": starts[with_route], "last": ends[with_route], "asn": asns[with_route]}), file)
    return int(with_route.sum())


def ways(spark: Any, flows: Any, table: str, folder: pathlib.Path, made: fibula.Table) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield the name of each way, what it is, and a function that returns its sum."""
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf

    def made_udf(function: Any) -> Any:
        return pandas_udf(function, "long", PandasUDFType.SCALAR_ITER)  # type: ignore[call-overload]

    def total(frame: Any) -> int:
        return int(frame.agg(F.sum("asn")).collect()[0][0])

    def passed(column: str) -> Callable[[], None]:
        frame = flows.select(column)
        return lambda: frame.mapInArrow(lambda batches: batches, frame.schema).agg(F.max(column)).collect() and None

    yield "reading, text", "max(ip)", lambda: flows.agg(F.max("ip")).collect() and None
    yield "reading, int", "max(number)", lambda: flows.agg(F.max("number")).collect() and None
    yield "mapInArrow that does nothing, text", "batches as they came", passed("ip")
    yield "mapInArrow that does nothing, int", "batches as they came", passed("number")
    yield "fibula lookup, text", "fibula.spark.lookup", lambda: total(fibula.spark.lookup(flows.select("ip"), "ip", table, "asn"))
    yield "fibula lookup, int", "fibula.spark.lookup", lambda: total(fibula.spark.lookup(flows.select("number"), "number", table, "asn"))
    flows.createOrReplaceTempView("flows")
    yield "fibula in SQL, text", "lpm_u64", lambda: total(spark.sql(f"select lpm_u64('{table}', ip, 'asn') as asn from flows"))
    ranges = spark.read.parquet(str(folder / "ranges.parquet"))
    # Each range is in all of its buckets of 65,536 addresses.
    buckets = ranges.select("*", F.explode(F.sequence(F.shiftright("first", 16), F.shiftright("last", 16))).alias("bucket"))
    unsigned = F.expr("number & 4294967295L")
    parts = F.split("ip", r"\.")
    of_text = sum((parts[at].cast("long") * 256 ** (3 - at) for at in range(1, 4)), parts[0].cast("long") * 256**3)
    for kind, number in [("int", unsigned), ("text", of_text)]:
        keyed = flows.select(number.alias("n")).withColumn("bucket", F.shiftright("n", 16))
        joined = keyed.join(F.broadcast(buckets), (keyed.bucket == buckets.bucket) & F.col("n").between(F.col("first"), F.col("last")))
        yield f"range join by buckets, {kind}", "a broadcast join of ranges that are cut at 65,536 addresses", lambda joined=joined: total(joined)
    prefixes = spark.read.parquet(str(folder / "prefixes.parquet"))
    lengths = [row[0] for row in prefixes.select("length").distinct().orderBy("length").collect()]
    masks = F.array(*[F.struct(F.lit(one).alias("length"), F.lit(2**32 - 2 ** (32 - one)).alias("mask")) for one in lengths])
    exploded = flows.select(F.monotonically_increasing_id().alias("row"), unsigned.alias("n")).withColumn("one", F.explode(masks))
    exploded = exploded.select("row", "one.length", F.col("n").bitwiseAND(F.col("one.mask")).alias("first"))
    longest = exploded.join(F.broadcast(prefixes), ["first", "length"]).groupBy("row").agg(F.max_by("asn", "length").alias("asn"))
    yield "join on exploded prefixes, int", f"a broadcast join on each of {len(lengths)} lengths, and the longest by row", lambda: total(longest)
    saved = str(folder / "prefixes.txt")
    if version("pytricia"):

        def in_trie(batches: Iterator[Any]) -> Iterator[Any]:
            import pandas
            import pytricia

            # Kept from task to task by the worker.
            trie = getattr(pytricia, "kept", None)
            if trie is None:
                trie = pytricia.kept = pytricia.PyTricia()
                with open(saved) as file:
                    for line in file:
                        prefix, asn = line.split()
                        trie[prefix] = int(asn)
                trie.freeze()
            for batch in batches:
                yield pandas.Series([trie.get(one) for one in batch])

        yield "pandas UDF around pytricia, text", "a trie in each worker, filled before what is counted", lambda: total(flows.select(made_udf(in_trie)("ip").alias("asn")))
    database = folder / "asn.mmdb"
    if database.exists():

        def in_database(batches: Iterator[Any]) -> Iterator[Any]:
            import maxminddb
            import pandas

            reader = maxminddb.open_database(str(database))
            for batch in batches:
                found = map(reader.get, batch)
                yield pandas.Series([one and one["autonomous_system_number"] for one in found])

        yield "pandas UDF around maxminddb, text", "its reader in C", lambda: total(flows.select(made_udf(in_database)("ip").alias("asn")))


def in_duckdb(table: str, parquet: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    try:
        import duckdb

        import fibula.duckdb

        con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        fibula.duckdb.load(con)
    except (ImportError, FileNotFoundError):
        return
    con.execute("set threads to 2")

    def asked(sql: str) -> Callable[[], Any]:
        return lambda: con.execute(sql).fetchone()[0]

    files = f"'{parquet}/*.parquet'"
    yield "DuckDB reading, text", "max(ip)", lambda: asked(f"select max(ip) from {files}")() and None
    yield "DuckDB, text", "lpm_u64", asked(f"select sum(lpm_u64('{table}', ip, 'asn')) from {files}")
    yield "DuckDB, int", "lpm_u64", asked(f"select sum(lpm_u64('{table}', number, 'asn')) from {files}")


def on_one_machine(table: str, folder: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield what needs no Spark, but for DuckDB."""
    command = shutil.which(os.environ.get("FIBULA", "fibula"))
    if command:
        import pyarrow.csv
        import pyarrow.parquet as pq

        pyarrow.csv.write_csv(pq.read_table(folder / "flows", columns=["ip"]), folder / "flows.csv")
        enrich = [command, "enrich", "-q", "-t", table, "-c", "ip", folder / "flows.csv", "-o", folder / "found.csv"]
        yield "fibula enrich, CSV", "CSV to CSV, with prefix, next hop and AS", lambda: subprocess.run(enrich, check=True) and None
    if version("polars"):
        import polars as pl

        import fibula.polars

        assert fibula.polars
        scanned = pl.scan_parquet(f"{folder}/flows/*.parquet")
        for kind, column in [("text", "ip"), ("int", "number")]:
            asked = scanned.select(pl.col(column).fibula.lookup(table, "asn").cast(pl.Int64).sum())
            yield f"Polars, {kind}", "lookup", lambda asked=asked: asked.collect(engine="streaming").item()


def alone(made: fibula.Table, parquet: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    read = pq.read_table(parquet)
    for name, column in [("text", "ip"), ("int", "number")]:
        chunks = read[column].chunks
        yield f"Table.lookup_many, {name}", "the rows in memory", lambda chunks=chunks: sum(
            pc.sum(made_array(made, chunk)).as_py() for chunk in chunks
        )


def made_array(made: fibula.Table, chunk: Any) -> Any:
    import pyarrow as pa

    return pa.array(made.lookup_many(chunk, "asn", dictionary=False))


def update(file: pathlib.Path, folder: pathlib.Path) -> dict[str, float]:
    """Return the seconds that a table of this size takes: to publish it, to take it up in a worker, and to look whether there is another."""
    published = fibula.spark.Published(folder / "published")
    begin = time.process_time()
    stamp = published.publish(file)
    publish = time.process_time() - begin
    source = fibula.spark._Source(published.path(stamp), False)
    take = min(timed(lambda: (fibula.spark._fixed.clear(), source.table(stamp))) for _ in range(20))
    source.table(None)
    look = timed(lambda: [source.table(None) for _ in range(10_000)]) / 10_000
    return {"publish seconds": round(publish, 4), "take up seconds": round(take, 5), "look seconds": round(look, 8)}


def timed(run: Callable[[], Any]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="the ways whose names have this")
    parser.add_argument("--record", type=pathlib.Path)
    wanted = parser.parse_args()
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import pyspark
    from pyspark.sql import SparkSession

    wanted.rows -= wanted.rows % 16
    read = fibula.Table.read(wanted.table)
    prefixes = [prefix for prefix in read if prefix.version == 4 and prefix.prefixlen > 0]
    asns = np.array([int(read[prefix]) for prefix in prefixes], dtype=np.uint32)
    table = fibula.Table.build(prefixes, {"asn": pa.array(asns)})
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = folder / "asn.fibula"
        table.save(file)
        (folder / "prefixes.txt").write_text("".join(f"{prefix} {asn}\n" for prefix, asn in zip(prefixes, asns, strict=True)))
        pq.write_table(
            pa.table({
                "first": pa.array([int(prefix.network_address) for prefix in prefixes], pa.int64()),
                "length": pa.array([prefix.prefixlen for prefix in prefixes], pa.int32()),
                "asn": pa.array(asns, pa.int64()),
            }),
            folder / "prefixes.parquet",
        )  # fmt: skip
        ranges = ranges_of(table, folder / "ranges.parquet")
        command = shutil.which(os.environ.get("FIBULA", "fibula"))
        if command and version("maxminddb"):
            (folder / "prefixes.csv").write_text("prefix,asn\n" + (folder / "prefixes.txt").read_text().replace(" ", ","))
            convert = ["table", "convert", "-q", folder / "prefixes.csv", "--to", "mmdb", "--value", "asn:u32", "-o", folder / "asn.mmdb"]
            subprocess.run([command, *convert], check=True)
        rows_of(table, wanted.rows, folder / "flows")
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master("local[2]").appName("fibula").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.driver.memory", "6g").config("spark.sql.shuffle.partitions", "16")
        builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536").config("spark.python.worker.reuse", "true")
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        fibula.spark.register(spark)
        flows = spark.read.parquet(str(folder / "flows"))
        record: dict[str, Any] = {
            **place(wanted.table),
            "pyspark": pyspark.__version__,
            "java": spark.sparkContext._jvm.System.getProperty("java.version"),  # type: ignore[union-attr]
            "pytricia": version("pytricia"),
            "maxminddb": version("maxminddb"),
            "duckdb": version("duckdb"),
            "polars": version("polars"),
            "rows": wanted.rows,
            "routes": len(prefixes),
            "ranges": ranges,
            "batch": 65536,
            "table bytes": file.stat().st_size,
            "update": update(file, folder),
            "ways": {},
        }
        sums = set()
        without_spark = [*in_duckdb(str(file), folder / "flows"), *on_one_machine(str(file), folder), *alone(table, folder / "flows")]
        for at, (name, what, run) in enumerate([*ways(spark, flows, str(file), folder, table), *without_spark]):
            # Its JVM would be counted.
            if (name, what, run) == without_spark[0]:
                spark.stop()
            if wanted.only not in name:
                continue
            # The first query compiles what all others need.
            if at == 0:
                run()
            found, took = measured(run, wanted.runs)
            if found is not None:
                sums.add(int(found))
            record["ways"][name] = {"what": what, **took, "millions a second": round(wanted.rows / took["processor"] / 1e6, 3)}
            print(f"{name:40} {record['ways'][name]}", file=sys.stderr, flush=True)
        if (folder / "found.csv").exists():
            import pyarrow.csv

            sums.add(pc.sum(pyarrow.csv.read_csv(folder / "found.csv")["asn"]).as_py())
        assert len(sums) <= 1, sums
        record["load at the end"] = os.getloadavg()[0]
        text = json.dumps(record, indent=1) + "\n"
        if wanted.record:
            wanted.record.parent.mkdir(parents=True, exist_ok=True)
            wanted.record.write_text(text)
        print(text, end="")


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
