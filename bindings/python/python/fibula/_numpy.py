"""Values as NumPy arrays. NumPy is imported only when a caller asks for one."""

from __future__ import annotations

from typing import Any

import numpy as np

_TYPES = {"u32": "uint32", "u64": "uint64", "i64": "int64", "f64": "float64", "bool": "bool"}


def prepare(kind: str, objects: list[Any]) -> tuple[Any, Any]:
    """Return the values by id, and a mask of missing ones. The last element is the value of every id that has none."""
    if kind in ("text", "bytes"):
        values = np.empty(len(objects), dtype=object)
        values[:] = objects
        return values, None
    if kind == "f64":
        return np.array([np.nan if value is None else value for value in objects], dtype="float64"), None
    values = np.array([0 if value is None else value for value in objects], dtype=_TYPES[kind])
    return values, np.array([value is None for value in objects])


def gather(prepared: tuple[Any, Any], ids: Any) -> Any:
    """Return the value of each id: None for text, not a number, or masked."""
    values, missing = prepared
    found = values.take(ids, mode="clip")
    if missing is None:
        return found
    return np.ma.MaskedArray(found, mask=missing.take(ids, mode="clip"))
