"""Files with other columns are known by their types."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from perfsuite.report.history.column_types import with_own_types
from perfsuite.report.history.folder import HistoryFiles

WHOLE = "'r' AS run_id, now()::TIMESTAMP AS started_at, 'd' AS device, 'c' AS case_id, 'pass' AS outcome"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (WHOLE, None),
        (f"{WHOLE}, 1 AS other", None),
        (f"{WHOLE}, 1.5::DOUBLE AS measured_ns", "its column measured_ns is DOUBLE, expected BIGINT"),
        (f"{WHOLE}, ['a'] AS samples_ns", "its column samples_ns is VARCHAR[], expected BIGINT[]"),
        (WHOLE.partition(", ")[2], "lacks the column run_id"),
    ],
)
def test_a_file_is_taken_by_its_columns(tmp_path: Path, columns: str, reason: str | None) -> None:
    """Columns that are added or missing do no harm; other types do, and rows of no run."""
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns}) TO '{path}' (FORMAT parquet)")
        files = with_own_types(connection, HistoryFiles(paths=(path,)), (path,))
    assert [each.reason for each in files.skipped] == ([] if reason is None else [reason])
    assert files.paths == ((path,) if reason is None else ())
