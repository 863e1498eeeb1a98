"""The columns are those of the documentation."""

from __future__ import annotations

from pathlib import Path

from perfsuite.report.history.columns import COLUMNS
from perfsuite.report.history.rows import run_rows
from perfsuite.testing.run_files import synthetic_run

PAGE = Path(__file__).resolve().parents[3] / "docs" / "history.md"


def test_the_documentation_has_every_column() -> None:
    """docs/history.md lists the columns with their types and meanings, in order."""
    listed = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert listed == [f"| `{each.name}` | {each.sql_type} | {each.meaning} |" for each in COLUMNS]


def test_a_row_has_every_column_and_no_other() -> None:
    """What a run becomes has exactly the columns, by name."""
    row, *_ = run_rows(synthetic_run(n_cases=8))
    assert sorted(row) == sorted(each.name for each in COLUMNS)
