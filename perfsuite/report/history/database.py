"""DuckDB as the history uses it: in memory, within limits, without the network, over named files.

Runs DuckDB's work so that Ctrl-C, a request to terminate and a limit of time end it.

Python handles signals in its main thread alone, and not while that is inside DuckDB. So the work is done in a thread
beside it, and the main thread waits.
"""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import HistoryError, require
from perfsuite.records.whole_file import write_whole_chunks
from perfsuite.report.history.columns import COLUMNS, MARK
from perfsuite.report.history.folder import HistoryFiles, SkippedFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


#: How long work that was interrupted is waited for: a function of SQL hears nothing until one long text is done.
_END_LIMIT_S = 0.5
#: A signal that another thread has taken is seen after so long at the latest.
_POLL_S = 0.1

_Answer = TypeVar("_Answer")


def interruptible(
    connection: DuckDBPyConnection, work: Callable[[], _Answer], *, limit_s: float | None = None
) -> _Answer:
    """Do the work, and return or raise what it does; whatever ends the wait interrupts the work.

    Raises HistoryError where the work takes longer than `limit_s`.
    """
    answers: list[_Answer] = []
    errors: list[BaseException] = []
    is_done = Event()  # a signal during Thread.join makes some Pythons take the thread for ended

    def do() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            is_done.set()

    Thread(target=do, name="perfsuite-history", daemon=True).start()
    try:
        _wait(is_done, limit_s)
    finally:
        _end(is_done, connection)
    if errors:
        raise errors[0]
    return answers[0]


def _wait(is_done: Event, limit_s: float | None) -> None:
    end_s = time.monotonic() + limit_s if limit_s is not None else math.inf
    while not is_done.wait(min(_POLL_S, max(end_s - time.monotonic(), 0.0))):
        if time.monotonic() >= end_s:
            raise HistoryError(f"takes longer than {limit_s:g} s, and was ended")


def _end(is_done: Event, connection: DuckDBPyConnection) -> None:
    """Interrupt the work, which may be between two queries, until it has ended."""
    end_s = time.monotonic() + _END_LIMIT_S
    while not is_done.is_set() and time.monotonic() < end_s:
        connection.interrupt()
        is_done.wait(_POLL_S)


_MEMORY_LIMIT = "256MB"
_N_THREADS = 2
#: The most that is written beside memory, for sorting.
_SPILL_LIMIT = "8GB"

#: Takes each case of a run once.
ONCE = "QUALIFY row_number() OVER (PARTITION BY case_id, run_id ORDER BY schema_version DESC) = 1"

#: What DuckDB takes for a pattern of file names.
_PATTERN = re.compile(r"[*?\[]")


@contextmanager
def database() -> Iterator[DuckDBPyConnection]:
    """Open a database in memory that installs and loads no extensions, and spills into a folder that goes with it."""
    require("duckdb", "the history", HistoryError)
    import duckdb  # what does not ask the history is not to wait for it

    with history_work() as spill:
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "memory_limit": _MEMORY_LIMIT,
            "threads": _N_THREADS,
            "temp_directory": str(spill),
            "max_temp_directory_size": _SPILL_LIMIT,
            "preserve_insertion_order": False,
        }
        connection = duckdb.connect(config=config)
        try:
            yield connection
        finally:
            with suppress(duckdb.Error):  # where its work cannot be interrupted, both go with the process
                connection.close()


@contextmanager
def history_work() -> Iterator[Path]:
    """Give a folder for what is not finished; raises HistoryError where none can be made."""
    with ExitStack() as stack:
        try:
            work = stack.enter_context(work_folder())
        except OSError as error:
            told = f"{error.filename or tempfile.gettempdir()}: cannot be written ({error.strerror})"
            raise HistoryError(f"{told}; the history needs it to work in") from error
        yield work


@contextmanager
def database_errors(what: str) -> Iterator[None]:
    """Turn what DuckDB raises into a `HistoryError`: what could not be done, and the first line of why."""
    import duckdb  # see `database`

    try:
        yield
    except duckdb.Error as error:
        raise HistoryError(f"{what} ({first_line(error)})") from error
    except MemoryError as error:
        raise HistoryError(f"{what} (it takes more memory than there is)") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, or its type's name where it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def literal_path(path: Path) -> str:
    """Return a path that DuckDB takes for itself, and not for a pattern."""
    return _PATTERN.sub(r"[\g<0>]", str(path))


def quoted(text: str) -> str:
    """Return a text as a literal of SQL, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def create_history(connection: DuckDBPyConnection, files: HistoryFiles) -> None:
    """Create the views ``stored`` and ``history`` over files; ``history`` has each run's case once.

    While runs are being merged, and after a merge that was broken off, more than one file holds the same rows.
    """
    if files.paths:
        # to unite columns by name, all files are opened twice
        names = [literal_path(path) for path in files.paths]
        rows = _read_files(connection, names, union_by_name=not files.is_uniform)
        rows.create_view("files")
        chosen = f"{', '.join(_chosen(column.name, column.sql_type, rows.columns) for column in COLUMNS)} FROM files"
    else:
        chosen = f"{', '.join(_chosen(column.name, column.sql_type, ()) for column in COLUMNS)} WHERE false"
    connection.execute(f"CREATE OR REPLACE VIEW stored AS SELECT {chosen}")
    connection.execute(f"CREATE OR REPLACE VIEW history AS FROM stored {ONCE}")


def _read_files(connection: DuckDBPyConnection, names: list[str], *, union_by_name: bool = False) -> DuckDBPyRelation:
    """Return the rows of files; `duckdb.Error` also for names of columns that are no text, where it raises others."""
    import duckdb  # see `database`

    try:
        return connection.read_parquet(names, union_by_name=union_by_name)
    except (RuntimeError, UnicodeDecodeError) as error:
        if isinstance(error, duckdb.Error):
            raise
        raise duckdb.InvalidInputException(f"it cannot be read as text: {first_line(error)}") from error


def _chosen(name: str, sql_type: str, present: Sequence[str]) -> str:
    """Return a column, which files of an older version may lack."""
    return name if name in present else f"CAST(NULL AS {sql_type}) AS {name}"


#: Rows are sorted by case, so that a group of so many holds few cases and the others need not be read.
ROWS_A_GROUP = 8192

_CHUNK_BYTES = 1 << 22


def write_rows(connection: DuckDBPyConnection, table: str, path: Path) -> None:
    """Write a table or view into a file, sorted by case and time.

    Raises HistoryError where the file cannot be written; what was there before stays.
    """
    with history_work() as work:
        made = work / "rows.parquet"
        connection.execute(
            f"COPY (FROM {table} ORDER BY case_id, started_at, run_id) TO {quoted(str(made))} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS_A_GROUP}, KV_METADATA {{{quoted(MARK)}: 'yes'}})"
        )
        write_whole_chunks(path, _chunks(made), HistoryError)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


#: Without these a row is of no run and no case.
_REQUIRED = ("run_id", "started_at", "device", "case_id", "outcome")


def with_own_types(connection: DuckDBPyConnection, files: HistoryFiles, suspects: Iterable[Path]) -> HistoryFiles:
    """Return the files without those of the suspects that lack a column that has to be there, or have another type."""
    reasons = {path: reason for path in suspects if (reason := _difference(connection, path)) is not None}
    return replace(
        files,
        paths=tuple(path for path in files.paths if path not in reasons),
        skipped=(*files.skipped, *(SkippedFile(path=path, reason=reason) for path, reason in reasons.items())),
    )


def _difference(connection: DuckDBPyConnection, path: Path) -> str | None:
    """Say what is wrong with a file's columns; None where nothing is, or the file has gone."""
    import duckdb  # see `database`

    try:
        rows = _read_files(connection, [literal_path(path)])
    except duckdb.Error as error:
        return f"is damaged ({first_line(error)})" if path.exists() else None
    held = dict(zip(rows.columns, map(str, rows.types), strict=True))
    for column in COLUMNS:
        if column.name in _REQUIRED and column.name not in held:
            return f"lacks the column {column.name}"
        if held.get(column.name, column.sql_type) != column.sql_type:
            return f"its column {column.name} is {held[column.name]}, expected {column.sql_type}"
    return None
