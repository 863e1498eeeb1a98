"""The rows of a file of llama-bench or test-backend-ops in any of the forms that their releases wrote.

The content shows the form: JSON, JSON Lines, CSV, SQL, or the database made from SQL; with a byte-order mark, in
UTF-16, with lines of a log between. What has no single times, or is of another tool, is refused by its name.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from perfsuite.errors import PerfsuiteError
from perfsuite.records.benchmark_sql import SQLITE_MAGIC, TableRows, rows_of_database, rows_of_sql
from perfsuite.records.codec import content_of, in_one_line, parse_json

#: The end of the message about what is none of these files.
ACCEPTED = "expected llama-bench -o json, jsonl, csv or sql, or test-backend-ops perf --output sql"

#: The table that each tool fills. *Source*: ``sql_printer`` of ``tools/llama-bench/llama-bench.cpp`` and of
#: ``tests/test-backend-ops.cpp`` in llama.cpp; that of llama-bench was ``test`` up to llama-cpp-python 0.3.15.
LLAMA_BENCH_TABLE, _OLDER_TABLE, BACKEND_OPS_TABLE = "llama_bench", "test", "test_backend_ops"
_TABLES = (LLAMA_BENCH_TABLE, _OLDER_TABLE, BACKEND_OPS_TABLE)

#: The place of each test in its file, for messages, and its fields.
Rows: TypeAlias = Iterator[tuple[str, Mapping[str, Any]]]

#: Larger is no file of a benchmark, of which a row has about 1 kB.
_MOST_BYTES = 64 * 1024**2
_STOPPED = "was the benchmark stopped?"

_SQL = re.compile(r"^[ \t]*(?:CREATE TABLE|INSERT INTO)\s", re.MULTILINE | re.IGNORECASE)
_JSON = re.compile(r"^(?=[\[{]\s*(?:$|[\[\]{}\"\d]))", re.MULTILINE)
#: What JSON has in a line of its own, as no line of a log has.
_JSON_LINE = re.compile(r"\s*(?:[\[\]{}\",]|-?\d[\d.eE+-]*,?\s*$)")
#: Columns that the CSV of a tool has, whatever comes first.
_CSV_OF_BENCH, _CSV_OF_OPERATORS = {"build_commit", "n_prompt"}, {"op_name", "op_params"}
#: What people hand over beside these files: a line, or what JSON has, by which it is known, what it is, and what gives
#: times that can be compared.
_OTHERS: tuple[tuple[re.Pattern[str] | tuple[str, ...], str], ...] = (
    (
        re.compile(r"^[ \t]*\|.*\| *t/s *\|", re.MULTILINE),
        "is Markdown of llama-bench, one mean and one deviation a test, which decide nothing; run it with -o jsonl",
    ),
    (
        re.compile(r"^[ \t]*\w+\(.*\d us/run|^Testing \d+ devices", re.MULTILINE),
        "is what test-backend-ops prints for people; run test-backend-ops perf --output sql",
    ),
    (
        ('"machine_info"',),
        "is JSON of pytest-benchmark, not of llama.cpp's benchmarks; pytest-benchmark compare reads it",
    ),
    (
        ('"context"', '"benchmarks"'),
        "is JSON of Google Benchmark, not of llama.cpp's benchmarks; its tools/compare.py reads it",
    ),
    (
        ('"fingerprint"', '"started_at"'),
        "is a run of perfsuite; 'perfsuite llama-bench export RUN.json -o jsonl' writes its prefill and decode",
    ),
)


def bench_rows(path: Path) -> Rows:
    """Yield the tests of llama-bench in a file; raises PerfsuiteError as `benchmark_rows` does."""
    tables = benchmark_rows(path)
    if BACKEND_OPS_TABLE in tables:
        raise PerfsuiteError(f"{path}: is of test-backend-ops; expected the output of llama-bench")
    yield from tables.get(LLAMA_BENCH_TABLE, ())


def benchmark_rows(path: Path) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
    """Return the rows of a file by the newer name of their table.

    Raises PerfsuiteError: the file cannot be read, is none of the forms, is cut short, or has no row; the message
    names the place.
    """
    content = content_of(path, PerfsuiteError, ACCEPTED, most_bytes=_MOST_BYTES)
    if content.startswith(SQLITE_MAGIC):
        found = rows_of_database(path, tables=_TABLES, accepted=ACCEPTED)
    else:
        found = _rows_of_text(path, _decoded(path, content))
    tables: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for table, where, row in found:
        tables.setdefault(LLAMA_BENCH_TABLE if table == _OLDER_TABLE else table, []).append((where, row))
    if not tables:
        raise PerfsuiteError(f"{path}: holds no test; run the benchmark again")
    return tables


def _decoded(path: Path, content: bytes) -> str:
    encoding = json.detect_encoding(content)
    try:
        return content.decode(encoding).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise PerfsuiteError(f"{path}: is not text (byte {error.start}); {ACCEPTED}") from error


def _rows_of_text(path: Path, text: str) -> TableRows:
    if _SQL.search(text):
        return rows_of_sql(path, text, tables=_TABLES, accepted=ACCEPTED)
    for line in text.split("\n"):
        if len(columns := set(line.strip().replace('"', "").split(","))) > 1:
            if columns >= _CSV_OF_OPERATORS:
                raise PerfsuiteError(f"{path}: is the CSV of test-backend-ops, which has no times; use --output sql")
            if columns >= _CSV_OF_BENCH:
                return _of_bench(_csv_rows(path, text))
    if other := next((told for mark, told in _OTHERS if _shows(text, mark)), None):
        raise PerfsuiteError(f"{path}: {other}")
    if _JSON.search(text):
        return _of_bench(_json_rows(path, text))
    seen = f"begins with {text.lstrip()[:20]!r}" if text.strip() else "is empty"
    raise PerfsuiteError(f"{path}: {seen}; {ACCEPTED}")


def _shows(text: str, mark: re.Pattern[str] | tuple[str, ...]) -> bool:
    if isinstance(mark, re.Pattern):
        return mark.search(text) is not None
    return text.lstrip().startswith("{") and all(each in text for each in mark)


def _of_bench(rows: Rows) -> TableRows:
    return ((LLAMA_BENCH_TABLE, where, row) for where, row in rows)


def _csv_rows(path: Path, text: str) -> Rows:
    """Yield the rows of CSV, whose columns may be named again; llama-bench writes each value between quotes."""
    columns: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        where = f"{path}: line {number}"
        try:
            values = next(csv.reader([line], strict=True), [])
        except csv.Error as error:
            raise PerfsuiteError(f"{where}: is cut short ({error}); {_STOPPED}") from error
        if set(values) >= _CSV_OF_BENCH:
            columns = values
        elif columns and len(values) == len(columns):
            yield where, dict(zip(columns, values, strict=True))
        elif columns and line.startswith('"'):
            raise PerfsuiteError(f"{where}: is cut short: {len(values)} of {len(columns)} values; {_STOPPED}")


def _json_rows(path: Path, text: str) -> Rows:
    """Yield the objects of texts of JSON one after the other: lists of objects, or an object a line."""
    n_tests = 0
    for line, parsed in _parsed_texts(path, text):
        for each in parsed if isinstance(parsed, list) else [parsed]:
            n_tests += 1
            where = f"{path}: test {n_tests}" if isinstance(parsed, list) else f"{path}: line {line}"
            if not isinstance(each, dict):
                raise PerfsuiteError(f"{where}: is {type(each).__name__}, expected an object of fields")
            yield where, each


def _parsed_texts(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    try:
        whole = parse_json(text)
    except (ValueError, RecursionError):
        begins = [found.start() for found in _JSON.finditer(text)]
        line = 1 + text[: begins[0]].count("\n")
        for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
            yield line, _parsed(path, text[begin:end], line)
            line += text[begin:end].count("\n")
    else:
        yield 1, whole


def _parsed(path: Path, text: str, line: int) -> Any:
    """Parse one text of JSON; where that fails, without the lines that no JSON has."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        text = "\n".join(each if _JSON_LINE.match(each) else "" for each in text.split("\n")).rstrip()
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        where = f"{path}: line {line + error.lineno - 1}, column {error.colno}"
        is_early = error.msg.startswith("Unterminated") or len(text) - error.pos < len("false")
        told = f"is not whole JSON ({error.msg}); {_STOPPED}" if is_early else f"is not JSON ({error.msg}); {ACCEPTED}"
        raise PerfsuiteError(f"{where}: {told}") from error
    except (ValueError, RecursionError) as error:
        raise PerfsuiteError(
            f"{path}: line {line}: is not JSON of llama-bench ({in_one_line(error)}); {ACCEPTED}"
        ) from error
