"""Lookups in Spark: columns of a data frame by ``mapInArrow``, functions of SQL, and tables that are replaced while a stream runs.

Workers open the table as a file of their host, once a process, and map it; nothing is broadcast. They need this package, pyarrow, and pandas below 3 where
PySpark asks for it.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import sql
from ._fibula import Follower, Table
from .sql import Invalid, _constant

__all__ = ["Published", "lookup", "register", "routes", "stamp_of"]

_TYPES = {"u32": "bigint", "u64": "decimal(20,0)", "i64": "bigint", "f64": "double", "bool": "boolean", "text": "string", "bytes": "binary"}
_ADDRESSES = ("string", "int", "bigint", "binary")

_lock = threading.Lock()
_followers: dict[str, tuple[Follower, str]] = {}
_fixed: dict[tuple[str, str], Table] = {}


def stamp_of(path: str | os.PathLike[str]) -> str:
    """Return the stamp of a table file: 16 digits of the SHA-256 of its bytes, equal on all hosts that have a copy."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def lookup(
    frame: Any,
    column: str,
    table: str | os.PathLike[str],
    values: str | Iterable[str] | Mapping[str, str] | None = None,
    *,
    stamp: str | None = None,
    stamp_column: str | None = None,
    invalid: Invalid = "null",
) -> Any:
    """Return the data frame with columns of what the addresses in ``column`` lead to.

    ``column`` is of text, ``binary`` (4 or 16 bytes), ``int`` (its bits are an IPv4 address) or ``bigint``. ``table`` is a path that each host has, or an
    address (``file://``, ``http://`` and what else Spark's ``addFile`` takes), which Spark then copies to each host once, under the last part of its
    name. ``values`` names columns of the table, all without it, and with a mapping the columns that they become. The driver opens the table too, for their
    types: u32 and i64 are ``bigint``, u64 is ``decimal(20,0)``.

    Each batch of Arrow is answered by one table: the file that is at the path when the batch begins. With ``stamp`` it is the file of this stamp,
    and a task that finds another one fails. ``stamp_column`` adds the stamp of the file that answered.
    """
    frame_schema = frame.schema
    kinds = {field.name: field.dataType.simpleString() for field in frame_schema.fields}
    if column not in kinds:
        raise ValueError(f"the data frame has no column '{column}'; it has: {', '.join(kinds)}")
    if kinds[column] not in _ADDRESSES:
        raise TypeError(f"column '{column}' is of type {kinds[column]}: addresses are {', '.join(_ADDRESSES)}")
    if invalid not in ("null", "raise"):
        raise ValueError(f"invalid is 'null' or 'raise', and not '{invalid}'")
    source = _source(frame.sparkSession, table)
    of, _ = source.table(stamp)
    columns = of.columns
    if isinstance(values, str):
        values = [values]
    wanted = dict(values) if isinstance(values, Mapping) else {name: name for name in (columns if values is None else values)}
    for name in wanted:
        if name not in columns:
            raise ValueError(f"{source}: the table has no column '{name}'; it has: {', '.join(columns)}")
    made = {wanted[name]: _TYPES[columns[name]] for name in wanted}
    if stamp_column is not None:
        made[stamp_column] = "string"
    for name in made:
        if name in kinds:
            raise ValueError(f"the data frame has a column '{name}' already: give another name by a mapping")
    if len(made) != len(wanted) + (stamp_column is not None):
        raise ValueError("two columns have one name")
    schema = _schema(frame_schema, made)
    return frame.mapInArrow(_Mapper(source, column, list(wanted), made, stamp, stamp_column, invalid), schema)


def _schema(before: Any, made: dict[str, str]) -> Any:
    from pyspark.sql.types import StructField, StructType, _parse_datatype_string

    return StructType([*before.fields, *(StructField(name, _parse_datatype_string(kind), True) for name, kind in made.items())])


class _Source:
    """Where a worker finds a table: a path, or a file that Spark copied."""

    def __init__(self, path: str, is_added: bool) -> None:
        self._path = path
        self._is_added = is_added

    def __str__(self) -> str:
        return self._path

    def path(self) -> str:
        if not self._is_added:
            return self._path
        from pyspark import SparkFiles

        return str(SparkFiles.get(self._path))

    def table(self, stamp: str | None) -> tuple[Table, str]:
        """Return the table that a batch is answered by, and its stamp."""
        path = self.path()
        if stamp is not None:
            return _of_stamp(path, stamp), stamp
        with _lock:
            known = _followers.get(path)
            if known is None:
                known = _followers[path] = Follower(path, mapped=True), ""
            follower, found = known
            try:
                is_new = follower.refresh() or not found
            except (OSError, ValueError) as error:
                is_new = not found
                warnings.warn(f"the table before stays in use: {error}", RuntimeWarning, stacklevel=2)
            while is_new:
                found = stamp_of(path)
                # The stamp is of another file where this one was replaced meanwhile.
                is_new = follower.refresh()
            _followers[path] = follower, found
            return follower.table, found


def _of_stamp(path: str, stamp: str) -> Table:
    with _lock:
        table = _fixed.get((path, stamp))
        if table is None:
            follower = Follower(path, mapped=True)
            found = stamp_of(path)
            while follower.refresh():
                found = stamp_of(path)
            if found != stamp:
                raise ValueError(f"{path}: the stamp of this file is {found}, and that of the batch is {stamp}")
            # Batches that come later are of this stamp or of others.
            while len(_fixed) >= 4:
                del _fixed[next(iter(_fixed))]
            table = _fixed[path, stamp] = follower.table
        return table


def _source(session: Any, table: str | os.PathLike[str]) -> _Source:
    text = os.fspath(table)
    if "://" not in text:
        return _Source(text, False)
    session.sparkContext.addFile(text)
    return _Source(text.rstrip("/").rsplit("/", 1)[-1], True)


class _Mapper:
    """The function of ``mapInArrow``."""

    def __init__(self, source: _Source, column: str, names: list[str], made: dict[str, str], stamp: str | None, stamp_column: str | None, invalid: Invalid) -> None:
        self._source = source
        self._column = column
        self._names = names
        self._made = made
        self._stamp = stamp
        self._stamp_column = stamp_column
        self._invalid = invalid

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        types = {"bigint": pa.int64(), "decimal(20,0)": pa.decimal128(20), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(), "binary": pa.binary()}
        first = 0
        for batch in batches:
            table, stamp = self._source.table(self._stamp)
            addresses = batch.column(self._column)
            arrays = list(batch.columns)
            for name, kind in zip(self._names, self._made.values()):
                try:
                    found = pa.array(table.lookup_many(addresses, name, invalid=self._invalid, dictionary=False))
                except ValueError as error:
                    raise ValueError(f"column '{self._column}', batch from row {first} of its partition on: {error}") from None
                arrays.append(found.cast(types[kind]))
            if self._stamp_column is not None:
                arrays.append(pa.repeat(pa.scalar(stamp, pa.string()), len(batch)))
            first += len(batch)
            yield pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *self._made])


def register(session: Any) -> None:
    """Register the functions of ``fibula.sql`` for SQL: ``lpm``, ``lpm_column``, ``lpm_prefix``, ``lpm_u64``, ``lpm_f64``, ``lpm_id``, ``rov`` and, as a function of tables,
    ``fibula_routes``.

    The path of the table is the same in all rows of a batch. ``lpm_id`` is ``bigint``, ``lpm_u64`` is ``decimal(20,0)``. Before Spark 4.1 they are functions of
    pandas, where an ``int`` with nulls is a number with a fraction: cast it to ``bigint`` there.
    """
    kinds = {"lpm_u64": "decimal(20,0)", "lpm_f64": "double", "lpm_id": "bigint"}
    try:
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

        def made(function: Any, kind: str) -> Any:
            return arrow_udf(function, kind, ArrowUDFType.SCALAR)
    except ImportError:
        from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf

        def made(function: Any, kind: str) -> Any:
            return pandas_udf(_OfPandas(function), kind, PandasUDFType.SCALAR)

    for name in sql.NAMES:
        session.udf.register(name, made(_Function(name), kinds.get(name, "string")))
    from pyspark.sql.functions import udtf

    session.udtf.register("fibula_routes", udtf(_Routes, returnType="prefix string, value string"))


class _Function:
    """A function of SQL over arrays of Arrow."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__name__ = name

    def __call__(self, source: Any, rows: Any, *given: Any) -> Any:
        import pyarrow as pa

        out = {"lpm_u64": pa.decimal128(20), "lpm_f64": pa.float64(), "lpm_id": pa.int64()}.get(self._name, pa.string())
        asns = given[:1] if self._name == "rov" else ()
        options = [_constant("a table, column or rule", one) for one in (source, *given[len(asns) :])]
        if None in options:
            return pa.nulls(len(rows), out)
        path, *more = options
        rule: dict[str, Any] = {}
        if len(more) > (1 if self._name in ("lpm_column", "lpm_u64", "lpm_f64") else 0):
            rule["invalid"] = more.pop()
        function = getattr(sql, self._name)
        if self._name == "rov":
            return pa.array(function(path, rows.to_pylist(), asns[0].to_pylist(), **rule), out)
        return pa.array(function(path, rows, *more, **rule)).cast(out)


class _OfPandas:
    """The same over series of pandas."""

    def __init__(self, function: _Function) -> None:
        self._function = function
        self.__name__ = function.__name__

    def __call__(self, *series: Any) -> Any:
        import pyarrow as pa

        arrays = [pa.Array.from_pandas(one) for one in series]
        # Integers with nulls are numbers with a fraction in pandas.
        arrays = [one.cast(pa.int64()) if pa.types.is_floating(one.type) else one for one in arrays]
        arrays = [one.cast(pa.string()) if pa.types.is_null(one.type) else one for one in arrays]
        return self._function(*arrays).to_pandas()


class _Routes:
    """The function of tables ``fibula_routes``."""

    def eval(self, table: str, column: str | None = None) -> Iterator[tuple[str, str | None]]:
        yield from sql.fibula_routes(table, column)


def routes(session: Any, table: str | os.PathLike[str], column: str | None = None) -> Any:
    """Return the routes of a table, which the driver reads: ``prefix`` and ``value``, both text."""
    return session.createDataFrame(list(sql.fibula_routes(table, column)), "prefix string, value string")


class Published:
    """A folder of tables that replace each other: each file has its stamp in its name, and stays until it is retired.

    All hosts have the folder, shared or copied. ``of_batch`` fixes the table of a batch of a stream, for all of its tasks and retries.
    """

    def __init__(self, folder: str | os.PathLike[str], name: str = "table") -> None:
        self._folder = pathlib.Path(folder)
        self._name = name

    def _current(self) -> pathlib.Path:
        return self._folder / f"{self._name}.current"

    def path(self, stamp: str) -> str:
        """Return the path of the file with a stamp."""
        return str(self._folder / f"{self._name}-{stamp}.fibula")

    def publish(self, table: Table | str | os.PathLike[str]) -> str:
        """Write a table, or copy a file, and make it the newest. Return its stamp."""
        image = table.to_bytes() if isinstance(table, Table) else pathlib.Path(table).read_bytes()
        # What is no table is not published.
        Table.open(image)
        stamp = hashlib.sha256(image).hexdigest()[:16]
        if not os.path.exists(self.path(stamp)):
            _replace(pathlib.Path(self.path(stamp)), image)
        _replace(self._current(), stamp.encode())
        return stamp

    def newest(self) -> str:
        """Return the stamp of the newest table."""
        return self._current().read_text().strip()

    def of_batch(self, number: int, checkpoint: str | os.PathLike[str]) -> tuple[str, str]:
        """Return the path and the stamp of the table of a batch: the newest, and the same again for a batch that was begun before.

        ``checkpoint`` is a folder of the driver, which keeps the stamps of the last hundred batches, so that a batch that runs again after a
        restart has its table.
        """
        kept = pathlib.Path(checkpoint) / "fibula"
        kept.mkdir(parents=True, exist_ok=True)
        file = kept / str(number)
        try:
            stamp = file.read_text().strip()
        except FileNotFoundError:
            stamp = self.newest()
            _replace(file, stamp.encode())
            for old in kept.iterdir():
                if old.name.isdigit() and int(old.name) <= number - 100:
                    old.unlink(missing_ok=True)
        return self.path(stamp), stamp

    def retire(self, keep: int = 8) -> list[str]:
        """Remove all files but the newest ``keep``, and the newest table in any case. Return the stamps of those that went."""
        newest = self.newest()
        begin = f"{self._name}-"
        files = [file for file in self._folder.glob(f"{begin}*.fibula") if len(file.stem) == len(begin) + 16]
        files.sort(key=lambda file: file.stat().st_mtime_ns, reverse=True)
        gone = []
        for file in files[keep:]:
            stamp = file.stem.removeprefix(begin)
            if stamp != newest:
                file.unlink(missing_ok=True)
                gone.append(stamp)
        return gone


def _replace(path: pathlib.Path, image: bytes) -> None:
    """Write a file beside its place, and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with open(beside, "wb") as file:
        file.write(image)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
