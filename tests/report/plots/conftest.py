"""One small chart of each kind."""

from __future__ import annotations

from perfsuite.records.chart import (
    Area,
    Axis,
    BarLayer,
    BarPanel,
    Chart,
    HeatMap,
    HeatPanel,
    Line,
    LineChart,
    LinePanel,
    PointGroup,
    PotentialRegion,
    Ridge,
    RoofLine,
    RooflineChart,
    RooflinePanel,
    RoofRole,
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
ROOFLINE = RooflineChart(
    title="Below the roof",
    note="of a device",
    n_columns=1,
    x_axis=Axis(label="intensity", unit="FLOP/byte", scale=Scale.LOG10, least=1.0, most=100.0),
    y_axis=Axis(label="rate", unit="GFLOP/s", scale=Scale.LOG10, least=1.0, most=200.0),
    shade_axis=None,
    panels=(
        RooflinePanel(
            title="host",
            roofs=(
                RoofLine(label="memory", x=(1.0, 10.0, 100.0), y=(10.0, 100.0, 100.0)),
                RoofLine(label="cache", x=(1.0, 4.0), y=(25.0, 100.0), role=RoofRole.SIDE),
            ),
            ridges=(Ridge(label="ridge 10", x=10.0, y=100.0),),
            region=PotentialRegion(
                memory=Area(label="slope", x=(1.0, 10.0), low_y=(1.0, 1.0), high_y=(10.0, 100.0)),
                compute=Area(label="level", x=(10.0, 100.0), low_y=(1.0, 1.0), high_y=(100.0, 100.0)),
                contours=(Line(label="1 decade", x=(2.0, 10.0, 100.0), y=(15.0, 10.0, 10.0)),),
            ),
            groups=tuple(
                PointGroup(label=label, kind=kind, x=(x,), y=(y,))
                for label, kind, x, y in (
                    ("short", "prefill", 40.0, 60.0),
                    ("short", "decode", 2.0, 8.0),
                    ("short", "both", 8.0, 30.0),
                    ("long", "prefill", 60.0, 70.0),
                    ("long", "decode", 2.5, 9.0),
                    ("long", "both", 20.0, 50.0),
                )
            ),
        ),
    ),
)
CHARTS: tuple[Chart, ...] = (LINES, HEAT_MAP, BARS, ROOFLINE)
