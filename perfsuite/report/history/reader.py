"""Asks a history: SQL with bound parameters over all its files, right while runs are added and merged beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import HistoryError, meant
from perfsuite.records.history_place import HistoryPlace
from perfsuite.report.history.columns import COLUMNS
from perfsuite.report.history.database import (
    create_history,
    database,
    database_errors,
    first_line,
    interruptible,
    literal_path,
    with_own_types,
)
from perfsuite.report.history.folder import HistoryFiles, SkippedFile, all_files
from perfsuite.report.history.mirror import readable_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: So often a question is asked anew where files went or turned out damaged; a merge removes files once.
_MOST_TRIES = 4

#: Rows of a long answer that are in memory at a time.
_ROWS_AT_ONCE = 10_000


class HistoryReader:
    """A history that is open for questions.

    A file that is damaged, is of another schema, or is none of a history is left out and listed in `skipped`.
    """

    def __init__(self, connection: DuckDBPyConnection, history_dir: Path) -> None:
        self._connection = connection
        self._history_dir = history_dir
        self._damaged: dict[Path, SkippedFile] = {}
        self._left_out: list[SkippedFile] = []
        self._files = HistoryFiles(paths=())
        self._is_stale = True

    @property
    def skipped(self) -> tuple[SkippedFile, ...]:
        """The files and rows that are left out, as far as is known from the questions until now."""
        return (*self._files.skipped, *self._damaged.values(), *self._left_out)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are read."""
        return self._files.paths

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows that a query over ``history`` gives; values come in as parameters, never in its text.

        Raises HistoryError where the folder cannot be read, or the query failed for another reason than a file that
        could be left out.
        """
        with database_errors(f"{self._history_dir}: cannot be read"):
            return interruptible(self._connection, lambda: self.table(query, parameters)[1])

    def each_row(self, query: str, parameters: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of `rows`, of which only some are in memory; nothing else may be asked until all were taken.

        Raises HistoryError as `rows` does.
        """
        with database_errors(f"{self._history_dir}: cannot be read"):
            first = interruptible(self._connection, lambda: self.table(query, parameters, most_rows=_ROWS_AT_ONCE)[1])
            yield from first
            while more := self._connection.fetchmany(_ROWS_AT_ONCE):
                yield from more

    def leave_out(self, reason: str) -> None:
        """List what is left out of an answer, beside whole files."""
        self._left_out.append(SkippedFile(path=self._history_dir, reason=reason))

    def table(
        self, query: str, parameters: Sequence[object] = (), *, most_rows: int | None = None
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return the names of a query's columns and its rows, at most so many.

        It is asked anew where files went or turned out damaged.

        Raises duckdb.Error where the query failed for another reason than a file that could be left out.
        """
        import duckdb  # see `database`

        for n_left in reversed(range(_MOST_TRIES)):
            try:
                self.refresh()
                answer = self._connection.execute(query, list(parameters))
                columns = tuple(str(column[0]) for column in answer.description or ())
                return columns, answer.fetchall() if most_rows is None else answer.fetchmany(most_rows)
            except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
                raise  # a mistake in the query, whatever the files hold
            except duckdb.Error:
                if not n_left or not self._files_changed():
                    raise
        raise AssertionError("the last try returns or raises")

    def refresh(self) -> None:
        """Read the list of files where it is not known, or known to be out of date."""
        if not self._is_stale:
            return
        found = all_files(self._history_dir)
        found = with_own_types(self._connection, found, found.foreign)
        kept = tuple(path for path in found.paths if path not in self._damaged)
        self._files = replace(found, paths=kept)
        create_history(self._connection, self._files)
        self._is_stale = False

    def _files_changed(self) -> bool:
        """Say whether asking anew could help: files went, or there are some that cannot be read from end to end."""
        self._is_stale = True
        gone = [path for path in self._files.paths if not path.exists()]
        damaged = {path: why for path in self._files.paths if path not in gone and (why := self._damage(path))}
        for path, why in damaged.items():
            self._damaged[path] = SkippedFile(path=path, reason=f"is damaged ({why})")
        return bool(gone or damaged)

    def _damage(self, path: Path) -> str | None:
        import duckdb  # see `database`

        try:
            create_history(self._connection, HistoryFiles(paths=(path,)))
            self._connection.execute("SELECT sum(hash(COLUMNS(*))) FROM history").fetchall()
        except duckdb.Error as error:
            return first_line(error) if path.exists() else None
        return None


@contextmanager
def open_history(place: HistoryPlace) -> Iterator[HistoryReader]:
    """Open a history for questions; a folder that does not exist is an empty one."""
    folder = readable_folder(place)
    with database() as connection:
        yield HistoryReader(connection, folder)


def lock_down(connection: DuckDBPyConnection, paths: Sequence[Path]) -> None:
    """Let a database read these files and touch nothing else from now on."""
    allowed = [name for path in paths for name in dict.fromkeys((str(path), literal_path(path)))]
    connection.execute("SET allowed_paths = ?", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


#: Rows of an answer, and seconds that it may take, where nothing else is said.
MOST_ROWS, LIMIT_S = 100_000, 60.0

#: How DuckDB says that there is no such column or table.
_UNKNOWN = re.compile(r'(?:column "|Table with name )(\w+)(?:" not found| does not exist)')

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


def ask(place: HistoryPlace, query: str, *, most_rows: int = MOST_ROWS, limit_s: float = LIMIT_S) -> QueryAnswer:
    """Answer one SELECT over the view ``history``; no other file is read, none is written, and nothing is loaded.

    Raises HistoryError where the text is no single SELECT, or the query fails or takes longer than `limit_s`.
    """
    folder = readable_folder(place)
    for n_left in reversed(range(_MOST_QUERIES)):
        with database_errors("sql: it fails"), database() as connection:
            _require_select(connection, query)
            history = HistoryReader(connection, folder)
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
    unknown = _UNKNOWN.search(str(error))
    known = ("history", *(column.name for column in COLUMNS))
    return f"{first_line(error)}{meant(unknown[1], known) if unknown else ''}"


def _require_select(connection: DuckDBPyConnection, query: str) -> None:
    import duckdb  # see `database`

    try:
        kinds = [statement.type for statement in connection.extract_statements(query)]
    except duckdb.Error as error:
        raise HistoryError(f"sql: {first_line(error)}") from error
    if kinds != [duckdb.StatementType.SELECT]:
        found = ", ".join(kind.name for kind in kinds) or "nothing"
        raise HistoryError(f"sql: expected a single SELECT, found {found}")
