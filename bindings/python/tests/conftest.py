"""What several tests share."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

import fibula

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]

ROUTES = {"0.0.0.0/1": 1, "10.0.0.0/8": 2, "10.1.0.0/16": 3, "192.0.2.0/24": 4, "2001:db8::/32": 11}


@pytest.fixture
def table() -> fibula.Table:
    """A table of both families, with columns of three types; the route of 10.1.0.0/16 has no country."""
    return fibula.Table.build(
        list(ROUTES),
        {
            "asn": list(ROUTES.values()),
            "country": ["DE", "FR", None, "NL", "SE"],
            "latitude": [52.5, 48.8, 0.0, 52.3, 59.3],
        },
    )


@pytest.fixture
def saved(table: fibula.Table, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "table.fibula"
    table.save(path)
    return path


@pytest.fixture(scope="session")
def np() -> Any:
    return pytest.importorskip("numpy")


@pytest.fixture(scope="session")
def pa() -> Any:
    return pytest.importorskip("pyarrow")
