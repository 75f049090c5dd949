"""The namespace ``.fibula`` of expressions and series of Polars, which ``import fibula.polars`` registers.

``pl.col("ip").fibula.lpm("asn.fibula")`` and the other functions of ``fibula.sql``, and ``lookup``, whose answers have the type of the table's column. They
work row by row, and so in eager, lazy and streaming queries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from . import sql
from .sql import Invalid, TableSource, VrpsSource

__all__ = ["FibulaExpr", "FibulaSeries"]

_TYPES = {"u32": pl.UInt32, "u64": pl.UInt64, "i64": pl.Int64, "f64": pl.Float64, "bool": pl.Boolean, "text": pl.String, "bytes": pl.Binary}


class _Functions:
    def __init__(self, of: Any) -> None:
        self._of = of

    def _map(self, look_up: Callable[[pl.Series], Any], dtype: Any) -> Any:
        def run(rows: pl.Series) -> pl.Series:
            return pl.Series(rows.name, look_up(rows)).cast(dtype)

        if isinstance(self._of, pl.Series):
            return run(self._of)
        return self._of.map_batches(run, return_dtype=dtype, is_elementwise=True)

    def lookup(self, table: TableSource, column: str | None = None, *, invalid: Invalid = "null") -> Any:
        """Return the values of a column, in its own type; those of the only one without ``column``, or ids where there is none."""
        of = sql.table_of(table)
        if column is None and len(of.columns) > 1:
            raise ValueError(f"name a column: {', '.join(of.columns)}")
        kind = of.columns.get(column, "text") if column is not None else next(iter(of.columns.values()), "u32")
        return self._map(lambda ip: of.lookup_many(ip, column, invalid=invalid, dictionary=False), _TYPES[kind])

    def lpm(self, table: TableSource, *, invalid: Invalid = "null") -> Any:
        """Return the first value, as text."""
        return self._map(lambda ip: sql.lpm(table, ip, invalid=invalid), pl.String)

    def lpm_column(self, table: TableSource, column: str, *, invalid: Invalid = "null") -> Any:
        """Return the value in a column, as text."""
        return self._map(lambda ip: sql.lpm_column(table, ip, column, invalid=invalid), pl.String)

    def lpm_prefix(self, table: TableSource, *, invalid: Invalid = "null") -> Any:
        """Return the longest prefix that contains each address, as text."""
        return self._map(lambda ip: sql.lpm_prefix(table, ip, invalid=invalid), pl.String)

    def lpm_u64(self, table: TableSource, column: str, *, invalid: Invalid = "null") -> Any:
        """Return the value in a column of type u32 or u64."""
        return self._map(lambda ip: sql.lpm_u64(table, ip, column, invalid=invalid), pl.UInt64)

    def lpm_f64(self, table: TableSource, column: str, *, invalid: Invalid = "null") -> Any:
        """Return the value in a column of type f64 or u32."""
        return self._map(lambda ip: sql.lpm_f64(table, ip, column, invalid=invalid), pl.Float64)

    def lpm_id(self, table: TableSource, *, invalid: Invalid = "null") -> Any:
        """Return the ids."""
        return self._map(lambda ip: sql.lpm_id(table, ip, invalid=invalid), pl.UInt32)

    def rov(self, vrps: VrpsSource, asn: Any, *, invalid: Invalid = "null") -> Any:
        """Return the states of routes, whose prefixes these are; ``asn`` are their origins: a series, or an expression or the name of a column."""

        def run(columns: Any) -> pl.Series:
            prefix, origins = columns
            return pl.Series(prefix.name, sql.rov(vrps, prefix.to_list(), origins.to_list(), invalid=invalid), dtype=pl.String)

        if isinstance(self._of, pl.Series):
            return run((self._of, asn))
        return pl.map_batches([self._of, pl.col(asn) if isinstance(asn, str) else asn], run, return_dtype=pl.String, is_elementwise=True)


@pl.api.register_expr_namespace("fibula")
class FibulaExpr(_Functions):
    """``pl.col("ip").fibula``."""


@pl.api.register_series_namespace("fibula")
class FibulaSeries(_Functions):
    """``series.fibula``."""
