"""The pictures of a trace's statistics: time over context, time over dimensions, and a device against the processor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import Axis, Line, LineRole, PointGroup, Scale, XYChart, XYPanel
from perfsuite.trace.statistics.crossover import Crossover
from perfsuite.trace.statistics.operator_statistics import LineFit, OperatorType
from perfsuite.trace.statistics.statistics_view import TraceStatistics
from perfsuite.trace.statistics.token_statistics import TokenStatistics
from perfsuite.units import format_ns

_US, _MS = 1e3, 1e6
_WORK = Axis(label="M x N x K x H", scale=Scale.LOG10)
_TIME = Axis(label="time of one operator (µs)", scale=Scale.LOG10)
_FIT_LABEL, _FIT = "line of least relative squares", LineRole.CURVE

#: Types of operators that get a panel: those with a line, the longest first.
_MOST_PANELS = 5
_LINE_POINTS = 32


def statistics_chart(statistics: TraceStatistics, *, name: str) -> XYChart:
    """Return a panel for the steps of decoding over the context, and one for each type of operator with a line.

    Raises PerfsuiteError where the trace has neither.
    """
    types = sorted((each for each in statistics.operators if each.fit is not None), key=lambda each: -each.total_ns)
    panels = (*_token_panels(statistics.tokens), *(_type_panel(each) for each in types[:_MOST_PANELS]))
    if not panels:
        raise PerfsuiteError(f"{name}: has no steps over a context and no operators of several sizes to draw")
    return XYChart(
        title=_title(statistics, name),
        note="Medians of all runs; dimensions as products have them, elements for other operators",
        n_columns=min(3, len(panels)),
        panels=panels,
    )


def crossover_chart(found: Sequence[Crossover], *, name: str) -> XYChart:
    """Return a panel for each type of operator that both sides have in several sizes.

    Raises PerfsuiteError where there is none.
    """
    drawn = [each for each in found if len(each.sides) > 1]
    if not drawn:
        raise PerfsuiteError(f"{name}: the two traces share no operator in several sizes")
    crossing = sum(each.work is not None for each in drawn)
    return XYChart(
        title=f"{name}: processor and device cross in {crossing} of {len(drawn)} types of operators",
        note="Medians of all runs; lines of least squares of relative distances",
        n_columns=min(3, len(drawn)),
        panels=tuple(_crossover_panel(each) for each in drawn),
    )


def _title(statistics: TraceStatistics, name: str) -> str:
    growth_ns, share = statistics.tokens.growth_ns, statistics.tokens.attention_share_ratio
    if share is None:
        return f"{name}: time of operators over their size"
    return f"{name}: operators grow by {format_ns(growth_ns)} a position of context, {share:.0%} of it attention"


def _token_panels(tokens: TokenStatistics) -> Iterator[XYPanel]:
    decode = tokens.steps.is_decode
    if tokens.line is None:
        return
    contexts = tokens.steps.context[decode].astype(float)
    ends = (float(contexts.min()), float(contexts.max()))
    yield XYPanel(
        title="steps of decoding",
        x_axis=Axis(label="positions in the cache"),
        y_axis=Axis(label="time of a step (ms)"),
        groups=(
            PointGroup(
                label="step",
                x=tuple(contexts.tolist()),
                y=tuple((tokens.steps.duration_ns[decode] / _MS).tolist()),
            ),
        ),
        lines=(Line(label="robust line", x=ends, y=tuple(tokens.line.at(int(end)) / _MS for end in ends), role=_FIT),),
    )


def _type_panel(kind: OperatorType) -> XYPanel:
    works = tuple(float(each.dimensions.work) for each in kind.dimensions)
    points = PointGroup(
        label=f"{kind.op} {kind.type}", x=works, y=tuple(each.median_ns / _US for each in kind.dimensions)
    )
    lines = () if kind.fit is None else tuple(_drawn(kind.fit, works, _FIT_LABEL))
    title = f"{kind.phase.value}: {kind.op}, {kind.type}"
    return XYPanel(title=title, x_axis=_WORK, y_axis=_TIME, groups=(points,), lines=lines)


def _crossover_panel(found: Crossover) -> XYPanel:
    works = tuple(float(each.dimensions.work) for each in found.sides)
    sides = (
        ("processor", [each.cpu_ns for each in found.sides], found.cpu_line),
        ("device", [each.device_ns for each in found.sides], found.device_line),
    )
    return XYPanel(
        title=f"{found.phase.value}: {found.op}, {found.type}",
        x_axis=_WORK,
        y_axis=_TIME,
        groups=tuple(
            PointGroup(label=label, x=works, y=tuple(time_ns / _US for time_ns in times_ns))
            for label, times_ns, _ in sides
        ),
        lines=tuple(line for label, _, fit in sides if fit for line in _drawn(fit, works, f"line of the {label}")),
    )


def _drawn(fit: LineFit, works: Sequence[float], label: str) -> Iterator[Line]:
    """Yield a line where it is above 0, which is all that logarithmic axes can show."""
    x = [float(each) for each in np.geomspace(works[0], works[-1], _LINE_POINTS)]
    shown = [each for each in x if fit.at(each) > 0]
    if shown:
        yield Line(label=label, x=tuple(shown), y=tuple(fit.at(each) / _US for each in shown), role=_FIT)
