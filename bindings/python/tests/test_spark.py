"""Spark: the shared questions, data frames of each type of address, tables that are replaced under a stream, workers that are killed.

Needs PySpark, which is not in the environments of every change: `bindings/python/spark`.
"""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import fibula
import questions
from conftest import REPOSITORY
from questions import Asked
from shared import run_blocks

pyspark = pytest.importorskip("pyspark")
if os.environ.get("SPARK_LOCAL_IP") is None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

import fibula.spark  # noqa: E402

ALL = questions.questions()
TYPES = {"string": "string", "int32": "int", "int64": "bigint", "fixed_4": "binary", "fixed_16": "binary", "binary": "binary"}
IS_ARROW = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)
MASTER = os.environ.get("FIBULA_SPARK_MASTER", "local[2,4]")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(MASTER).appName("fibula").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    fibula.spark.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return questions.saved(tmp_path_factory.mktemp("spark"))


def by_kind() -> dict[str, list[Asked]]:
    """Return the questions by the type of their column in Spark. One job answers all questions of a type."""
    kinds: dict[str, list[Asked]] = {}
    for asked in ALL:
        if asked.kind in TYPES and asked.call != "rov" and (asked.kind != "int32" or IS_ARROW):
            kinds.setdefault(asked.kind, []).append(asked)
    return kinds


def frame_of(spark: Any, kind: str, several: list[Asked]) -> Any:
    rows = [(ip if not isinstance(ip, bytes) else bytearray(ip),) for asked in several for ip in asked.addresses]
    return spark.createDataFrame([(at, *row) for at, row in enumerate(rows)], f"n int, ip {TYPES[kind]}").repartition(2)


def judged(several: list[Asked], rows: list[Any], answer: Any) -> int:
    """Compare answers with what was asked, row by row. Return how many were."""
    at = 0
    found = {row["n"]: row for row in rows}
    for asked in several:
        for address, expected in zip(asked.addresses, asked.answers, strict=True):
            assert answer(asked, found[at]) == expected, (asked.name, address)
            at += 1
    assert len(found) == at
    return at


def test_questions_in_sql(spark: Any, path: str) -> None:
    asked_in_all = 0
    for kind, several in by_kind().items():
        frame_of(spark, kind, several).createOrReplaceTempView("asked")
        calls = {(asked.call, asked.argument) for asked in several}
        names = {one: f"answer_{at}" for at, one in enumerate(sorted(calls, key=str))}
        arguments = {one: "ip" if one[1] is None else f"ip, '{one[1]}'" for one in calls}
        columns = ", ".join(f"{one[0]}('{path}', {arguments[one]}) as {names[one]}" for one in names)
        rows = spark.sql(f"select n, {columns} from asked").collect()

        def answer(asked: Asked, row: Any) -> Any:
            found = row[names[asked.call, asked.argument]]
            return int(found) if found is not None and asked.call in ("lpm_u64", "lpm_id") else found

        asked_in_all += judged(several, rows, answer)
    assert asked_in_all >= 200


def test_states_of_routes_in_sql(spark: Any) -> None:
    (asked,) = [asked for asked in ALL if asked.call == "rov"]
    rows = list(zip(range(len(asked.asns)), asked.addresses, asked.asns, strict=True))
    spark.createDataFrame(rows, "n int, prefix string, asn bigint").createOrReplaceTempView("announced")
    found = spark.sql(f"select rov('{questions.VRPS}', prefix, asn) from announced order by n").collect()
    assert [row[0] for row in found] == asked.answers


def test_questions_by_map_in_arrow(spark: Any, path: str) -> None:
    for kind, several in by_kind().items():
        # The columns have types of their own; the questions with these answers are those about text, u64 and f64.
        wanted = [asked for asked in several if asked.call in ("lpm", "lpm_u64") or (asked.call == "lpm_f64" and asked.argument == "latitude")]
        rows = fibula.spark.lookup(frame_of(spark, kind, wanted), "ip", path).collect()

        def answer(asked: Asked, row: Any) -> Any:
            found = row[asked.argument or "name"]
            return int(found) if found is not None and asked.call == "lpm_u64" else found

        assert judged(wanted, rows, answer) > 0


def test_columns_have_the_types_of_the_table(spark: Any, path: str) -> None:
    frame = spark.createDataFrame([("10.0.0.1",), (None,), ("zehn",)], "ip string")
    found = fibula.spark.lookup(frame, "ip", path, stamp_column="table")
    assert found.dtypes == [
        ("ip", "string"), ("name", "string"), ("country", "string"), ("asn", "bigint"), ("bytes", "decimal(20,0)"), ("offset", "bigint"),
        ("latitude", "double"), ("tunnel", "boolean"), ("table", "string"),
    ]  # fmt: skip
    rows = found.collect()
    stamp = fibula.spark.stamp_of(path)
    assert tuple(rows[0]) == ("10.0.0.1", "private", "FR", 2**32 - 1, 2**64 - 1, -1, 48.86, True, stamp)
    assert tuple(rows[1]) == (None, *[None] * 7, stamp)
    assert tuple(rows[2]) == ("zehn", *[None] * 7, stamp)
    assert found.filter("name is null").count() == 2
    assert fibula.spark.lookup(frame.limit(0), "ip", path, "asn").count() == 0
    assert {tuple(row) for row in fibula.spark.routes(spark, path, "country").collect()} == set(fibula.sql.fibula_routes(path, "country"))
    rows = spark.sql(f"select * from fibula_routes('{path}')").collect()
    assert [tuple(row) for row in rows] == list(fibula.sql.fibula_routes(path))


def test_a_skewed_and_a_large_frame(spark: Any, path: str) -> None:
    frame = spark.range(20_000).selectExpr("case when id % 100 = 0 then cast(167772160 + id as bigint) else 3221225985 end as ip").repartition(5, "ip")
    for batch in [1, 7, 10_000]:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch if batch > 1 else 100))
        found = fibula.spark.lookup(frame, "ip", path, "name").groupBy("name").count().collect()
        assert {row["name"]: row["count"] for row in found} == {"private": 200, "amsterdam": 19_800}
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")


def test_a_folder_of_parquet(spark: Any, path: str, tmp_path: pathlib.Path) -> None:
    flows, found = str(tmp_path / "flows"), str(tmp_path / "found")
    addresses = [ip for asked in ALL if asked.kind == "string" and asked.call == "lpm" for ip in asked.addresses]
    spark.createDataFrame(list(enumerate(addresses)), "n int, ip string").repartition(3).write.parquet(flows)
    fibula.spark.lookup(spark.read.parquet(flows), "ip", path, ["name", "asn"]).write.parquet(found)
    rows = spark.read.parquet(found).orderBy("n").collect()
    table = questions.table()
    assert [row["name"] for row in rows] == table.lookup_many(addresses, "name")
    assert [row["asn"] for row in rows] == table.lookup_many(addresses, "asn")


def test_tables_that_spark_copies(spark: Any, path: str, tmp_path: pathlib.Path) -> None:
    frame = spark.createDataFrame([("10.0.0.1",)], "ip string")
    served = tmp_path / "served"
    served.mkdir()
    (served / "by-file.fibula").write_bytes(pathlib.Path(path).read_bytes())
    (served / "by-http.fibula").write_bytes(pathlib.Path(path).read_bytes())
    assert fibula.spark.lookup(frame, "ip", f"file://{served}/by-file.fibula", "name").collect()[0]["name"] == "private"

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(served))

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/by-http.fibula"
        assert fibula.spark.lookup(frame, "ip", address, "name").collect()[0]["name"] == "private"
    finally:
        server.shutdown()
        thread.join()


def test_what_is_wrong_is_said_before_the_job_or_by_the_task(spark: Any, path: str, tmp_path: pathlib.Path) -> None:
    frame = spark.createDataFrame([(1.5, "10.0.0.1", "zehn")], "number double, ip string, name string")
    lookup = fibula.spark.lookup
    for error, said, arguments in [
        (ValueError, "no column 'address'; it has: number, ip", ("address", path)),
        (TypeError, "column 'number' is of type double", ("number", path)),
        (FileNotFoundError, "absent", ("ip", tmp_path / "absent")),
        (ValueError, "no column 'city'; it has: name", ("ip", path, "city")),
        (ValueError, "has a column 'name' already", ("ip", path)),
        (ValueError, r"routes\.csv", ("ip", questions.FOLDER / "routes.csv")),
    ]:
        with pytest.raises(error, match=said):
            lookup(frame, *arguments)
    with pytest.raises(ValueError, match="the stamp of this file is"):
        lookup(frame, "ip", path, "asn", stamp="0" * 16)
    with pytest.raises(Exception, match=r"column 'name', batch from row 0 of its partition on: row 0: 'zehn'"):
        lookup(frame, "name", path, "asn", invalid="raise").collect()
    gone = tmp_path / "gone.fibula"
    fibula.Table.build(["10.0.0.0/8"], {"v": ["a"]}).save(gone)
    prepared = lookup(frame, "ip", gone, "v", stamp=fibula.spark.stamp_of(gone))
    gone.unlink()
    fibula.spark._fixed.clear()
    with pytest.raises(Exception, match=r"gone\.fibula"):
        prepared.collect()
    with pytest.raises(Exception, match="no column 'city'"):
        spark.sql(f"select lpm_column('{path}', '10.0.0.1', 'city')").collect()
    with pytest.raises(Exception, match="zehn"):
        spark.sql(f"select lpm('{path}', ip, 'raise') from values ('zehn') r(ip)").collect()


def test_a_broken_file_in_place_of_a_table_leaves_the_table(spark: Any, path: str, tmp_path: pathlib.Path) -> None:
    frame = spark.createDataFrame([("10.0.0.1",)], "ip string").repartition(1)
    image = pathlib.Path(path).read_bytes()
    for at, bad in enumerate([b"", b"x", image[:-1], image[: len(image) // 2], image[:100] + b"x" + image[101:]]):
        file = tmp_path / f"broken-{at}.fibula"
        file.write_bytes(bad)
        with pytest.raises(ValueError, match=rf"broken-{at}\.fibula"):
            fibula.spark.lookup(frame, "ip", file)
        with pytest.raises(Exception, match=rf"broken-{at}\.fibula"):
            spark.sql(f"select lpm('{file}', '10.0.0.1')").collect()
    # A worker that has a table keeps it; one that has none says which file is broken.
    file = tmp_path / "table.fibula"
    fibula.Table.build(["10.0.0.0/8"], {"v": ["one"]}).save(file)
    found = fibula.spark.lookup(frame, "ip", file, "v")
    assert found.collect()[0]["v"] == "one"
    broken = tmp_path / "broken"
    broken.write_bytes(b"nothing")
    broken.rename(file)
    for _ in range(4):
        try:
            assert found.collect()[0]["v"] == "one"
        except Exception as error:
            assert "table.fibula" in str(error)
    fibula.Table.build(["10.0.0.0/8"], {"v": ["two"]}).save(file)
    assert found.collect()[0]["v"] == "two"


def test_workers_without_the_package_say_so(spark: Any, path: str) -> None:
    frame = spark.createDataFrame([("10.0.0.1",)], "ip string")

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        sys.modules["fibula"] = None  # type: ignore[assignment]
        import fibula.spark as absent

        assert absent
        yield from batches

    with pytest.raises(Exception, match="ModuleNotFoundError.*fibula"):
        frame.mapInArrow(run, frame.schema).collect()


def test_the_benchmark_compares_the_answers_of_all_ways(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "table.txt"
    table.write_text("".join(f"{one >> 8}.{one & 255}.0.0/16 {one % 7 + 1}\n{one >> 8}.{one & 255}.128.0/17 {one % 5 + 1}\n" for one in range(256, 2256)))
    command = [sys.executable, REPOSITORY / "bindings/python/bench_spark.py", table, "--rows", "16000", "--runs", "1", "--record", tmp_path / "record.json"]
    subprocess.run(command, check=True, env={**os.environ, "FIBULA": "/nowhere/fibula"})
    ways = json.loads((tmp_path / "record.json").read_text())["ways"]
    assert {"fibula lookup, text", "range join by buckets, text", "join on exploded prefixes, int"} <= set(ways)


def killer(flags: pathlib.Path) -> Any:
    """Return a function of batches that ends its worker for each file in a folder: the executor's JVM where that is not the driver's, Python's process otherwise."""
    is_cluster = MASTER.startswith("local-cluster")

    def kill(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for flag in flags.glob("*"):
                try:
                    flag.unlink()
                except FileNotFoundError:
                    continue
                if is_cluster:
                    # This process comes of a daemon, and that of the executor.
                    stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
                    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
                    time.sleep(60)
                os._exit(1)
            yield batch

    return kill


def test_answers_are_the_same_where_workers_are_killed_in_the_middle(spark: Any, path: str, tmp_path: pathlib.Path) -> None:
    addresses = [ip for asked in ALL if asked.kind == "string" and asked.call == "lpm" for ip in asked.addresses] * 40
    frame = spark.createDataFrame(list(enumerate(addresses)), "n int, ip string").repartition(4)
    expected = questions.table().lookup_many(addresses, "name")
    flags = tmp_path / "kill"
    flags.mkdir()
    for number in range(3):
        # Two in one job: a task may fail twice, and has four tries.
        for flag in range(2):
            (flags / f"{number}-{flag}").touch()
        found = fibula.spark.lookup(frame, "ip", path, "name", stamp_column="table")
        rows = found.mapInArrow(killer(flags), found.schema).orderBy("n").collect()
        assert list(flags.iterdir()) == []
        assert [row["name"] for row in rows] == expected
        assert {row["table"] for row in rows} == {fibula.spark.stamp_of(path)}


REPLACED = int(os.environ.get("FIBULA_REPLACED", "20"))


def test_one_micro_batch_sees_one_table(spark: Any, tmp_path: pathlib.Path) -> None:
    """A stream whose table is replaced all the time, with workers that are killed in the middle of a tenth of the batches."""
    published = fibula.spark.Published(tmp_path / "tables")
    published.publish(fibula.Table.build(["10.0.0.0/8"], {"v": [0]}))
    numbers = {published.newest(): 0}
    is_done = threading.Event()

    def replace() -> None:
        while not is_done.is_set():
            stamp = published.publish(fibula.Table.build(["10.0.0.0/8"], {"v": [len(numbers)]}))
            numbers[stamp] = len(numbers)
            time.sleep(0.02)

    flags = tmp_path / "kill"
    flags.mkdir()
    killed: list[int] = []
    seen: list[tuple[int, int, str, int]] = []
    kill_once = killer(flags)

    def each(batch: Any, number: int) -> None:
        path, stamp = published.of_batch(number, tmp_path / "checkpoint")
        if number % 10 == 3:
            (flags / str(number)).touch()
            killed.append(number)
        rows = batch.selectExpr("concat('10.0.0.', value % 256) as ip").repartition(4)
        found = fibula.spark.lookup(rows, "ip", path, "v", stamp=stamp, stamp_column="stamp")
        found = found.mapInArrow(kill_once, found.schema).groupBy("v", "stamp").count().collect()
        seen.extend((number, row["v"], row["stamp"], row["count"]) for row in found)
        # A batch that runs again has its table, though others are newer.
        assert published.of_batch(number, tmp_path / "checkpoint") == (path, stamp)
        published.retire(keep=64)

    writer = threading.Thread(target=replace)
    writer.start()
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2000).option("numPartitions", 2).load()
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "state")).start()
    try:
        deadline = time.monotonic() + 60 * REPLACED
        while len({number for number, *_ in seen}) < REPLACED and time.monotonic() < deadline and query.exception() is None:
            time.sleep(0.2)
    finally:
        is_done.set()
        writer.join()
        query.stop()
    assert query.exception() is None
    batches: dict[int, set[tuple[int, str]]] = {}
    for number, value, stamp, count in seen:
        assert numbers[stamp] == value
        assert count == 2000
        batches.setdefault(number, set()).add((value, stamp))
    assert len(batches) >= REPLACED
    # Each was killed: no flag is left but that of a batch that was stopped.
    assert len(killed) >= REPLACED // 10
    assert len(list(flags.iterdir())) <= 1
    assert all(len(tables) == 1 for tables in batches.values())
    # Most batches had another table than the one before.
    assert len({stamp for _, _, stamp, _ in seen}) > REPLACED // 2
    print(len(batches), "micro-batches,", len(numbers), "tables,", len(killed), "workers killed")


def test_published_tables_stay_until_they_are_retired(tmp_path: pathlib.Path) -> None:
    published = fibula.spark.Published(tmp_path / "tables", "asn")
    with pytest.raises(FileNotFoundError):
        published.newest()
    with pytest.raises(ValueError):
        published.publish(questions.VRPS)
    stamps = [published.publish(fibula.Table.build(["10.0.0.0/8"], [str(at)])) for at in range(5)]
    assert published.publish(published.path(stamps[0])) == stamps[0] == published.newest()
    # The newest stays, though its file is the oldest.
    gone = published.retire(keep=2)
    assert sorted([*gone, stamps[0], *stamps[3:]]) == sorted(stamps)
    assert fibula.Table.open(published.path(stamps[0])).lookup("10.0.0.1") == "0"
    assert not os.path.exists(published.path(stamps[1]))
    assert published.of_batch(3, tmp_path) == (published.path(stamps[0]), stamps[0])
    published.publish(fibula.Table.build(["10.0.0.0/8"], ["new"]))
    assert published.of_batch(3, tmp_path) == (published.path(stamps[0]), stamps[0])
    for number in range(4, 300):
        published.of_batch(number, tmp_path)
    assert len(list((tmp_path / "fibula").iterdir())) == 100


def test_the_guide_prints_what_it_says(spark: Any, tmp_path: pathlib.Path) -> None:
    text = (REPOSITORY / "docs/guide/spark.md").read_text().replace("/tmp/", f"{tmp_path}/")
    assert run_blocks(text) >= 3


def test_the_module_needs_no_spark_to_be_imported() -> None:
    subprocess.run([sys.executable, "-c", "import sys, fibula.spark; assert 'pyspark' not in sys.modules"], check=True)
