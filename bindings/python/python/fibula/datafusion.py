"""The functions of ``fibula.sql`` in DataFusion's SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from datafusion import SessionContext, udf

from . import sql

__all__ = ["register"]


def register(context: SessionContext, *, ip: Any = None, prefix: str = "") -> None:
    """Register ``lpm``, ``lpm_column``, ``lpm_prefix``, ``lpm_u64``, ``lpm_f64``, ``lpm_id`` and ``rov``.

    DataFusion's functions have one type for an argument: ``ip`` is that of addresses, ``pyarrow.string_view()`` without it. Registered again for another
    type, with a ``prefix`` of their names, they have both. The path of the table, and the column, are the same in all rows of a batch.
    """
    text = pa.string_view()
    ip = text if ip is None else ip
    add = context.register_udf

    def made(name: str, answer: Any, number: pa.DataType | None) -> Callable[..., pa.Array]:
        def run(table: pa.Array, rows: pa.Array, *column: pa.Array) -> pa.Array:
            arguments = [sql._constant("the column", one) for one in column]
            source = sql._constant("the table", table)
            out = text if number is None else number
            if source is None or None in arguments:
                return pa.nulls(len(rows), out)
            return pa.array(answer(source, rows, *arguments)).cast(out)

        run.__name__ = name
        return run

    for name, answer, number, more in [
        ("lpm", sql.lpm, None, []),
        ("lpm_prefix", sql.lpm_prefix, None, []),
        ("lpm_id", sql.lpm_id, pa.uint32(), []),
        ("lpm_column", sql.lpm_column, None, [text]),
        ("lpm_u64", sql.lpm_u64, pa.uint64(), [text]),
        ("lpm_f64", sql.lpm_f64, pa.float64(), [text]),
    ]:
        add(udf(made(name, answer, number), [text, ip, *more], text if number is None else number, "volatile", f"{prefix}{name}"))

    def rov(vrps: pa.Array, prefixes: pa.Array, asns: pa.Array) -> pa.Array:
        source = sql._constant("the file of payloads", vrps)
        if source is None:
            return pa.nulls(len(prefixes), text)
        return pa.array(sql.rov(source, prefixes.to_pylist(), asns.to_pylist()), text)

    add(udf(rov, [text, text, pa.int64()], text, "volatile", f"{prefix}rov"))
