"""DuckDB as the history uses it: in memory, within limits, without the network, over named files."""

from __future__ import annotations

import math
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import HistoryError, require
from perfsuite.report.history.columns import COLUMNS, MARK

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
    """Do the work, and return or raise what it does; Ctrl-C, a request to terminate and the limit end it.

    Python handles signals in its main thread alone, and not while that is inside DuckDB. So the work is done in a
    thread beside it, and the main thread waits.

    Raises HistoryError where the work takes longer than `limit_s`.
    """
    done: Future[_Answer] = Future()

    def do() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=do, name="perfsuite-history", daemon=True).start()
    end_s = time.monotonic() + (math.inf if limit_s is None else limit_s)
    try:
        while not _is_done(done):
            if time.monotonic() >= end_s:
                raise HistoryError(f"takes longer than {limit_s:g} s, and was ended")
    finally:
        end_s = time.monotonic() + _END_LIMIT_S
        while not done.done() and time.monotonic() < end_s:
            connection.interrupt()  # again, as it may have been between two queries
            _is_done(done)
    return done.result()


def _is_done(done: Future[_Answer]) -> bool:
    return bool(wait([done], timeout=_POLL_S).done)


_MEMORY_LIMIT = "256MB"
_N_THREADS = 2
#: The most that is written beside memory, for sorting.
_SPILL_LIMIT = "8GB"

#: Takes each case of a run once.
ONCE = "QUALIFY row_number() OVER (PARTITION BY case_id, run_id ORDER BY schema_version DESC) = 1"

#: Without these a row is of no run and no case.
_REQUIRED = ("run_id", "started_at", "device", "case_id", "outcome")

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
            connection.execute("SET enable_progress_bar = false")  # which goes to standard output
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


def create_history(connection: DuckDBPyConnection, groups: Iterable[Sequence[Path]]) -> None:
    """Create the views ``stored`` and ``history`` over files, of which those of a group have the same columns.

    ``history`` has each run's case once: while files are merged, more than one holds the same rows. DuckDB could unite
    all columns by itself, but opens every file twice for that.
    """
    import duckdb  # see `database`

    selected = [f"{_columns(())} WHERE false"]
    for number, paths in enumerate(groups):
        rows = _read_files(connection, [literal_path(path) for path in paths])
        if lacking := [name for name in _REQUIRED if name not in rows.columns]:
            raise duckdb.InvalidInputException(f"it lacks the column {lacking[0]}")
        rows.create_view(f"files_{number}")
        selected.append(f"{_columns(rows.columns)} FROM files_{number}")
    try:
        connection.execute(f"CREATE OR REPLACE VIEW stored AS SELECT {' UNION ALL SELECT '.join(selected)}")
        connection.execute(f"CREATE OR REPLACE VIEW history AS FROM stored {ONCE}")
    except duckdb.BinderException as error:  # for a query's own mistake it must not be taken
        raise duckdb.InvalidInputException(first_line(error)) from error


def _columns(present: Sequence[str]) -> str:
    """Return every column in its own type; files of an older version may lack some."""
    chosen = ((each.name if each.name in present else "NULL", each) for each in COLUMNS)
    return ", ".join(f"CAST({value} AS {each.sql_type}) AS {each.name}" for value, each in chosen)


def _read_files(connection: DuckDBPyConnection, names: list[str]) -> DuckDBPyRelation:
    """Return the rows of files; `duckdb.Error` also for names of columns that are no text, where it raises others."""
    import duckdb  # see `database`

    try:
        return connection.read_parquet(names)
    except (RuntimeError, UnicodeDecodeError) as error:
        if isinstance(error, duckdb.Error):
            raise
        raise duckdb.InvalidInputException(f"it cannot be read as text: {first_line(error)}") from error


#: Rows are sorted by case, so that a group of so many holds few cases and the others need not be read.
_ROWS_A_GROUP = 8192


def copy_statement(table: str, path: Path) -> str:
    """Return what writes a table or view into a file, sorted by case and time."""
    return (
        f"COPY (FROM {table} ORDER BY case_id, started_at, run_id) TO {quoted(str(path))} (FORMAT parquet, "
        f"COMPRESSION zstd, ROW_GROUP_SIZE {_ROWS_A_GROUP}, USE_TMP_FILE false, KV_METADATA {{{quoted(MARK)}: 'yes'}})"
    )
