"""What ``perfsuite history`` prints."""

from __future__ import annotations

from perfsuite.cli.history_tables import commit_text, spark_line
from perfsuite.records.run_origin import Commit


def test_bars_stand_between_least_and_most() -> None:
    """The least is the lowest bar, the most the highest, and what was not measured a gap."""
    assert spark_line([1_000_000, None, 2_000_000]) == "▁ █  1.00 ms to 2.00 ms"
    assert spark_line([5, 5]) == "▁▁  5.00 ns to 5.00 ns"
    assert spark_line([None]) == ""


def test_a_commit_that_was_not_clean_has_a_plus() -> None:
    """The beginning of its id, and whether files differed from it."""
    assert commit_text(Commit(sha="0123456789abcdef")) == "0123456789"
    assert commit_text(Commit(sha="0123456789abcdef", is_dirty=True)) == "0123456789+"
    assert commit_text(None) is None
