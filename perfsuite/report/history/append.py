"""Adds a run to a history: a file of its own, so that runs may end at the same time and none waits for another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import HistoryError
from perfsuite.report.history.columns import COLUMNS
from perfsuite.report.history.compaction import merge_loose
from perfsuite.report.history.database import database, database_errors, first_line
from perfsuite.report.history.folder import loose_files, loose_path
from perfsuite.report.history.parquet import write_rows
from perfsuite.report.history.rows import run_identity, run_rows, start_of
from perfsuite.report.run_file import RunFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: With more files of single runs than this, they are merged into one, which rewrites these alone.
MOST_LOOSE = 64


def append_run(run: RunFile, history_dir: Path) -> Path:
    """Add a run to a history; return its file, which a merge may since have taken in.

    The same run may be added again: it is the same file, or the same rows, which readers take once.

    Raises HistoryError where the run was interrupted, holds no case or a negative time, or cannot be written as rows,
    or the file cannot be written.
    """
    if run.is_interrupted:
        raise HistoryError("the run was interrupted, and is no run of the history; run again")
    if not run.judgements:
        raise HistoryError("the run holds no case; there is nothing to add to the history")
    _refuse_impossible(run)
    path = loose_path(history_dir, start_of(run), run_identity(run))
    with database_errors("the run cannot be added to the history"), database() as connection:
        fill_table(connection, run_rows(run))
        write_rows(connection, "run_rows", path)
    with suppress(HistoryError):  # the run is there; whether the folder can be listed is for whoever reads it
        if len(loose_files(history_dir)) > MOST_LOOSE:
            merge_loose(history_dir)
    return path


def _refuse_impossible(run: RunFile) -> None:
    for each in run.judgements:
        if each.measured_ns is not None and each.measured_ns < 0:
            raise HistoryError(f"{each.case_id}: measured_ns is {each.measured_ns}, expected 0 or more")


def fill_table(connection: DuckDBPyConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Create the table ``run_rows`` of JSON-able rows."""
    structure = json.dumps([{column.name: column.sql_type for column in COLUMNS}])
    try:
        text = json.dumps(rows, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError as error:
        raise HistoryError(f"the run cannot be written as rows ({first_line(error)})") from error
    connection.execute(
        "CREATE OR REPLACE TABLE run_rows AS SELECT each.* FROM (SELECT unnest(from_json(?, ?)) AS each)",
        [text, structure],
    )
