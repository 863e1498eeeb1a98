"""Phases from run to run."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.report.page.charts.runs import in_order_of_time, run_label, runs_figure
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_run

from ..conftest import page_run


def test_runs_are_in_the_order_of_time_whatever_their_zones() -> None:
    """The moment counts rather than how it is written; labels are month, day, hour and minute."""
    times = ["2026-03-01T02:00:00+00:00", "2026-03-01T03:00:00+02:00", "2026-03-01T01:30:00Z", "last night"]
    runs = [synthetic_run(n_cases=3, started_at=each) for each in times]
    assert [run.started_at for run in in_order_of_time(runs[::-1])] == [times[1], times[2], times[0], times[3]]
    assert [run_label(each) for each in in_order_of_time([at(4, 1.0), at(2, 1.0)])] == ["02-02 02:00", "02-04 02:00"]


def at(day: int, ratio: float) -> RunFile:
    """A run of a day in which every case took the ratio of its usual time."""
    run = synthetic_run(n_cases=7, started_at=f"2026-02-{day:02}T02:00:00+00:00")
    slower = [replace(each, measured_ns=round((each.measured_ns or 0) * ratio)) for each in run.judgements]
    return replace(run, judgements=tuple(slower))


def test_changes_are_against_the_oldest_run() -> None:
    """Whichever is reported; labels of one minute are numbered, and a run alone has no course."""
    (figure,) = runs_figure(at(3, 1.1), [page_run(at(5, 1.2)), page_run(at(1, 1.0))])
    changes = [each["change"] for each in figure.spec["data"]["values"] if each["phase"] == "prefill"]
    assert [round(each) for each in changes] == [0, 10, 20]
    assert figure.spec["encoding"]["x"]["scale"]["domain"] == ["02-01 02:00", "this run", "02-05 02:00"]
    assert "prefill +20.0 %" in figure.summary
    (figure,) = runs_figure(at(3, 1.0), [page_run(at(1, 1.0)), page_run(at(1, 1.1))])
    assert figure.spec["encoding"]["x"]["scale"]["domain"] == ["02-01 02:00", "02-01 02:00 (2)", "this run"]
    assert not list(runs_figure(at(1, 1.0), []))
    assert not list(runs_figure(at(1, 1.0), [page_run(synthetic_run(n_cases=0))]))
