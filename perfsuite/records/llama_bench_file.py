"""Files of llama-bench: ``-o json``, ``-o jsonl``, ``-o sql``, and the SQLite database that the last one makes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from perfsuite.errors import PerfsuiteError
from perfsuite.records.llama_bench import BenchRun
from perfsuite.records.llama_bench_sql import ACCEPTED, SQLITE_MAGIC, Rows, rows_of_database, rows_of_sql, sql_text
from perfsuite.records.whole_file import write_whole


def read_llama_bench(path: Path) -> tuple[BenchRun, ...]:
    """Read the tests of one file, whose format its content tells.

    Raises
    ------
    PerfsuiteError
        The file cannot be read, is none of the formats, is cut short, holds no test, or a test lacks a field; the
        message names the place.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); name an output of llama-bench") from error
    rows = rows_of_database(path) if content.startswith(SQLITE_MAGIC) else _from_text(path, content)
    runs = tuple(BenchRun.from_plain(row, where) for where, row in rows)
    if not runs:
        raise PerfsuiteError(f"{path}: holds no test; run llama-bench again")
    return runs


def write_llama_bench(runs: Sequence[BenchRun], path: Path, *, form: str) -> None:
    """Write tests as ``llama-bench -o`` `form` does, whole or not at all; raises PerfsuiteError if that fails."""
    text = bench_text(runs, form)

    def fill(out: TextIO) -> None:
        out.write(text)

    write_whole(path, fill, PerfsuiteError)


def bench_text(runs: Sequence[BenchRun], form: str) -> str:
    """Return what ``llama-bench -o`` `form` prints for tests like these; the form is one of `BENCH_FORMS`."""
    if form not in BENCH_FORMS:
        raise PerfsuiteError(f"form {form!r} is unknown; accepted are {', '.join(BENCH_FORMS)}")
    return _WRITERS[form]([run.to_plain() for run in runs])


def _from_text(path: Path, content: bytes) -> Rows:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PerfsuiteError(f"{path}: is not text (byte {error.start}); {ACCEPTED}") from error
    begin = text.lstrip()[:6].upper()
    for mark, read in (("[", _from_json), ("{", _from_json_lines), ("CREATE", rows_of_sql), ("INSERT", rows_of_sql)):
        if begin.startswith(mark):
            return read(path, text)
    seen = f"begins with {text.lstrip()[:20]!r}" if begin else "is empty"
    raise PerfsuiteError(f"{path}: {seen}; {ACCEPTED}")


def _from_json(path: Path, text: str) -> Rows:
    for number, test in enumerate(_parsed(text, path, 1), start=1):
        where = f"{path}: test {number}"
        yield where, _mapping(test, where)


def _from_json_lines(path: Path, text: str) -> Rows:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path}: line {number}"
            yield where, _mapping(_parsed(line, path, number), where)


def _parsed(text: str, path: Path, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{path}: line {first_line + error.lineno - 1}, column {error.colno}"
        raise PerfsuiteError(f"{where}: is no whole JSON ({error.msg}); was llama-bench stopped?") from error


def _mapping(test: object, where: str) -> Mapping[str, Any]:
    if not isinstance(test, dict):
        raise PerfsuiteError(f"{where}: is {type(test).__name__}, expected an object of fields")
    return test


_Plain = Mapping[str, Any]


def _json(tests: Sequence[_Plain]) -> str:
    return json.dumps(tests, indent=2, ensure_ascii=False) + "\n"


def _json_lines(tests: Sequence[_Plain]) -> str:
    return "".join(json.dumps(test, ensure_ascii=False) + "\n" for test in tests)


_WRITERS: Mapping[str, Callable[[Sequence[_Plain]], str]] = {"json": _json, "jsonl": _json_lines, "sql": sql_text}

#: What `bench_text` can write.
BENCH_FORMS = tuple(_WRITERS)
