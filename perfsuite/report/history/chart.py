"""A case's trend as a chart: a line a device, board and fingerprint over days."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from perfsuite.records.chart import Axis, Line, XYChart, XYPanel
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.units import NS_PER_S, format_count

_MS_PER_S = 1000
_S_PER_DAY = 86_400.0
_DIGEST_LENGTH = 8


def trend_chart(points: Sequence[TrendPoint]) -> XYChart:
    """Draw one case's times over its runs; a line begins anew where the fingerprint changes, or the board."""
    known = [point for point in points if point.measured_ns]
    names_boards = has_boards(known)
    began_at = min((point.started_at for point in known), default=None)
    name = partial(_label, names_board=names_boards)
    named = sorted(known, key=lambda point: (name(point), point.started_at))
    lines = tuple(
        Line(
            label=label,
            x=tuple((point.started_at - began_at).total_seconds() / _S_PER_DAY for point in nights) if began_at else (),
            y=tuple((point.measured_ns or 0) * _MS_PER_S / NS_PER_S for point in nights),
        )
        for label, nights in ((label, list(each)) for label, each in groupby(named, key=name))
    )
    since = f" since {began_at:%Y-%m-%d} (UTC)" if began_at else ""
    panel = XYPanel(
        title=points[0].case_id if points else "",
        x_axis=Axis(label=f"days{since}"),
        y_axis=Axis(label="time of a run (ms)"),
        lines=lines,
    )
    parted = "device, board and fingerprint" if names_boards else "device and fingerprint"
    note = f"Medians of {format_count(len(known), 'run')}; a line each {parted}."
    return XYChart(title="One case over its runs", note=note, panels=(panel,))


def _label(point: TrendPoint, *, names_board: bool) -> str:
    board = f", board {point.kept_by[:_DIGEST_LENGTH]}" if names_board and point.kept_by else ""
    return f"{point.device}{board}, {(point.fingerprint_digest or 'no fingerprint')[:_DIGEST_LENGTH]}"
