"""Runs beside each other."""

from __future__ import annotations

from perfsuite.report.page.charts.shown_run import in_order_of_time
from perfsuite.testing.run_files import synthetic_run


def test_runs_are_in_the_order_of_time_whatever_their_zones() -> None:
    """The moment counts rather than how it is written; what is no time comes last."""
    times = ["2026-03-01T02:00:00+00:00", "2026-03-01T03:00:00+02:00", "2026-03-01T01:30:00Z", "last night"]
    runs = [synthetic_run(n_cases=3, started_at=each) for each in times]
    assert [run.started_at for run in in_order_of_time(runs[::-1])] == [times[1], times[2], times[0], times[3]]
