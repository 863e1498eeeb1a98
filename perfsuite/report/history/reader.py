"""Asks a history: SQL with bound parameters over all its files, right while runs are added and merged beside it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import HistoryError, meant
from perfsuite.records.history_place import HistoryPlace
from perfsuite.report.history.columns import COLUMNS, MARK
from perfsuite.report.history.database import (
    create_history,
    database,
    database_errors,
    first_line,
    interruptible,
    literal_path,
)
from perfsuite.report.history.files import SkippedFile, by_columns
from perfsuite.report.history.store import HistoryStore, store_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: So often a question is asked where files went meanwhile or turned out damaged; a merge removes files once.
_MOST_TRIES = 4

#: Rows of a long answer that are in memory at a time.
_ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query's answer: the names of its columns, its first rows, and the connection that has the others."""

    connection: DuckDBPyConnection
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class HistoryReader:
    """Answers questions to a history.

    A file that is damaged, is of another schema, or is none of a history is left out and listed in `skipped`.
    Where `folders` are named, files of others are none of its own.
    """

    def __init__(self, store: HistoryStore, *, folders: Collection[Path] | None = None) -> None:
        self._store, self._folders = store, folders
        self._groups: Mapping[str, Sequence[Path]] | None = None
        self._foreign: tuple[SkippedFile, ...] = ()
        self._damaged: dict[Path, SkippedFile] = {}
        self._left_out: list[SkippedFile] = []

    @property
    def skipped(self) -> tuple[SkippedFile, ...]:
        """The files and rows that are left out, as far as is known from the questions until now."""
        return (*self._foreign, *self._damaged.values(), *self._left_out)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that the last question read, or that the next one will."""
        return tuple(path for group in self._listed().values() for path in group)

    def rows(self, query: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows that a query over ``history`` gives; values come in as parameters, never in its text.

        Raises HistoryError where the folder cannot be read, or the query failed for another reason than a file that
        could be left out.
        """
        return list(self.each_row(query, parameters))

    def each_row(self, query: str, parameters: Mapping[str, object] | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of `rows`, of which only some are in memory; raises HistoryError as that does."""
        with database_errors(f"{self._store.root}: cannot be read"), ExitStack() as stack:
            asked = self.ask(stack, query, parameters)
            yield from asked.rows
            while more := asked.connection.fetchmany(_ROWS_AT_ONCE):
                yield from more

    def leave_out(self, reason: str) -> None:
        """List what is left out of an answer, beside whole files."""
        self._left_out.append(SkippedFile(path=self._store.root, reason=reason))

    def ask(
        self,
        stack: ExitStack,
        query: str,
        parameters: Mapping[str, object] | None = None,
        *,
        most_rows: int = _ROWS_AT_ONCE,
        limit_s: float | None = None,
        writes: Path | None = None,
    ) -> Asked:
        """Ask in a database of its own, which reads the history's files and touches no others but the one to write.

        It is asked anew where files went or turned out damaged.

        Raises duckdb.Error where the query failed for another reason, and HistoryError where it takes too long.
        """
        import duckdb  # see `database`

        for n_left in reversed(range(_MOST_TRIES)):
            connection = stack.enter_context(database())
            answer = partial(self._answer, connection, query, parameters, most_rows, writes)
            try:
                return interruptible(connection, answer, limit_s=limit_s)
            except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
                raise  # a mistake in the query, whatever the files hold
            except duckdb.Error:
                if not n_left or not self._has_changed(connection):
                    raise
        raise AssertionError("the last try returns or raises")

    def _answer(
        self,
        connection: DuckDBPyConnection,
        query: str,
        parameters: Mapping[str, object] | None,
        most_rows: int,
        writes: Path | None,
    ) -> Asked:
        lock_down(connection, [*self.paths, *([writes] if writes else ())])
        create_history(connection, self._listed().values())
        answer = connection.execute(query, parameters or None)
        columns = tuple(str(column[0]) for column in answer.description or ())
        return Asked(connection=connection, columns=columns, rows=answer.fetchmany(most_rows))

    def _listed(self) -> Mapping[str, Sequence[Path]]:
        """Return the files by their columns."""
        if self._groups is None:
            wanted = (path for path in self._store.paths() if path not in self._damaged)
            folders = self._folders
            self._groups, self._foreign = by_columns(path for path in wanted if not folders or path.parent in folders)
        return self._groups

    def _has_changed(self, connection: DuckDBPyConnection) -> bool:
        """Say whether asking anew could help: files went, or there are some that cannot be read from end to end."""
        gone = [path for path in self.paths if not path.exists()]
        found = {
            path: why
            for mark, group in self._listed().items()
            for path in group
            if path not in gone and (why := _damage(connection, path, mark))
        }
        self._damaged |= {
            path: SkippedFile(path=path, reason=f"is damaged ({why})") for path, why in found.items() if path.exists()
        }
        self._groups = None
        return bool(gone or found)


def _damage(connection: DuckDBPyConnection, path: Path, mark: str) -> str | None:
    import duckdb  # see `database`

    try:
        create_history(connection, [[path]])
        columns = connection.execute("SELECT * FROM files_0 LIMIT 0").description or ()
        connection.execute("SELECT sum(hash(COLUMNS(*))) FROM stored").fetchall()
    except duckdb.Error as error:
        return first_line(error)
    is_whole = mark != MARK or [each[0] for each in columns] == [each.name for each in COLUMNS]
    return None if is_whole else "it has not the columns that it says it has"


def open_history(place: HistoryPlace) -> HistoryReader:
    """Open a history for questions; a folder that does not exist is an empty one."""
    return HistoryReader(store_of(place))


def lock_down(connection: DuckDBPyConnection, paths: Sequence[Path]) -> None:
    """Let a database touch these files and nothing else from now on."""
    allowed = [name for path in paths for name in dict.fromkeys((str(path), literal_path(path)))]
    connection.execute("SET allowed_paths = ?", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


#: Rows of an answer, and seconds that it may take, where nothing else is said.
MOST_ROWS, LIMIT_S = 100_000, 60.0

#: How DuckDB says that there is no such column or table.
_UNKNOWN = re.compile(r'(?:column "|Table with name )(\w+)(?:" not found| does not exist)')


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """What a query gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: Whether the query gives more rows than these.
    is_cut: bool


def answer_query(
    history: HistoryReader, query: str, *, most_rows: int = MOST_ROWS, limit_s: float = LIMIT_S
) -> QueryAnswer:
    """Answer one SELECT over the view ``history``; no other file is read, none is written, and nothing is loaded.

    Raises HistoryError where the text is no single SELECT, or the query fails or takes longer than `limit_s`.
    """
    import duckdb  # see `database`

    _ = history.paths  # whether they can be listed is no fault of the query
    try:
        _require_select(query)
        with ExitStack() as stack:
            asked = history.ask(stack, query, most_rows=most_rows + 1, limit_s=limit_s)
    except duckdb.Error as error:
        raise HistoryError(f"sql: {_why(error)}") from error
    except (HistoryError, MemoryError) as error:
        raise HistoryError(f"sql: {error or 'it takes more memory than there is'}") from error
    return QueryAnswer(columns=asked.columns, rows=tuple(asked.rows[:most_rows]), is_cut=len(asked.rows) > most_rows)


def _why(error: Exception) -> str:
    """Say why a query failed; DuckDB gives Python no times with a zone where the package pytz is not installed."""
    if "pytz" in str(error):
        return "a column has a time zone (TIMESTAMP WITH TIME ZONE); write ::VARCHAR or ::TIMESTAMP behind it"
    unknown = _UNKNOWN.search(str(error))
    known = ("history", *(column.name for column in COLUMNS))
    return f"{first_line(error)}{meant(unknown[1], known) if unknown else ''}"


def _require_select(query: str) -> None:
    import duckdb  # see `database`

    kinds = [statement.type for statement in duckdb.extract_statements(query)]
    if kinds != [duckdb.StatementType.SELECT]:
        found = ", ".join(kind.name for kind in kinds) or "nothing"
        raise HistoryError(f"expected a single SELECT, found {found}")
