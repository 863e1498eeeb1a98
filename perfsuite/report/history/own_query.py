"""A query of somebody's own over the view ``history``, which may read and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import HistoryError
from perfsuite.report.history.database import database, database_errors, first_line
from perfsuite.report.history.folder import SkippedFile
from perfsuite.report.history.interruptible import interruptible
from perfsuite.report.history.reader import HistoryReader, lock_down

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: Rows of an answer, and seconds that it may take, where nothing else is said.
MOST_ROWS, LIMIT_S = 100_000, 60.0

#: So often a query is asked anew where files were merged meanwhile.
_MOST_QUERIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """What a query gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    skipped: tuple[SkippedFile, ...] = ()
    #: Whether the query gives more rows than these.
    is_cut: bool = False


def ask(history_dir: Path, query: str, *, most_rows: int = MOST_ROWS, limit_s: float = LIMIT_S) -> QueryAnswer:
    """Answer one SELECT over the view ``history``; no other file is read, none is written, and nothing is loaded.

    Raises HistoryError where the text is no single SELECT, or the query fails or takes longer than `limit_s`.
    """
    for n_left in reversed(range(_MOST_QUERIES)):
        with database_errors("sql: it fails"), database() as connection:
            _require_select(connection, query)
            history = HistoryReader(connection, history_dir)
            interruptible(connection, history.refresh)
            lock_down(connection, history.paths)
            answer = _answer(connection, history, query, most_rows, limit_s, is_last=not n_left)
            if answer is not None:
                return answer
    raise AssertionError("the last try returns or raises")


def _answer(
    connection: DuckDBPyConnection,
    history: HistoryReader,
    query: str,
    most_rows: int,
    limit_s: float,
    *,
    is_last: bool,
) -> QueryAnswer | None:
    """Answer without the files that turn out damaged; None where files have gone, as their merged one is locked out."""
    import duckdb  # see `database`

    paths = history.paths
    try:
        columns, rows = interruptible(
            connection, lambda: history.table(query, most_rows=most_rows + 1), limit_s=limit_s
        )
    except duckdb.Error as error:
        if not is_last and not all(path.exists() for path in paths):
            return None
        raise HistoryError(f"sql: {_why(error)}") from error
    except HistoryError as error:
        raise HistoryError(f"sql: {error}") from error
    return QueryAnswer(
        columns=columns, rows=tuple(rows[:most_rows]), skipped=history.skipped, is_cut=len(rows) > most_rows
    )


def _why(error: Exception) -> str:
    """Say why a query failed; DuckDB gives Python no times with a zone where the package pytz is not installed."""
    if "pytz" in str(error):
        return "a column has a time zone (TIMESTAMP WITH TIME ZONE); write ::VARCHAR or ::TIMESTAMP behind it"
    return first_line(error)


def _require_select(connection: DuckDBPyConnection, query: str) -> None:
    import duckdb  # see `database`

    try:
        kinds = [statement.type for statement in connection.extract_statements(query)]
    except duckdb.Error as error:
        raise HistoryError(f"sql: {first_line(error)}") from error
    if kinds != [duckdb.StatementType.SELECT]:
        found = ", ".join(kind.name for kind in kinds) or "nothing"
        raise HistoryError(f"sql: expected a single SELECT, found {found}")
