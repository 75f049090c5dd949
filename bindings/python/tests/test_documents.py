"""The examples of docstrings and of the README run."""

from __future__ import annotations

import doctest
import pathlib
import re
import types

import pytest

import fibula
import fibula._maps
from conftest import REPOSITORY
from shared import run_blocks


def examples() -> list[doctest.DocTest]:
    finder, found = doctest.DocTestFinder(), []
    named = {name: getattr(fibula, name) for name in fibula.__all__}
    for name, item in [("fibula", fibula), *named.items()]:
        if isinstance(item, type):
            members = [(f"{name}.{key}", getattr(item, key)) for key in vars(item)]
        else:
            members = []
        for full, one in [(name, item), *members]:
            text = one.__doc__ if isinstance(getattr(one, "__doc__", None), str) else ""
            if text and ">>>" in text and not (isinstance(item, types.ModuleType) and one is not item):
                found.append(doctest.DocTestParser().get_doctest(text, {**named, "fibula": fibula}, full, None, 0))
    assert finder and len(found) >= 8
    return found


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_examples(example: doctest.DocTest) -> None:
    assert doctest.DocTestRunner().run(example).failed == 0


def test_everything_has_a_docstring() -> None:
    for name in fibula.__all__:
        item = getattr(fibula, name)
        if isinstance(item, str):
            continue
        assert item.__doc__, name
        if isinstance(item, type) and item.__module__ == "fibula":
            for key, member in vars(item).items():
                assert key.startswith("_") or getattr(member, "__doc__", None), f"{name}.{key}"


@pytest.mark.parametrize(("name", "needed", "outputs"), [("python", ["numpy"], 5), ("python-tutorial", ["pyarrow", "matplotlib"], 6), ("data-engines", ["polars", "pandas", "datafusion", "duckdb"], 5)])
def test_the_guide_prints_what_it_says(name: str, needed: list[str], outputs: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in needed:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    if "duckdb" in needed:
        from fibula.duckdb import extension

        try:
            extension()
        except FileNotFoundError as error:
            pytest.skip(str(error))
    guide = REPOSITORY / "docs/guide"
    assert run_blocks((guide / f"{name}.md").read_text()) >= outputs
    # What it draws is what the page shows.
    drawn = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert drawn == sorted(path.name for path in guide.glob(f"{name}.svg"))
    for picture in drawn:
        assert (tmp_path / picture).read_text() == (guide / picture).read_text()


def test_the_readme_runs() -> None:
    text = (REPOSITORY / "bindings/python/README.md").read_text()
    for code in re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        exec(code, {})
