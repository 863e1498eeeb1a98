"""The questions that are asked most."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName
from perfsuite.records.trend_point import TrendPoint
from perfsuite.report.charts.picture import picture_svg
from perfsuite.report.history import append_run, cases_of, open_history, run_ids, runs_of, trend_of
from perfsuite.report.history.columns import MARK
from perfsuite.report.history.queries import trend_chart
from perfsuite.testing.run_files import synthetic_run

DECODE = "phase/smollm2-135m-q8_0/siso/decode"


@pytest.fixture
def history_dir(tmp_path: Path) -> Path:
    for day in range(1, 5):
        run = synthetic_run(n_cases=12, seed=day, started_at=f"2026-03-0{day}T02:00:00+00:00")
        append_run(replace(run, device="board" if day == 4 else "host"), tmp_path)
    return tmp_path


def test_runs_are_the_newest_first(history_dir: Path) -> None:
    history = open_history(history_dir)
    assert [run.started_at.day for run in runs_of(history)] == [4, 3, 2, 1]
    assert [run.started_at.day for run in runs_of(history, device="host", last=2)] == [3, 2]
    assert {run.n_cases for run in runs_of(history)} == {12}
    assert {run.run_id for run in runs_of(history)} == run_ids(history)
    failing = sum(each.outcome.fails for each in synthetic_run(n_cases=12, seed=4).judgements)
    history = open_history(history_dir)
    assert failing > 0
    assert runs_of(history)[0].n_failed == failing


def test_cases_are_found_by_a_part_or_a_pattern(history_dir: Path) -> None:
    """A part of an id in either case, or a pattern for all of it; quotes and percent signs are themselves."""
    history = open_history(history_dir)
    (on_board, on_host) = [each for each in cases_of(history, pattern="SISO/decode") if each.case_id == DECODE]
    assert (on_board.device, on_board.n_runs, on_host.device, on_host.n_runs) == ("board", 1, "host", 3)
    assert on_host.last_at.day == 3
    assert {each.case_id for each in cases_of(history, pattern="phase/*/decode")} == {DECODE}
    assert cases_of(history, pattern="' OR true --") == ()
    assert cases_of(history, pattern="%") == ()


def test_a_trend_is_in_the_order_of_time(history_dir: Path) -> None:
    """A case's runs by device, the newest of each where so many are asked for; asking for all cases gives the same."""
    history = open_history(history_dir)
    assert [(each.device, each.started_at.day) for each in trend_of(history, DECODE, last=2)] == [
        *(("board", 4), ("host", 2), ("host", 3))
    ]
    assert [each.started_at.day for each in trend_of(history, DECODE, device="host")] == [1, 2, 3]
    assert trend_of(history, "nothing") == ()
    history = open_history(history_dir)
    every = trend_of(history, last=2)
    points = [replace(each, samples_ns=()) for each in trend_of(history, DECODE, last=2)]
    assert [each for each in every if each.case_id == DECODE] == points
    assert len(every) == 12 * 3


def test_rows_that_a_later_version_wrote_are_left_out_and_counted(history_dir: Path) -> None:
    one = next((history_dir / "runs").glob("*.parquet"))
    rows = f"SELECT * REPLACE ('throttled' AS outcome, 'later' AS run_id) FROM read_parquet('{one}')"
    target = one.with_name("later.parquet")
    duckdb.execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet, KV_METADATA {{'{MARK}': 'yes'}})")
    history = open_history(history_dir)
    assert sum(each.n_runs for each in cases_of(history)) == 48
    assert history.skipped[-1].reason.startswith("12 rows of an unknown outcome")
    assert len(trend_of(history, DECODE)) == 4
    assert history.skipped[-1].reason.startswith("1 row of an unknown outcome")
    assert len(runs_of(history)) == 5


@pytest.fixture
def pool_dir(tmp_path: Path) -> Path:
    for day in range(1, 8):
        run = synthetic_run(n_cases=3, seed=day, started_at=f"2026-03-0{day}T02:00:00+00:00")
        board = BoardName(identity="ab"[day % 2] * 16, hostname=f"shelf-{day % 2}", is_linked=day < 7)
        append_run(replace(run, origin=replace(run.origin, board=board)), tmp_path)
    return tmp_path


def test_boards_of_a_kind_are_told_apart(pool_dir: Path) -> None:
    """Each board has its newest runs, and the machine its own; one is chosen by identity or host name."""
    history = open_history(pool_dir)
    points = trend_of(history, DECODE, last=2)
    assert [(each.started_at.day, (each.kept_by or "-")[0]) for each in points] == [
        *((3, "b"), (4, "a"), (5, "b"), (6, "a"), (7, "-"))
    ]
    assert runs_of(history)[1].board == BoardName(identity="a" * 16, hostname="shelf-0", is_linked=True)
    history = open_history(pool_dir)
    for name in ("a" * 16, "aaaa", "shelf-0"):
        assert [run.started_at.day for run in runs_of(history, board=name)] == [6, 4, 2]
        assert {each.n_runs for each in cases_of(history, board=name)} == {3}
        assert {each.started_at.day for each in trend_of(history, board=name)} == {2, 4, 6}
    assert runs_of(history, board="%") == runs_of(history, board="shelf") == ()


POINT = TrendPoint(
    run_id="r",
    started_at=datetime(2026, 3, 1, 2, tzinfo=timezone.utc),
    device="<host> $x$",
    case_id="phase/a/b/decode",
    outcome=Outcome.PASS,
    measured_ns=5_000_000,
    fingerprint_digest="aaaaaaaaaaaa",
)


def test_a_line_is_of_one_device_and_fingerprint() -> None:
    """Days count from the first run, times are in ms, and runs without a time are left out."""
    points = [replace(POINT, started_at=POINT.started_at + timedelta(days=day)) for day in range(3)]
    other = replace(points[2], fingerprint_digest="bbbbbbbbbbbb")
    chart = trend_chart((*points[:2], other, replace(points[2], measured_ns=None)))
    (panel,) = chart.panels
    assert [line.x for line in panel.lines] == [(0.0, 1.0), (2.0,)]
    assert panel.lines[0].y == (5.0, 5.0)
    assert "&lt;host&gt; $x$, aaaaaaaa" in picture_svg(chart)
    assert picture_svg(trend_chart(())).startswith("<svg")


def test_boards_of_a_kind_have_a_line_each() -> None:
    boards = [
        replace(POINT, board=BoardName(identity=identity * 16, hostname="shelf", is_linked=True)) for identity in "ab"
    ]
    chart = trend_chart(boards)
    assert [line.label.split(", ")[1] for line in chart.panels[0].lines] == ["board aaaaaaaa", "board bbbbbbbb"]
    assert "a line each device, board and fingerprint" in chart.note
    assert "board" not in trend_chart(boards[:1]).panels[0].lines[0].label
