"""Phases from run to run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.run_file import RunFile
from perfsuite.report.page.charts.runs import in_order_of_time, runs_figure
from perfsuite.testing.run_files import synthetic_run

from ..conftest import page_run
from ..svg_pieces import pieces, points, tips


def test_runs_are_in_the_order_of_time_whatever_their_zones() -> None:
    """The moment counts rather than how it is written."""
    times = ["2026-03-01T02:00:00+00:00", "2026-03-01T03:00:00+02:00", "2026-03-01T01:30:00Z", "last night"]
    runs = [synthetic_run(n_cases=3, started_at=each) for each in times]
    assert [run.started_at for run in in_order_of_time(runs[::-1])] == [times[1], times[2], times[0], times[3]]


def at(day: int, ratio: float) -> RunFile:
    """A run of a day in which every case took the ratio of its usual time."""
    run = synthetic_run(n_cases=7, started_at=f"2026-02-{day:02}T02:00:00+00:00")
    slower = [replace(each, measured_ns=round((each.measured_ns or 0) * ratio)) for each in run.judgements]
    return replace(run, judgements=tuple(slower))


def test_changes_are_against_the_oldest_run() -> None:
    (figure,) = runs_figure(at(3, 1.1), [page_run(at(5, 1.2)), page_run(at(1, 1.0))])
    changes = [each.rpartition("(")[2] for each in tips(figure.drawing) if each.startswith("prefill,")]
    assert changes == ["+0.0 %)", "+10.0 %)", "+20.0 %)"]
    assert {"02-01 02:00", "this run", "02-05 02:00"} <= {each.text for each in pieces(figure.drawing, "text")}
    assert "prefill +20.0 %" in figure.summary
    heights = [y for _, y in points(pieces(figure.drawing, "path")[0])]
    assert heights == sorted(heights)
    assert not list(runs_figure(at(1, 1.0), []))
    assert not list(runs_figure(at(1, 1.0), [page_run(synthetic_run(n_cases=0))]))
