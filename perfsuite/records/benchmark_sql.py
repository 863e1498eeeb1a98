"""Rows that statements of SQL insert, or that an SQLite database holds, as llama.cpp's benchmarks write them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import in_one_line

#: How every SQLite database begins.
SQLITE_MAGIC = b"SQLite format 3\0"

#: The table of a row, its place for messages, and its fields.
TableRows: TypeAlias = Iterator[tuple[str, str, Mapping[str, Any]]]

#: One of the statements of a larger file has so many steps.
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
#: How a line begins that is no log line: with a statement, which may be refused then, or with a remark. What a dump
#: begins with says nothing here.
_STATEMENT = re.compile(
    r"""\s*(?!PRAGMA[ ]foreign_keys=OFF;)(?:;|--|/\*|(?:CREATE|INSERT|REPLACE|UPDATE|DELETE|DROP|ALTER|ATTACH|DETACH
        |PRAGMA|SELECT|WITH|VACUUM|BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|REINDEX|ANALYZE)\b)""",
    re.VERBOSE,
)
_INSERTED = re.compile(r"(?P<head>INSERT INTO \w+ \((?P<columns>[\w, ]*)\) VALUES \(')(?P<values>.*)'\);\s*")


def rows_of_sql(path: Path, text: str, *, tables: Collection[str], accepted: str) -> TableRows:
    """Yield each row that statements insert into tables of these names.

    They are carried out in a database of its own, in memory, which knows what quotes mean. A text that cannot be is
    read once more without lines of a log, and with the quotes doubled that llama-bench leaves as they are.
    """
    try:
        rows = list(_inserted(path, text, tables, accepted))
    except PerfsuiteError:
        rows = list(_inserted(path, _repaired(text), tables, accepted))
    yield from rows


def _inserted(path: Path, text: str, tables: Collection[str], accepted: str) -> TableRows:
    with closing(sqlite3.connect(":memory:")) as database:
        _allow(database, _FILLING, table=_TABLES)
        for number, (where, statement) in enumerate(_statements(path, text)):
            if number == _MOST_STATEMENTS:
                raise PerfsuiteError(f"{where}: is behind {_MOST_STATEMENTS:,} statements, the most; {accepted}")
            try:
                database.execute(statement)
            except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
                raise PerfsuiteError(f"{where}: {error}; {accepted}") from error
        yield from _rows(database, path, tables, accepted)


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
        why = "a quote in it is not doubled" if "\nINSERT INTO " in rest.lstrip() else "was the benchmark stopped?"
        raise PerfsuiteError(f"{path}: line {line}: the statement does not end; {why}")


def _repaired(text: str) -> str:
    """Return the statements of a text in their lines, without lines of a log and with quotes within texts doubled."""
    lines, is_within = [], False
    for line in text.split("\n"):
        is_kept = is_within or _STATEMENT.match(line) is not None
        lines.append(_doubled(line) if is_kept else "")
        is_within = is_kept and bool(line.strip()) and not line.rstrip().endswith(";")
    return "\n".join(lines)


def _doubled(line: str) -> str:
    """Return an INSERT of llama-bench, which writes each value between quotes, with the quotes within them doubled."""
    found = _INSERTED.fullmatch(line)
    if found is None:
        return line
    values = found["values"].split("', '")
    if len(values) != found["columns"].count(",") + 1 or all("'" not in each.replace("''", "") for each in values):
        return line
    return found["head"] + "', '".join(each.replace("'", "''") for each in values) + "');"


def rows_of_database(path: Path, *, tables: Collection[str], accepted: str) -> TableRows:
    """Yield each row of a database's tables of these names; it is not written to."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        yield from _rows(database, path, tables, accepted)


def _allow(database: sqlite3.Connection, actions: set[int], *, table: str) -> None:
    """Let a database do nothing but `actions`, and read and change the rows of one table."""

    def answer(action: int, first: str | None, *_: object) -> int:
        of_table = action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE) and first == table
        return sqlite3.SQLITE_OK if action in actions or of_table else sqlite3.SQLITE_DENY

    database.set_authorizer(answer)


def _rows(database: sqlite3.Connection, path: Path, tables: Collection[str], accepted: str) -> TableRows:
    database.row_factory = sqlite3.Row
    looks = iter(range(_MOST_STEPS // _STEPS_A_LOOK))
    database.set_progress_handler(lambda: next(looks, None) is None, _STEPS_A_LOOK)
    try:
        database.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
        asked = f"SELECT name, type FROM {_TABLES} WHERE type IN ('table', 'view')"  # nosec B608  # a constant of ours
        kinds = {name: kind for name, kind in database.execute(asked) if name in tables}
        if not kinds:
            raise PerfsuiteError(f"{path}: has no table {' or '.join(tables)}; {accepted}")
        for table, kind in kinds.items():
            database.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
            columns = [hidden for *_, hidden in database.execute(f"PRAGMA table_xinfo({table})")]
            if kind != "table" or any(columns):
                raise PerfsuiteError(f"{path}: {table} is a view or computed, expected a table of values; {accepted}")
            _allow(database, _READING, table=table)
            rows = [dict(row) for row in database.execute(f"SELECT * FROM {table}")]  # nosec B608  # of ours
            yield from ((table, f"{path}: row {at} of {table}", row) for at, row in enumerate(rows, start=1))
    except (sqlite3.Error, OverflowError, UnicodeDecodeError, MemoryError) as error:
        why = in_one_line(error) or "it takes more memory than there is"
        raise PerfsuiteError(f"{path}: its tables cannot be read ({why}); {accepted}") from error
