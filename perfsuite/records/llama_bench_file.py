"""Files of llama-bench, read in any form and written as JSON, JSON Lines or SQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.benchmark_text import LLAMA_BENCH_TABLE, bench_rows
from perfsuite.records.llama_bench import BenchRun
from perfsuite.records.whole_file import write_whole_bytes


def read_llama_bench(path: Path) -> tuple[BenchRun, ...]:
    """Read the tests of one file, whose form its content shows.

    Raises PerfsuiteError: the file cannot be read, is none of the forms, is cut short, holds no test, or a test lacks
    a field; the message names the place.
    """
    return tuple(BenchRun.from_plain(row, where) for where, row in bench_rows(path))


def write_llama_bench(runs: Sequence[BenchRun], path: Path, *, form: str) -> None:
    """Write tests as ``llama-bench -o`` `form` does, whole or not at all; raises PerfsuiteError if that fails."""
    write_whole_bytes(path, bench_text(runs, form).encode(), PerfsuiteError)


def bench_text(runs: Sequence[BenchRun], form: str) -> str:
    """Return what ``llama-bench -o`` `form` prints for tests like these; the form is one of `BENCH_FORMS`."""
    if form not in BENCH_FORMS:
        raise PerfsuiteError(f"form {form!r} is unknown; accepted are {', '.join(BENCH_FORMS)}")
    return _WRITERS[form]([run.to_plain() for run in runs])


def _sql_text(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return one table with a column for each field that is no list, and one row a test."""
    columns = {name: value for test in tests for name, value in test.items() if not isinstance(value, list)}
    kinds = {str: "TEXT", float: "REAL"}
    declared = ",\n".join(f"  {name} {kinds.get(type(value), 'INTEGER')}" for name, value in columns.items())
    rows = (", ".join(_literal(test.get(name)) for name in columns) for test in tests)
    table = LLAMA_BENCH_TABLE
    # values are quoted, names are fields of ours
    inserted = "".join(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({row});\n" for row in rows)  # nosec B608
    return f"CREATE TABLE IF NOT EXISTS {table} (\n{declared}\n);\n\n{inserted}"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''") + "'"


_WRITERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], str]] = {
    "json": lambda tests: json.dumps(tests, indent=2, ensure_ascii=False) + "\n",
    "jsonl": lambda tests: "".join(json.dumps(test, ensure_ascii=False) + "\n" for test in tests),
    "sql": _sql_text,
}

#: What `bench_text` can write.
BENCH_FORMS = tuple(_WRITERS)
