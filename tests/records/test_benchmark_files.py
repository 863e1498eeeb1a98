"""Reading what llama.cpp's own benchmarks wrote."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.benchmark_files import read_benchmark

from ..backend_ops_text import ops_sql


def test_an_operator_has_its_runs_in_their_order(tmp_path: Path) -> None:
    """By the time of their begin, whatever their order in the file; what was not timed is no run."""
    path = tmp_path / "ops.sql"
    path.write_text(
        ops_sql(("2026-01-01T00:00:09Z", 12.5), ("2026-01-01T00:00:01Z", 10.0), ("2026-01-01T00:00:02Z", 0))
    )
    ((name, runs),) = read_benchmark(path).items()
    assert name == "MUL_MAT(type_a=q8_0,m=4096) CPU"
    assert [each.time_ns for each in runs] == [10000, 12500]


def test_a_database_is_read_as_its_text(tmp_path: Path) -> None:
    """test-backend-ops perf --output sql | sqlite3 ops.sqlite."""
    text = ops_sql(("2026-01-01T00:00:01Z", 10.0))
    (tmp_path / "ops.sql").write_text(text)
    with closing(sqlite3.connect(tmp_path / "ops.sqlite")) as database:
        database.executescript(text)
    assert read_benchmark(tmp_path / "ops.sqlite") == read_benchmark(tmp_path / "ops.sql")


def bench_row(**changed: Any) -> dict[str, Any]:
    """Return a test as llama-bench -o json writes it."""
    row = {
        **dict.fromkeys(("build_commit", "cpu_info", "gpu_info", "model_filename"), "x"),
        "build_number": 1,
        "backends": "CPU",
        "model_type": "llama 1B Q8_0",
        "model_size": 1000,
        "model_n_params": 900,
        "n_batch": 512,
        "n_ubatch": 512,
        "n_threads": 2,
        "type_k": "f16",
        "type_v": "f16",
        "n_gpu_layers": 0,
        "flash_attn": 1,
        "n_prompt": 0,
        "n_gen": 8,
        "n_depth": 64,
        "test_time": "2026-01-01T00:00:01Z",
        "avg_ns": 30,
        "stddev_ns": 10,
        "avg_ts": 1.0,
        "stddev_ts": 0.1,
        "samples_ns": [20, 30, 90],
    }
    return {**row, **changed}


def test_what_llama_bench_repeated_is_one_time(tmp_path: Path) -> None:
    """The median repetition of the process; tests of other settings are other tests."""
    path = tmp_path / "bench.json"
    path.write_text(json.dumps([bench_row(), bench_row(n_threads=4)]))
    found = read_benchmark(path)
    assert [[each.time_ns for each in runs] for runs in found.values()] == [[30], [30]]
    assert next(iter(found)).startswith("tg8@d64 model_type=llama 1B Q8_0")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('"op_name","op_params"\n', "is the CSV of test-backend-ops, which has no times; use --output sql"),
        ("CREATE TABLE test_backend_ops (time_us);\n", "holds no test with a time"),
        (ops_sql(("2026-01-01T00:00:01Z", 1.0)).replace("'1.0'", "'1e99'"), "time_us is '1e99', expected microseconds"),
        (ops_sql(("2026-01-01T00:00:01Z", 1.0)).replace("op_params", "op_words"), "op_params is missing"),
        (ops_sql(("2026-01-01T00:00:01Z", 1.0))[:-4], "the statement does not end"),
        ("hello", "expected the output of llama-bench"),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, content: str, told: str) -> None:
    """One line names the file."""
    path = tmp_path / "bad"
    path.write_text(content)
    with pytest.raises(PerfsuiteError, match=rf"^{path}") as raised:
        read_benchmark(path)
    assert told in str(raised.value)
