"""llama-bench's table in SQL: statements that fill it, read and written, and the SQLite database that they make."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from perfsuite.errors import PerfsuiteError

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


def rows_of_sql(path: Path, text: str) -> Rows:
    """Yield the place and the fields of each row that statements insert.

    They are carried out in a database of its own, in memory, which knows what quotes mean.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        database.set_authorizer(_authorize)
        for where, statement in _statements(path, text):
            _execute(database, statement, where)
        yield from _table_rows(database, path)


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
        raise PerfsuiteError(f"{path}: line {first}: the statement does not end; was llama-bench stopped?")


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED_ACTIONS else sqlite3.SQLITE_DENY


def _execute(database: sqlite3.Connection, statement: str, where: str) -> None:
    try:
        database.execute(statement)
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise PerfsuiteError(f"{where}: {error}; {ACCEPTED}") from error


def rows_of_database(path: Path) -> Rows:
    """Yield the place and the fields of each row of a database; it is not written to."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        yield from _table_rows(database, path)


def _table_rows(database: sqlite3.Connection, path: Path) -> Rows:
    database.row_factory = sqlite3.Row
    try:
        rows = [dict(row) for row in database.execute(f"SELECT * FROM {_TABLE} ORDER BY rowid")]
    except sqlite3.Error as error:
        raise PerfsuiteError(f"{path}: the table {_TABLE} cannot be read ({error}); {ACCEPTED}") from error
    for index, row in enumerate(rows):
        yield f"{path}: row {index + 1} of {_TABLE}", row


def sql_text(tests: Sequence[Mapping[str, Any]]) -> str:
    """Return one table with a column for each field that is no list, and one row a test."""
    columns = {name: value for test in tests for name, value in test.items() if not isinstance(value, list)}
    declared = ",\n".join(f"  {name} {_column_type(value)}" for name, value in columns.items())
    inserted = "".join(_insertion(test, tuple(columns)) for test in tests)
    return f"CREATE TABLE IF NOT EXISTS {_TABLE} (\n{declared}\n);\n\n{inserted}"


def _column_type(value: object) -> str:
    if isinstance(value, str):
        return "TEXT"
    return "REAL" if isinstance(value, float) else "INTEGER"


def _insertion(test: Mapping[str, Any], columns: tuple[str, ...]) -> str:
    values = ", ".join(_literal(test.get(name)) for name in columns)
    return f"INSERT INTO {_TABLE} ({', '.join(columns)}) VALUES ({values});\n"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''") + "'"
