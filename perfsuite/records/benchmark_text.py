"""The rows of a file of llama-bench or test-backend-ops in any of the forms that their releases wrote.

The content shows the form: JSON, JSON Lines, CSV, SQL, or the database made from SQL; with a byte-order mark, in
UTF-16, with lines of a log between. What has no single times, or is of another tool, is refused by its name.
"""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import content_of, in_one_line, parse_json

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
_SQLITE_TABLES = "sqlite_master"

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
        _allow(database, _FILLING, table=_SQLITE_TABLES)
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
        asked = f"SELECT name, type FROM {_SQLITE_TABLES} WHERE type IN ('table', 'view')"  # nosec B608  # a constant of ours
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
