"""Ray and Dask: the shared questions, and the examples of the guide.

Needs Ray or Dask, which are not in the environments of every change: `bindings/python/test --clusters`.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

import fibula
import questions
from conftest import REPOSITORY
from questions import Asked, answered
from shared import arrow_type, run_blocks

ALL = questions.questions()
GUIDE = (REPOSITORY / "docs/guide/cluster.md").read_text()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return questions.saved(tmp_path_factory.mktemp("clusters"))


def blocks_of(section: str) -> str:
    """Return a section of the guide, with the block that makes its table."""
    (found,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", GUIDE, flags=re.MULTILINE | re.DOTALL)
    return str(found)


def call(asked: Asked, path: str, addresses: Any, asns: Any) -> Any:
    from fibula import sql

    function = getattr(sql, asked.call)
    if asked.call == "rov":
        return function(str(questions.VRPS), addresses, asns)
    return function(path, addresses, *([] if asked.argument is None else [asked.argument]))


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20, runtime_env={"env_vars": {"PYTHONPATH": str(pathlib.Path(__file__).parent)}})
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


def test_questions_in_ray(ray: Any, path: str) -> None:
    import pyarrow as pa

    asked_in_all = 0
    by_kind: dict[str, list[Asked]] = {}
    for asked in ALL:
        if arrow_type(pa, asked.kind) is not None:
            by_kind.setdefault(asked.kind, []).append(asked)
    # One job answers all questions of a type, each a block.
    for kind, several in by_kind.items():
        blocks = [
            pa.table({
                "asked": [at] * len(asked.addresses), "row": range(len(asked.addresses)), "ip": pa.array(asked.addresses, arrow_type(pa, kind)),
                "asn": pa.array(asked.asns if asked.call == "rov" else [None] * len(asked.addresses), pa.int64()),
            })
            for at, asked in enumerate(several)
        ]  # fmt: skip

        def answer(batch: Any, several: list[Asked] = several) -> Any:
            (number,) = set(batch["asked"].to_pylist())
            found = call(several[number], path, batch["ip"].combine_chunks(), batch["asn"].to_pylist())
            return batch.append_column("answer", pa.array([json.dumps(one) for one in pa.array(found).to_pylist()], pa.string()))

        found = ray.data.from_arrow(blocks).map_batches(answer, batch_format="pyarrow", batch_size=None).take_all()
        answers = {(row["asked"], row["row"]): row["answer"] for row in found}
        for at, asked in enumerate(several):
            for row, expected in enumerate(asked.answers):
                assert json.loads(answers.pop((at, row))) == expected, (asked.name, row)
                asked_in_all += 1
        assert not answers
    assert asked_in_all >= 200


def test_the_example_of_ray(ray: Any, tmp_path: pathlib.Path) -> None:
    assert run_blocks(blocks_of("Ray").replace("/tmp/", f"{tmp_path}/")) == 1


def test_what_is_wrong_in_ray_fails_its_task(ray: Any, path: str, tmp_path: pathlib.Path) -> None:
    rows = ray.data.from_items([{"ip": "10.0.0.1"}, {"ip": "zehn"}])

    def answer(batch: Any, file: str, **options: Any) -> Any:
        from fibula import sql

        return batch.append_column("name", [sql.lpm(file, batch["ip"].to_pylist(), **options)])

    def run(file: Any, **options: Any) -> Any:
        return rows.map_batches(answer, batch_format="pyarrow", fn_args=[str(file)], fn_kwargs=options).take_all()

    assert sorted(str(row["name"]) for row in run(path)) == ["None", "private"]
    for file, options, said in [(tmp_path / "absent", {}, "absent"), (questions.VRPS, {}, r"vrps\.csv"), (path, {"invalid": "raise"}, "zehn")]:
        with pytest.raises(Exception, match=said):
            run(file, **options)


@pytest.fixture(scope="module")
def dask() -> Iterator[Any]:
    frame = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("dask.distributed")
    os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).parent)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, distributed.Client(cluster):
        yield frame


@pytest.mark.parametrize("asked", [asked for asked in ALL if asked.call != "rov" and asked.kind in {"string", "uint32", "int64"}], ids=lambda asked: asked.name)
def test_questions_in_dask(asked: Asked, path: str, dask: Any) -> None:
    import pandas as pd

    dtype = {"string": "string", "uint32": "UInt32", "int64": "Int64"}[asked.kind]
    frame = dask.from_pandas(pd.DataFrame({"ip": pd.Series(asked.addresses, dtype=dtype)}), npartitions=2)

    def answer(part: Any) -> Any:
        import fibula.pandas

        assert fibula.pandas
        return getattr(part["ip"].fibula, asked.call)(path, *([] if asked.argument is None else [asked.argument]))

    found = frame.map_partitions(answer).compute()
    assert answered(found.tolist()) == asked.answers


def test_the_example_of_dask(dask: Any, tmp_path: pathlib.Path) -> None:
    assert run_blocks(blocks_of("Dask").replace("/tmp/", f"{tmp_path}/")) == 1


def test_what_is_wrong_in_dask_fails_its_task(dask: Any, path: str, tmp_path: pathlib.Path) -> None:
    import pandas as pd

    frame = dask.from_pandas(pd.DataFrame({"ip": ["10.0.0.1", "zehn"]}), npartitions=2)

    def run(file: Any, **options: Any) -> Any:
        def answer(part: Any) -> Any:
            from fibula import sql

            return pd.Series(list(sql.lpm(str(file), part["ip"].tolist(), **options)), index=part.index, dtype="string")

        return frame.map_partitions(answer, meta=("name", "string")).compute().tolist()

    assert answered(run(path)) == ["private", None]
    for file, options, said in [(tmp_path / "absent", {}, "absent"), (questions.VRPS, {}, r"vrps\.csv"), (path, {"invalid": "raise"}, "zehn")]:
        with pytest.raises(Exception, match=said):
            run(file, **options)
    assert fibula.__version__
