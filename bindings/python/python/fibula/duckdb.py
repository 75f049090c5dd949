"""DuckDB's extension, which the wheels for Linux bring."""

from __future__ import annotations

import os
import pathlib
from typing import Any

__all__ = ["extension", "load"]

_NAME = "fibula.duckdb_extension"


def extension() -> pathlib.Path:
    """Return the path of the extension: beside this file, or where the variable FIBULA_EXTENSION says."""
    path = pathlib.Path(os.environ.get("FIBULA_EXTENSION") or pathlib.Path(__file__).with_name(_NAME))
    if not path.is_file():
        raise FileNotFoundError(f"{path}: this package was installed without DuckDB's extension; bindings/duckdb/build makes it, and FIBULA_EXTENSION names it")
    return path


def load(connection: Any) -> None:
    """Load the extension into a connection, which takes unsigned ones: ``duckdb.connect(config={"allow_unsigned_extensions": "true"})``.

    All connections to the same database then have the functions.
    """
    path = str(extension()).replace("'", "''")
    connection.execute(f"load '{path}'")
