"""Writes rows of the history into a Parquet file, whole or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import HistoryError
from perfsuite.records.whole_file import write_whole_chunks
from perfsuite.report.history.columns import MARK
from perfsuite.report.history.database import WORK_PREFIX, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Rows are sorted by case, so that a group of so many holds few cases and the others need not be read.
ROWS_A_GROUP = 8192

_CHUNK_BYTES = 1 << 22


def write_rows(connection: DuckDBPyConnection, table: str, path: Path) -> None:
    """Write a table or view into a file, sorted by case and time.

    Raises HistoryError where the file cannot be written; what was there before stays.
    """
    with tempfile.TemporaryDirectory(prefix=WORK_PREFIX) as folder:
        made = Path(folder) / "rows.parquet"
        connection.execute(
            f"COPY (FROM {table} ORDER BY case_id, started_at, run_id) TO {quoted(str(made))} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS_A_GROUP}, KV_METADATA {{{quoted(MARK)}: 'yes'}})"
        )
        write_whole_chunks(path, _chunks(made), HistoryError)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
