"""Reading what llama.cpp's own benchmarks wrote; tests/cli/test_compare_files.py has files of people."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.benchmark_files import read_benchmark

from ..backend_ops_text import ops_sql

DATA = Path(__file__).parents[1] / "data"


def test_an_operator_has_its_runs_in_their_order(tmp_path: Path) -> None:
    """By the time of their begin, whatever their order in the file; what was not timed is no run."""
    path = tmp_path / "ops.sql"
    path.write_text(
        ops_sql(("2026-01-01T00:00:09Z", 12.5), ("2026-01-01T00:00:01Z", 10.0), ("2026-01-01T00:00:02Z", 0))
    )
    found = read_benchmark(path)
    assert {(each.name, each.machine, each.settings) for each in found} == {
        ("MUL_MAT", (("backend_name", "CPU"),), (("type_a", "q8_0"), ("m", "4096")))
    }
    assert [each.time_ns for each in found] == [10000, 12500]


def test_a_database_is_read_as_its_text(tmp_path: Path) -> None:
    """test-backend-ops perf --output sql | sqlite3 ops.sqlite."""
    text = ops_sql(("2026-01-01T00:00:01Z", 10.0))
    (tmp_path / "ops.sql").write_text(text)
    with closing(sqlite3.connect(tmp_path / "ops.sqlite")) as database:
        database.executescript(text)
    assert read_benchmark(tmp_path / "ops.sqlite") == read_benchmark(tmp_path / "ops.sql")


def test_what_llama_bench_repeated_is_one_time(tmp_path: Path) -> None:
    """The median repetition of the process."""
    (first, *_) = json.loads((DATA / "llama-bench.json").read_text("utf-8"))
    path = tmp_path / "bench.json"
    path.write_text(json.dumps([{**first, "samples_ns": [20, 30, 90]}]))
    assert [each.time_ns for each in read_benchmark(path)] == [30]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('"op_name","op_params"\n', "is the CSV of test-backend-ops, which has no times; use --output sql"),
        ("  MUL_MAT(m=4): 852 runs - 1.20 us/run\n", "is what test-backend-ops prints for people"),
        (ops_sql(("2026-01-01T00:00:01Z", 1.0)).replace("'1.0'", "'1e99'"), "time_us is '1e99', expected microseconds"),
        (ops_sql(("2026-01-01T00:00:01Z", 1.0)).replace("op_params", "op_words"), "op_params is missing"),
        (ops_sql(("2026-01-01T00:00:01Z", 1.0))[:-4], "the statement does not end; was the benchmark stopped?"),
        (
            "INSERT INTO test (a) VALUES ('x', 'it's');\nINSERT INTO test (a) VALUES ('x');\n",
            "does not end; a quote in it is not doubled",
        ),
        ("hello", "begins with 'hello'; expected llama-bench -o json, jsonl, csv or sql, or test-backend-ops perf"),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "bad"
    path.write_text(content)
    with pytest.raises(PerfsuiteError, match=rf"^{path}") as raised:
        read_benchmark(path)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
