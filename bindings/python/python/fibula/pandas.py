"""The accessor ``.fibula`` of pandas' series, which ``import fibula.pandas`` registers: the functions of ``fibula.sql``.

Answers have pandas' types with nulls, and the index and the name of the series. Text is read by Arrow, if ``pyarrow`` is there.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from . import sql
from .sql import Invalid, TableSource, VrpsSource

__all__ = ["FibulaAccessor"]

_TYPES = {"u32": "UInt32", "u64": "UInt64", "i64": "Int64", "f64": "Float64", "bool": "boolean", "text": "string", "bytes": "object"}


@pd.api.extensions.register_series_accessor("fibula")
class FibulaAccessor:
    """``series.fibula``."""

    def __init__(self, series: Any) -> None:
        self._series = series

    def _made(self, answer: Any, dtype: str) -> Any:
        if hasattr(answer, "__arrow_c_stream__") or hasattr(answer, "__arrow_c_array__"):
            import pyarrow as pa

            whole = pa.chunked_array(answer) if hasattr(answer, "__arrow_c_stream__") else pa.array(answer)
            answer = whole.to_pandas(types_mapper=pd.ArrowDtype) if dtype != "object" else whole.to_pylist()
        elif hasattr(answer, "mask"):
            answer = pd.array(answer.tolist(), dtype=dtype)
        series = pd.Series(answer, dtype=dtype) if not isinstance(answer, pd.Series) else answer.astype(dtype)
        series.index, series.name = self._series.index, self._series.name
        return series

    def lookup(self, table: TableSource, column: str | None = None, *, invalid: Invalid = "null") -> Any:
        """Return the values of a column, in its own type; those of the only one without ``column``."""
        of = sql.table_of(table)
        if column is None and len(of.columns) != 1:
            raise ValueError(f"name a column: {', '.join(of.columns)}" if of.columns else "the table has no values: lpm_id has its ids")
        kind = of.columns.get(column, "text") if column is not None else next(iter(of.columns.values()))
        return self._made(of.lookup_many(self._series, column, invalid=invalid, dictionary=False), _TYPES[kind])

    def lpm(self, table: TableSource, *, invalid: Invalid = "null") -> Any:
        """Return the first value, as text."""
        return self._made(sql.lpm(table, self._series, invalid=invalid), "string")

    def lpm_column(self, table: TableSource, column: str, *, invalid: Invalid = "null") -> Any:
        """Return the value in a column, as text."""
        return self._made(sql.lpm_column(table, self._series, column, invalid=invalid), "string")

    def lpm_prefix(self, table: TableSource, *, invalid: Invalid = "null") -> Any:
        """Return the longest prefix that contains each address, as text."""
        return self._made(sql.lpm_prefix(table, self._series, invalid=invalid), "string")

    def lpm_u64(self, table: TableSource, column: str, *, invalid: Invalid = "null") -> Any:
        """Return the value in a column of type u32 or u64."""
        return self._made(sql.lpm_u64(table, self._series, column, invalid=invalid), "UInt64")

    def lpm_f64(self, table: TableSource, column: str, *, invalid: Invalid = "null") -> Any:
        """Return the value in a column of type f64 or u32."""
        return self._made(sql.lpm_f64(table, self._series, column, invalid=invalid), "Float64")

    def lpm_id(self, table: TableSource, *, invalid: Invalid = "null") -> Any:
        """Return the ids."""
        ids = self._made(sql.lpm_id(table, self._series, invalid=invalid), "UInt32")
        return ids.mask(ids == 0)

    def rov(self, vrps: VrpsSource, asn: Any, *, invalid: Invalid = "null") -> Any:
        """Return the states of routes, whose prefixes these are; ``asn`` are their origins, a series or a list."""
        prefixes = [prefix if isinstance(prefix, str) else None for prefix in self._series]
        origins = [None if pd.isna(origin) else int(origin) for origin in asn]
        return self._made(sql.rov(vrps, prefixes, origins, invalid=invalid), "string")
