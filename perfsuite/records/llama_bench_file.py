"""Files of llama-bench: ``-o json``, ``-o jsonl``, ``-o sql``, and the SQLite database that the last one makes."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import content_of, in_one_line, parse_json
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

#: Larger is no file of a benchmark, of which a row has about 1 kB; nor has one of its statements so many steps.
MOST_BYTES = 64 * 1024**2
_MOST_STEPS, _STEPS_A_LOOK = 50_000_000, 1_000_000
#: More statements, of which each row is one, take minutes.
_MOST_STATEMENTS = 200_000

#: What SQLite does while the statements of a file are carried out, and while its table is read: nothing else is done,
#: whatever a file says. No function is called, no view or trigger is followed.
_FILLING = {sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_TRANSACTION}
_READING = {sqlite3.SQLITE_SELECT}
#: SQLite's own table of tables, which each new one changes.
_TABLES = "sqlite_master"

#: What holds a semicolon that ends nothing (a text, a name, a remark, up to the end of the file where it is not
#: closed), or one that ends a statement. A quote within a text is two, as if a text ended and another began.
_SQL_PART = re.compile(
    r"""(?:'[^']*'){1,1000} | '[^']*\Z | "[^"]*(?:"|\Z) | `[^`]*(?:`|\Z) | \[[^\]]*(?:\]|\Z)
        | --[^\n]* | /\*.*?(?:\*/|\Z) | ;""",
    re.VERBOSE | re.DOTALL,
)


def rows_of_sql(path: Path, text: str, *, table: str = _TABLE, accepted: str = ACCEPTED) -> Rows:
    """Yield the place and the fields of each row that statements insert into a table.

    They are carried out in a database of its own, in memory, which knows what quotes mean.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        _allow(database, _FILLING, table=_TABLES)
        for number, (where, statement) in enumerate(_statements(path, text)):
            if number == _MOST_STATEMENTS:
                raise PerfsuiteError(f"{where}: is behind {_MOST_STATEMENTS:,} statements, the most; {accepted}")
            try:
                database.execute(statement)
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                raise PerfsuiteError(f"{where}: {error}; {accepted}") from error
        yield from _table_rows(database, path, table, accepted)


def _statements(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each statement, in one pass."""
    begin, line = 0, 1
    for part in _SQL_PART.finditer(text):
        if part[0] == ";":
            statement = text[begin : part.end()]
            blank = statement[: len(statement) - len(statement.lstrip())].count("\n")
            yield f"{path}: line {line + blank}", statement
            begin, line = part.end(), line + statement.count("\n")
    rest = text[begin:]
    if rest.strip():
        line += rest[: len(rest) - len(rest.lstrip())].count("\n")
        raise PerfsuiteError(f"{path}: line {line}: the statement does not end; was the benchmark stopped?")


def rows_of_database(path: Path, *, table: str = _TABLE, accepted: str = ACCEPTED) -> Rows:
    """Yield the place and the fields of each row of a database's table; it is not written to."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        yield from _table_rows(database, path, table, accepted)


def _allow(database: sqlite3.Connection, actions: set[int], *, table: str) -> None:
    """Let a database do nothing but `actions`, and read and change the rows of one table."""

    def answer(action: int, first: str | None, *_: object) -> int:
        of_table = action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE) and first == table
        return sqlite3.SQLITE_OK if action in actions or of_table else sqlite3.SQLITE_DENY

    database.set_authorizer(answer)


def _table_rows(database: sqlite3.Connection, path: Path, table: str, accepted: str) -> Rows:
    database.row_factory = sqlite3.Row
    looks = iter(range(_MOST_STEPS // _STEPS_A_LOOK))
    try:
        database.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
        asked = f"SELECT type FROM {_TABLES} WHERE name = ?"  # nosec B608  # a constant of ours
        kinds = [kind for (kind,) in database.execute(asked, (table,))]
        columns = [hidden for *_, hidden in database.execute(f"PRAGMA table_xinfo({table})")]
        if kinds not in ([], ["table"]) or any(columns):
            raise PerfsuiteError(f"{path}: {table} is a view or computed, expected a table of values; {accepted}")
        _allow(database, _READING, table=table)
        database.set_progress_handler(lambda: next(looks, None) is None, _STEPS_A_LOOK)
        rows = [dict(row) for row in database.execute(f"SELECT * FROM {table}")]  # nosec B608  # a constant of ours
    except (sqlite3.Error, OverflowError, UnicodeDecodeError, MemoryError) as error:
        why = in_one_line(error) or "it takes more memory than there is"
        raise PerfsuiteError(f"{path}: the table {table} cannot be read ({why}); {accepted}") from error
    for index, row in enumerate(rows):
        yield f"{path}: row {index + 1} of {table}", row


def sql_text(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return one table with a column for each field that is no list, and one row a test."""
    columns = {name: value for test in tests for name, value in test.items() if not isinstance(value, list)}
    kinds = {str: "TEXT", float: "REAL"}
    declared = ",\n".join(f"  {name} {kinds.get(type(value), 'INTEGER')}" for name, value in columns.items())
    rows = (", ".join(_literal(test.get(name)) for name in columns) for test in tests)
    # values are quoted, names are fields of ours
    inserted = "".join(f"INSERT INTO {_TABLE} ({', '.join(columns)}) VALUES ({row});\n" for row in rows)  # nosec B608
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
    content = content_of(path, PerfsuiteError, ACCEPTED, most_bytes=MOST_BYTES)
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
        return parse_json(text)
    except json.JSONDecodeError as error:
        where = f"{path}: line {first_line + error.lineno - 1}, column {error.colno}"
        raise PerfsuiteError(f"{where}: is not whole JSON ({error.msg}); was the benchmark stopped?") from error
    except (ValueError, RecursionError) as error:
        where = f"{path}: line {first_line}"
        raise PerfsuiteError(f"{where}: is not JSON of llama-bench ({in_one_line(error)}); {ACCEPTED}") from error


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
