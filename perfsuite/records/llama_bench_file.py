"""Files of llama-bench: ``-o json``, ``-o jsonl``, ``-o sql``, and the SQLite database that the last one makes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from perfsuite.errors import PerfsuiteError
from perfsuite.records.llama_bench import BenchRun
from perfsuite.records.whole_file import write_whole_bytes

#: How every SQLite database begins.
SQLITE_MAGIC = b"SQLite format 3\0"

#: The end of the message about what is no output of llama-bench.
ACCEPTED = "expected the output of llama-bench with -o json, jsonl or sql"

#: The place of each test in its file, for messages, and its fields.
Rows: TypeAlias = Iterator[tuple[str, Mapping[str, Any]]]

#: The table that llama-bench fills.
_TABLE = "llama_bench"

#: What a statement of llama-bench's SQL does; nothing else is carried out, whatever a file says.
_ALLOWED_ACTIONS = {
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_TRANSACTION,
}


def rows_of_sql(path: Path, text: str, *, table: str = _TABLE, accepted: str = ACCEPTED) -> Rows:
    """Yield the place and the fields of each row that statements insert into a table.

    They are carried out in a database of its own, in memory, which knows what quotes mean.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        database.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED_ACTIONS else sqlite3.SQLITE_DENY
        )
        for where, statement in _statements(path, text):
            try:
                database.execute(statement)
            except (sqlite3.Error, sqlite3.Warning) as error:
                raise PerfsuiteError(f"{where}: {error}; {accepted}") from error
        yield from _table_rows(database, path, table, accepted)


def _statements(path: Path, text: str) -> Iterator[tuple[str, str]]:
    first, gathered = 1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if not gathered.strip():
            first, gathered = number, ""
        gathered += line + "\n"
        if sqlite3.complete_statement(gathered):
            yield f"{path}: line {first}", gathered
            gathered = ""
    if gathered.strip():
        raise PerfsuiteError(f"{path}: line {first}: the statement does not end; was the benchmark stopped?")


def rows_of_database(path: Path, *, table: str = _TABLE, accepted: str = ACCEPTED) -> Rows:
    """Yield the place and the fields of each row of a database's table; it is not written to."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        yield from _table_rows(database, path, table, accepted)


def _table_rows(database: sqlite3.Connection, path: Path, table: str, accepted: str) -> Rows:
    database.row_factory = sqlite3.Row
    try:
        rows = [dict(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY rowid")]
    except sqlite3.Error as error:
        raise PerfsuiteError(f"{path}: the table {table} cannot be read ({error}); {accepted}") from error
    for index, row in enumerate(rows):
        yield f"{path}: row {index + 1} of {table}", row


def sql_text(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return one table with a column for each field that is no list, and one row a test."""
    columns = {name: value for test in tests for name, value in test.items() if not isinstance(value, list)}
    kinds = {str: "TEXT", float: "REAL"}
    declared = ",\n".join(f"  {name} {kinds.get(type(value), 'INTEGER')}" for name, value in columns.items())
    rows = (", ".join(_literal(test.get(name)) for name in columns) for test in tests)
    inserted = "".join(f"INSERT INTO {_TABLE} ({', '.join(columns)}) VALUES ({row});\n" for row in rows)
    return f"CREATE TABLE IF NOT EXISTS {_TABLE} (\n{declared}\n);\n\n{inserted}"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''") + "'"


def read_llama_bench(path: Path) -> tuple[BenchRun, ...]:
    """Read the tests of one file, whose format its content shows.

    Raises PerfsuiteError: the file cannot be read, is none of the formats, is cut short, holds no test, or a test lacks
    a field; the message names the place.
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
    write_whole_bytes(path, bench_text(runs, form).encode(), PerfsuiteError)


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
        raise PerfsuiteError(f"{where}: is not whole JSON ({error.msg}); was the benchmark stopped?") from error


def _mapping(test: object, where: str) -> Mapping[str, Any]:
    if not isinstance(test, dict):
        raise PerfsuiteError(f"{where}: is {type(test).__name__}, expected an object of fields")
    return test


_WRITERS: Mapping[str, Callable[[Sequence[Mapping[str, Any]]], str]] = {
    "json": lambda tests: json.dumps(tests, indent=2, ensure_ascii=False) + "\n",
    "jsonl": lambda tests: "".join(json.dumps(test, ensure_ascii=False) + "\n" for test in tests),
    "sql": sql_text,
}

#: What `bench_text` can write.
BENCH_FORMS = tuple(_WRITERS)
