"""A case's trend as a chart."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName
from perfsuite.records.trend_point import TrendPoint
from perfsuite.report.charts.picture import picture_svg
from perfsuite.report.history.chart import trend_chart

POINT = TrendPoint(
    run_id="r",
    started_at=datetime(2026, 3, 1, 2, tzinfo=timezone.utc),
    device="<host> $x$",
    case_id="phase/a/b/decode",
    outcome=Outcome.PASS,
    measured_ns=5_000_000,
    samples_ns=(),
    expected_ns=None,
    baseline_ns=None,
    sentinels_ns={},
    fingerprint=None,
    fingerprint_digest="aaaaaaaaaaaa",
    commit=None,
    engine=None,
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
