"""How long each decode step took over the tokens in the context, over the replicates, beside other runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles
from typing import NamedTuple

from markupsafe import Markup

from perfsuite.records.observation import Observation
from perfsuite.report.charts.axes import TimeScale, level_axis, linear_axis
from perfsuite.report.charts.svg import Canvas, Look
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.page_run import PageRun
from perfsuite.units import format_count, format_ns, format_ratio

_HEIGHT = 180
#: Isolated steps beyond so many times those around them are marked at the top, so that they do not press the others
#: flat; and how many steps to either side are around one.
_FAR, _N_AROUND = 1.6, 5
_MOST_OTHERS, _MOST_DOTS = 5, 128

_STEP, _BEYOND = Look(colour="k0", shape="circle"), Look(colour="k1", shape="up")


class _Step(NamedTuple):
    """A decode step, with its replicates and their median."""

    n_context: int
    samples_ns: tuple[int, ...]
    time_ns: float

    @property
    def tip(self) -> str:
        return f"{self.n_context} tokens: {format_ns(self.time_ns)}"


def _courses(observation: Observation) -> tuple[list[_Step], list[_Step]]:
    """Return the steps whose median is above 0, and those far beyond the ones around them apart.

    With fewer than two near ones none is far.
    """
    known = [(each, median(each.samples_ns)) for each in observation.tokens if each.samples_ns]
    steps = [_Step(each.n_context, each.samples_ns, time_ns) for each, time_ns in known if time_ns > 0]
    near: list[_Step] = []
    far: list[_Step] = []
    for place, step in enumerate(steps):
        around = steps[max(0, place - _N_AROUND) : place + _N_AROUND + 1]
        (far if step.time_ns > median(each.time_ns for each in around) * _FAR else near).append(step)
    return (near, far) if len(near) > 1 else (steps, [])


def tokens_figure(observation: Observation, others: Sequence[PageRun] = ()) -> Iterator[Figure]:
    """Show the median of each step with the band of its replicates."""
    near, far = _courses(observation)
    if len(near) + len(far) < 2:
        return
    beside = [each[0] for each in (_courses(other.observation) for other in others) if sum(map(len, each)) > 1]
    beside = beside[-_MOST_OTHERS:]
    summary = _summary(near, far, len(beside))
    yield Figure(
        figure_id="tokens",
        subject="tokens",
        title="Time of a decode step over the context",
        summary=summary,
        drawing=_drawing(near, far, beside, summary),
    )


def _summary(near: Sequence[_Step], far: Sequence[_Step], n_beside: int) -> str:
    first, last = near[0], near[-1]
    words = (
        f"{format_count(len(near) + len(far), 'step')}, from {format_ns(first.time_ns)} to {format_ns(last.time_ns)} "
        f"({format_ratio(last.time_ns / first.time_ns)}) while the context grows from {first.n_context} to "
        f"{last.n_context} tokens. The band holds eight of ten replicates."
    )
    if far:
        steps = "; ".join(f"{format_ns(each.time_ns)} at {each.n_context} tokens" for each in far[:3])
        words += f" {format_count(len(far), 'step')} beyond the axis, marked at its top: {steps}."
    return words + (f" Dashed lines are the medians of {format_count(n_beside, 'other run')}." if n_beside else "")


def _drawing(near: Sequence[_Step], far: Sequence[_Step], beside: Sequence[Sequence[_Step]], summary: str) -> Markup:
    contexts = [each.n_context for each in (*near, *far)]
    top_ns = max(each.time_ns for each in near) * _FAR
    scale = TimeScale.of([median(each.time_ns for each in near)])
    lower, upper = zip(*(_band(each.samples_ns) for each in near), strict=True)
    middles: list[tuple[float, float]] = [(each.n_context, scale(each.time_ns)) for each in near]
    lines: list[list[tuple[float, float]]] = [
        [(step.n_context, scale(step.time_ns)) for step in each if step.time_ns <= top_ns] for each in beside
    ]
    ends = [min(scale(top_ns), scale(end)) for end in (*lower, *upper)]
    canvas = Canvas(
        x=linear_axis("tokens in the context", min(contexts), max(contexts), least_step=1.0),
        y=level_axis(scale.title("time of a step"), [*ends, *(y for line in (middles, *lines) for _, y in line)]),
        height=_HEIGHT,
    )
    edges = [*zip(near, lower, strict=True), *zip(near[::-1], upper[::-1], strict=True)]
    band = [(float(each.n_context), scale(end)) for each, end in edges]
    curves = [("band", band), *(("dashed", line) for line in lines), ("k0", middles)]
    dots = zip(middles, near, strict=True) if len(near) <= _MOST_DOTS else ()
    marks = [canvas.mark(x, y, _STEP, step.tip) for (x, y), step in dots]
    marks += [canvas.mark(each.n_context, canvas.y.high, _BEYOND, each.tip) for each in far]
    return canvas.plot([canvas.curves(curves), *marks], summary)


def _band(samples_ns: Sequence[int]) -> tuple[float, float]:
    if len(samples_ns) < 2:
        return samples_ns[0], samples_ns[0]
    tenths = quantiles(samples_ns, n=10, method="inclusive")
    return tenths[0], tenths[-1]
