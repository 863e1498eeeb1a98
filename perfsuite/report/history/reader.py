"""Asks a history: SQL with bound parameters over all its files, right while runs are added and merged beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.report.history.column_types import with_own_types
from perfsuite.report.history.database import create_history, database, database_errors, first_line, literal_path
from perfsuite.report.history.folder import HistoryFiles, SkippedFile, all_files
from perfsuite.report.history.interruptible import interruptible

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: So often a question is asked anew where files went or turned out damaged; a merge removes files once.
_MOST_TRIES = 4


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
def open_history(history_dir: Path) -> Iterator[HistoryReader]:
    """Open a history for questions; a folder that does not exist is an empty one."""
    with database() as connection:
        yield HistoryReader(connection, history_dir)


def lock_down(connection: DuckDBPyConnection, paths: Sequence[Path]) -> None:
    """Let a database read these files and touch nothing else from now on."""
    allowed = [name for path in paths for name in dict.fromkeys((str(path), literal_path(path)))]
    connection.execute("SET allowed_paths = ?", [allowed])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
