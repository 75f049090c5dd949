"""The functions of SQL in each library that takes columns, against the shared questions."""

from __future__ import annotations

import pathlib
import pickle
import subprocess
import sys
from typing import Any

import pytest

import fibula
import questions
from conftest import REPOSITORY
from questions import Asked, answered
from shared import arrow_type

ALL = questions.questions()
each = pytest.mark.parametrize("asked", ALL, ids=lambda asked: asked.name)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return questions.saved(tmp_path_factory.mktemp("engines"))


def called(asked: Asked, path: str, addresses: Any, asns: Any = None, **options: Any) -> Any:
    """Call the function of fibula.sql."""
    from fibula import sql

    function = getattr(sql, asked.call)
    if asked.call == "rov":
        return function(str(questions.VRPS), addresses, asked.asns if asns is None else asns, **options)
    return function(path, addresses, *([] if asked.argument is None else [asked.argument]), **options)


def test_the_questions_are_those_of_the_oracle() -> None:
    subprocess.run([sys.executable, REPOSITORY / "testdata/sql/make.py", "--check"], check=True)


def arrow(pa: Any, asked: Asked) -> Any:
    of = arrow_type(pa, asked.kind)
    return None if of is None else pa.array(asked.addresses, of)


def refuses(asked: Asked, run: Any, raised: Any = ValueError) -> None:
    """With `invalid="raise"`, an invalid row is an error that names it."""
    if asked.invalid:
        with pytest.raises(raised, match=rf"row {asked.invalid[0]}: "):
            run()
    elif asked.call != "rov" or None not in [*asked.addresses, *asked.asns]:
        run()


@each
def test_columns_of_arrow(asked: Asked, path: str, pa: Any) -> None:
    addresses = arrow(pa, asked)
    if addresses is None:
        pytest.skip("Arrow has no such type")
    assert pa.array(called(asked, path, addresses)).to_pylist() == asked.answers
    chunks = pa.chunked_array([addresses.slice(0, 3), addresses.slice(3)])
    if asked.call != "rov":
        assert pa.chunked_array(called(asked, path, chunks)).to_pylist() == asked.answers
    refuses(asked, lambda: called(asked, path, addresses, invalid="raise"))


@each
def test_lists(asked: Asked, path: str) -> None:
    if asked.kind not in {"string", "binary", "fixed_4", "fixed_16", "uint128"}:
        pytest.skip("numbers in lists are of both families")
    import ipaddress

    addresses = asked.addresses
    if asked.kind == "uint128":
        addresses = [None if one is None else ipaddress.IPv6Address(one) for one in addresses]
    found = called(asked, path, addresses)
    if asked.call == "lpm_id":
        found = [one or None for one in found]
    assert found == asked.answers


@pytest.mark.parametrize("mode", ["eager", "lazy", "streaming", "series"])
@each
def test_polars(asked: Asked, path: str, mode: str) -> None:
    pl = pytest.importorskip("polars")
    import fibula.polars

    assert fibula.polars.FibulaExpr.__doc__
    types = {"string": pl.String, "uint32": pl.UInt32, "int32": pl.Int32, "uint64": pl.UInt64, "int64": pl.Int64}
    types |= dict.fromkeys(["fixed_4", "fixed_16", "binary"], pl.Binary)
    if asked.kind not in types:
        pytest.skip("Polars has no such type that Arrow has too")
    frame = pl.DataFrame({"ip": pl.Series(asked.addresses, dtype=types[asked.kind]), "asn": pl.Series(asked.asns if asked.call == "rov" else [None] * len(asked.addresses))})

    def of(expression: Any, asn: Any, **options: Any) -> Any:
        function = getattr(expression.fibula, asked.call)
        if asked.call == "rov":
            return function(questions.VRPS, asn, **options)
        return function(path, *([] if asked.argument is None else [asked.argument]), **options)

    if mode == "series":
        assert of(frame["ip"], frame["asn"]).to_list() == asked.answers
        refuses(asked, lambda: of(frame["ip"], frame["asn"], invalid="raise"))
        return

    def collected(**options: Any) -> Any:
        if mode == "eager":
            return frame.with_columns(answer=of(pl.col("ip"), pl.col("asn"), **options))
        lazy = frame.lazy().with_columns(answer=of(pl.col("ip"), "asn", **options))
        return lazy.collect(engine="streaming" if mode == "streaming" else "in-memory")

    found = collected()
    assert found["answer"].to_list() == asked.answers
    # The type is known before the query runs.
    assert found.schema["answer"] == frame.lazy().with_columns(answer=of(pl.col("ip"), "asn")).collect_schema()["answer"]
    if mode != "streaming":
        refuses(asked, lambda: collected(invalid="raise"), (pl.exceptions.ComputeError, ValueError))


def test_polars_lookup_has_the_type_of_the_column(path: str) -> None:
    pl = pytest.importorskip("polars")
    import fibula.polars  # noqa: F401

    _, values = questions.routes()
    frame = pl.DataFrame({"ip": ["192.0.2.1", "10.1.0.1", None]})
    for name, dtype in {"name": pl.String, "asn": pl.UInt32, "bytes": pl.UInt64, "offset": pl.Int64, "latitude": pl.Float64, "tunnel": pl.Boolean}.items():
        found = frame.lazy().select(pl.col("ip").fibula.lookup(path, name)).collect()["ip"]
        assert (found.dtype, found.to_list()) == (dtype, [values[name][4], values[name][2], None])
    with pytest.raises(ValueError, match="name a column: name, country"):
        pl.col("ip").fibula.lookup(path)
    with pytest.raises(FileNotFoundError, match="absent"):
        pl.col("ip").fibula.lookup("absent.fibula", "asn")


@each
def test_pandas(asked: Asked, path: str) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    import fibula.pandas

    assert fibula.pandas.FibulaAccessor.__doc__
    types = {"string": "string", "uint32": "UInt32", "int32": "Int32", "uint64": "UInt64", "int64": "Int64"}
    if asked.kind in types:
        series = pd.Series(asked.addresses, dtype=types[asked.kind])
    elif asked.kind != "uint128":
        series = pd.Series(asked.addresses, dtype=object)
    else:
        pytest.skip("pandas has no such type")
    series.index = [f"row {at}" for at in range(len(series))]
    function = getattr(series.fibula, asked.call)
    if asked.call == "rov":
        found = function(questions.VRPS, asked.asns)
    else:
        found = function(path, *([] if asked.argument is None else [asked.argument]))
    assert answered(found.tolist()) == asked.answers
    assert (list(found.index), found.name) == (list(series.index), series.name)
    if asked.kind in {"uint32", "int32", "uint64", "int64"} and asked.call != "rov":
        # NumPy's numbers, which have no nulls.
        there = [at for at, one in enumerate(asked.addresses) if one is not None]
        plain = pd.Series([asked.addresses[at] for at in there], dtype=asked.kind)
        found = getattr(plain.fibula, asked.call)(path, *([] if asked.argument is None else [asked.argument]))
        assert answered(found.tolist()) == [asked.answers[at] for at in there]


@each
def test_datafusion(asked: Asked, path: str, pa: Any) -> None:
    datafusion = pytest.importorskip("datafusion")
    import fibula.datafusion

    addresses = arrow(pa, asked)
    if addresses is None:
        pytest.skip("Arrow has no such type")
    context = datafusion.SessionContext()
    fibula.datafusion.register(context, ip=addresses.type)
    asns = pa.array(asked.asns if asked.call == "rov" else [None] * len(addresses), pa.int64())
    context.from_arrow(pa.table({"at": range(len(addresses)), "ip": addresses, "asn": asns}), "asked")
    source = questions.VRPS if asked.call == "rov" else path
    arguments = {"rov": "ip, asn"}.get(asked.call, "ip" if asked.argument is None else f"ip, '{asked.argument}'")
    found = context.sql(f"select {asked.call}('{source}', {arguments}) as answer from asked order by at").to_pydict()
    assert found["answer"] == asked.answers


def test_routes_are_those_of_the_file(path: str) -> None:
    from fibula import sql

    prefixes, values = questions.routes()
    for name in values:
        def shown(value: Any) -> str | None:
            return None if value is None else str(value).lower() if isinstance(value, bool) else f"{value:.10f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)

        expected = dict(zip(prefixes, map(shown, values[name]), strict=True))
        assert dict(sql.fibula_routes(path, name)) == expected
    assert dict(sql.fibula_routes(path)) == dict(zip(prefixes, values["name"], strict=True))


def test_a_table_that_is_replaced_is_followed(tmp_path: pathlib.Path) -> None:
    from fibula import sql

    path = tmp_path / "table.fibula"
    for name in ["one", "two", "three"]:
        fibula.Table.build(["10.0.0.0/8"], [name]).save(path)
        assert sql.lpm(path, ["10.0.0.1", None]) == [name, None]
    # A broken file is no table: the one before serves, and the warning says why.
    broken = tmp_path / "broken"
    broken.write_bytes(path.read_bytes()[:100])
    broken.rename(path)
    with pytest.warns(RuntimeWarning, match=r"table before stays in use: .*table\.fibula"):
        assert sql.lpm(path, ["10.0.0.1"]) == ["three"]
    fibula.Table.build(["10.0.0.0/8"], ["four"]).save(path)
    assert sql.lpm(path, ["10.0.0.1"]) == ["four"]


def test_payloads_that_are_replaced_are_read_again(tmp_path: pathlib.Path) -> None:
    from fibula import sql

    path = tmp_path / "vrps.csv"
    heading = "ASN,IP Prefix,Max Length,Trust Anchor\n"
    path.write_text(heading + "AS64500,192.0.2.0/24,24,test\n")
    assert sql.rov(path, ["192.0.2.0/24"], [64500]) == ["valid"]
    path.write_text(heading + "AS64501,192.0.2.0/24,24,test\nAS64502,192.0.2.0/24,24,test\n")
    assert sql.rov(path, ["192.0.2.0/24"], [64500]) == ["invalid-as"]


def test_what_is_wrong_is_named(path: str, tmp_path: pathlib.Path) -> None:
    from fibula import sql

    for file, error, said in [
        (tmp_path / "absent", FileNotFoundError, "absent"),
        (tmp_path, OSError, "[Dd]irectory"),
        (questions.FOLDER / "routes.csv", ValueError, r"routes\.csv"),
    ]:
        with pytest.raises(error, match=said):
            sql.lpm(file, ["10.0.0.1"])
    with pytest.raises(ValueError, match="no column 'city'; it has: 'name'"):
        sql.lpm_column(path, ["10.0.0.1"], "city")
    with pytest.raises(ValueError, match="no column 'city'"):
        sql.lpm_u64(path, ["10.0.0.1"], "city")
    for call, column in [("lpm_u64", "name"), ("lpm_u64", "latitude"), ("lpm_u64", "offset"), ("lpm_f64", "bytes"), ("lpm_f64", "tunnel")]:
        with pytest.raises(ValueError, match=f"column '{column}' is of type .*: {call} takes"):
            getattr(sql, call)(path, ["10.0.0.1"], column)
    with pytest.raises(TypeError):
        sql.lpm(path, "10.0.0.1")
    with pytest.raises(ValueError, match=r"routes\.csv"):
        sql.rov(questions.FOLDER / "routes.csv", ["10.0.0.0/8"], [1])
    without = tmp_path / "ids.fibula"
    fibula.Table.build(["10.0.0.0/8"]).save(without)
    assert sql.lpm(without, ["10.0.0.1", "11.0.0.0"]) == ["1", None]


def called_in(engine: str) -> Any:
    """Return a function that calls a function of SQL over texts in a library: (name, file, texts, arguments, options)."""
    if engine == "polars":
        pl = pytest.importorskip("polars")
        import fibula.polars

        def run(name: str, file: str, texts: list[str], *arguments: str, **options: str) -> list[Any]:
            assert fibula.polars
            asked = getattr(pl.col("ip").fibula, name)(file, *arguments, **options)
            return list(pl.DataFrame({"ip": texts}).lazy().select(asked).collect()["ip"].to_list())
    elif engine == "pandas":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        import fibula.pandas

        def run(name: str, file: str, texts: list[str], *arguments: str, **options: str) -> list[Any]:
            assert fibula.pandas
            return list(answered(getattr(pd.Series(texts, dtype="string").fibula, name)(file, *arguments, **options).tolist()))
    else:
        datafusion = pytest.importorskip("datafusion")
        pytest.importorskip("pyarrow")
        import fibula.datafusion

        def run(name: str, file: str, texts: list[str], *arguments: str, **options: str) -> list[Any]:
            if options:
                pytest.skip("DataFusion's functions have no rule")
            context = datafusion.SessionContext()
            fibula.datafusion.register(context)
            context.from_pydict({"n": list(range(len(texts))), "ip": texts}, "asked")
            given = "".join(f", '{one}'" for one in arguments)
            return list(context.sql(f"select {name}('{file}', ip{given}) as answer from asked order by n").to_pydict()["answer"])

    return run


@pytest.mark.parametrize("engine", ["polars", "pandas", "datafusion"])
def test_bad_input_is_an_error_of_the_engine(engine: str, path: str, tmp_path: pathlib.Path) -> None:
    run = called_in(engine)
    image = pathlib.Path(path).read_bytes()
    for at, bad in enumerate([b"", b"x", image[:-1], image[: len(image) // 2], image[:100] + b"x" + image[101:], (questions.FOLDER / "routes.csv").read_bytes()]):
        file = tmp_path / f"broken-{at}.fibula"
        file.write_bytes(bad)
        with pytest.raises(Exception, match=rf"broken-{at}\.fibula"):
            run("lpm", str(file), ["10.0.0.1"])
    with pytest.raises(Exception, match=r"absent\.fibula"):
        run("lpm", str(tmp_path / "absent.fibula"), ["10.0.0.1"])
    for name, column, said in [("lpm_column", "city", "no column 'city'"), ("lpm_u64", "name", "column 'name' is of type text"), ("lpm_f64", "bytes", "column 'bytes' is of type u64")]:
        with pytest.raises(Exception, match=said):
            run(name, path, ["10.0.0.1"], column)
    # Text that is no address, and the engine goes on.
    assert run("lpm", path, ["zehn", "10.0.0.1", "10.0.0.256", ""]) == [None, "private", None, None]


@pytest.mark.parametrize("engine", ["polars", "pandas", "datafusion"])
def test_a_broken_file_in_place_of_a_table_leaves_the_table(engine: str, tmp_path: pathlib.Path) -> None:
    run = called_in(engine)
    path = tmp_path / f"{engine}.fibula"
    for name in ["one", "two"]:
        fibula.Table.build(["10.0.0.0/8"], [name]).save(path)
        assert run("lpm", str(path), ["10.0.0.1"]) == [name]
    broken = tmp_path / "broken"
    broken.write_bytes(path.read_bytes()[:100])
    broken.rename(path)
    with pytest.warns(RuntimeWarning, match=rf"table before stays in use: .*{engine}\.fibula"):
        assert run("lpm", str(path), ["10.0.0.1"]) == ["two"]
    fibula.Table.build(["10.0.0.0/8"], ["three"]).save(path)
    assert run("lpm", str(path), ["10.0.0.1"]) == ["three"]


@pytest.mark.parametrize("engine", ["polars", "pandas", "datafusion"])
def test_an_invalid_text_is_named(engine: str, path: str) -> None:
    # Polars counts the rows of its own batches.
    with pytest.raises(Exception, match=r"row [01]: 'zehn'"):
        called_in(engine)("lpm", path, ["10.0.0.1", "zehn"], invalid="raise")


def test_nothing_is_imported_before_it_is_used() -> None:
    program = "import sys, fibula, fibula.sql; print([name for name in ('polars', 'pandas', 'pyarrow', 'numpy', 'duckdb', 'datafusion', 'pyspark') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_polars_expressions_can_be_pickled(path: str) -> None:
    pl = pytest.importorskip("polars")
    pytest.importorskip("cloudpickle")
    import fibula.polars  # noqa: F401

    expression = pl.col("ip").fibula.lpm(path)
    frame = pl.DataFrame({"ip": ["192.0.2.1"]})
    assert frame.select(pickle.loads(pickle.dumps(expression)))["ip"].to_list() == ["amsterdam"]
