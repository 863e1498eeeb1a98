"""Leaves out files whose columns have a history's names and other types, which would change those of all the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.report.history.columns import COLUMNS
from perfsuite.report.history.database import first_line, literal_path
from perfsuite.report.history.folder import HistoryFiles, SkippedFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
        rows = connection.read_parquet(literal_path(path))
    except duckdb.Error as error:
        return f"is damaged ({first_line(error)})" if path.exists() else None
    held = dict(zip(rows.columns, map(str, rows.types), strict=True))
    for column in COLUMNS:
        if column.name in _REQUIRED and column.name not in held:
            return f"lacks the column {column.name}"
        if held.get(column.name, column.sql_type) != column.sql_type:
            return f"its column {column.name} is {held[column.name]}, expected {column.sql_type}"
    return None
