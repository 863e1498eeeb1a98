"""Tables of facts."""

from __future__ import annotations

from perfsuite.report.page.fact_table import FactTable, compared_row, fact_row, filled


def test_runs_that_do_not_agree_are_marked() -> None:
    """A row differs where the runs that have a value have different ones; a missing value is a dash."""
    assert compared_row("threads", ["2", "4"]).differs
    assert not compared_row("threads", ["2", "2"]).differs
    missing = compared_row("threads", ["2", None])
    assert (missing.differs, missing.cells) == (False, ("2", "-"))


def test_a_table_without_rows_is_left_out() -> None:
    """Only tables that tell something are kept."""
    empty = FactTable(title="a", note="", headings=("",), rows=())
    full = FactTable(title="b", note="", headings=("",), rows=(fact_row("x", "1"),))
    assert filled([empty, full]) == (full,)
