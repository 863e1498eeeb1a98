"""One small chart of each kind."""

from __future__ import annotations

from perfsuite.records.chart import (
    Axis,
    BarLayer,
    BarPanel,
    Chart,
    HeatMap,
    HeatPanel,
    Line,
    LineChart,
    LinePanel,
    Scale,
    StackedBars,
)

LINES = LineChart(
    title="Twice is more",
    note="of three",
    n_columns=2,
    panels=tuple(
        LinePanel(
            title=title,
            x_axis=Axis(label="size", unit="tokens", scale=Scale.LOG2),
            y_axis=Axis(label="time", unit="ms", least=0.0),
            lines=(
                Line(label="once", x=(64.0, 128.0, 256.0), y=(1.0, 2.0, 4.0)),
                Line(label="twice", x=(64.0, 128.0, 256.0), y=(2.0, 4.0, 8.0)),
                Line(label="mean", x=(64.0, 256.0), y=(3.5, 3.5), is_reference=True),
            ),
        )
        for title in ("left", "right", "below")
    ),
)
HEAT_MAP = HeatMap(
    title="Large at the corner",
    note="of four",
    n_columns=1,
    x_axis=Axis(label="width", unit="m"),
    y_axis=Axis(label="height", unit="m"),
    colour_axis=Axis(label="area", unit="m²"),
    centre=1.0,
    panels=(
        HeatPanel(
            title="areas",
            x=(0.5, 4.0),
            y=(0.5, 4.0),
            values=((0.25, 2.0), (2.0, 16.0)),
            boundary=Line(label="equal", x=(0.5, 2.0), y=(2.0, 0.5)),
        ),
    ),
)
BARS = StackedBars(
    title="Half of it",
    note="of two",
    n_columns=1,
    x_axis=Axis(label="size", unit="tokens"),
    height_axis=Axis(label="operations", unit="TOPs"),
    categories=("small", "large"),
    panels=(
        BarPanel(
            title="parts", layers=(BarLayer(label="a", heights=(1.0, 300.0)), BarLayer(label="b", heights=(3.0, 100.0)))
        ),
    ),
)
CHARTS: tuple[Chart, ...] = (LINES, HEAT_MAP, BARS)
