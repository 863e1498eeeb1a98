"""What ``perfsuite history`` prints."""

from __future__ import annotations

from perfsuite.cli.history_tables import spark_line


def test_bars_stand_between_least_and_most() -> None:
    """The least is the lowest bar, the most the highest, and what was not measured a gap."""
    assert spark_line([1_000_000, None, 2_000_000]) == "▁ █  1.00 ms to 2.00 ms"
    assert spark_line([5, 5]) == "▁▁  5.00 ns to 5.00 ns"
    assert spark_line([None]) == ""
