"""How long each decode step took over the tokens in the context, over the replicates, beside other runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A decode step, with its replicates and their median."""

    n_context: int
    samples_ns: tuple[int, ...]
    time_ns: float

    @property
    def told(self) -> str:
        """The step in words."""
        return f"{self.n_context} tokens: {format_ns(self.time_ns)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """The steps of a run in order, those far beyond the ones around them apart."""

    near: tuple[_Step, ...]
    far: tuple[_Step, ...]

    @classmethod
    def of(cls, observation: Observation) -> _Course:
        """Take the steps whose median is above 0; with fewer than two near ones none is far."""
        medians = [(each, median(each.samples_ns)) for each in observation.tokens if each.samples_ns]
        steps = [
            _Step(n_context=each.n_context, samples_ns=each.samples_ns, time_ns=time_ns)
            for each, time_ns in medians
            if time_ns > 0
        ]
        near: list[_Step] = []
        far: list[_Step] = []
        for place, step in enumerate(steps):
            around = steps[max(0, place - _N_AROUND) : place + _N_AROUND + 1]
            is_far = step.time_ns > median(each.time_ns for each in around) * _FAR
            (far if is_far else near).append(step)
        return cls(near=tuple(near), far=tuple(far)) if len(near) > 1 else cls(near=tuple(steps), far=())

    @property
    def n_steps(self) -> int:
        """How many steps there are."""
        return len(self.near) + len(self.far)


def tokens_figure(observation: Observation, others: Sequence[PageRun] = ()) -> Iterator[Figure]:
    """Show the median of each step with the band of its replicates."""
    course = _Course.of(observation)
    if course.n_steps < 2:
        return
    beside = [each for each in (_Course.of(each.observation) for each in others) if each.n_steps >= 2][-_MOST_OTHERS:]
    summary = _summary(course, len(beside))
    yield Figure(
        figure_id="tokens",
        subject="tokens",
        title="Time of a decode step over the context",
        summary=summary,
        drawing=_drawing(course, beside, summary),
    )


def _summary(course: _Course, n_beside: int) -> str:
    first, last = course.near[0], course.near[-1]
    told = (
        f"{format_count(course.n_steps, 'step')}, from {format_ns(first.time_ns)} to {format_ns(last.time_ns)} "
        f"({format_ratio(last.time_ns / first.time_ns)}) while the context grows from {first.n_context} to "
        f"{last.n_context} tokens. The band holds eight of ten replicates."
    )
    if course.far:
        steps = "; ".join(f"{format_ns(each.time_ns)} at {each.n_context} tokens" for each in course.far[:3])
        told += f" {format_count(len(course.far), 'step')} beyond the axis, marked at its top: {steps}."
    return told + (f" Dashed lines are the medians of {format_count(n_beside, 'other run')}." if n_beside else "")


def _drawing(course: _Course, beside: Sequence[_Course], summary: str) -> Markup:
    near = course.near
    contexts = [each.n_context for each in (*near, *course.far)]
    top_ns = max(each.time_ns for each in near) * _FAR
    scale = TimeScale.of([median(each.time_ns for each in near)])
    bands = {each.n_context: [scale(end) for end in _band(each.samples_ns)] for each in near}
    middles: list[tuple[float, float]] = [(each.n_context, scale(each.time_ns)) for each in near]
    lines: list[list[tuple[float, float]]] = [
        [(step.n_context, scale(step.time_ns)) for step in each.near if step.time_ns <= top_ns] for each in beside
    ]
    ends = [
        *(min(scale(top_ns), end) for band in bands.values() for end in band),
        *(y for line in (middles, *lines) for _, y in line),
    ]
    canvas = Canvas(
        x=linear_axis("tokens in the context", min(contexts), max(contexts), least_step=1.0),
        y=level_axis(scale.title("time of a step"), ends),
        height=_HEIGHT,
    )
    lower, upper = ([(context, band[end]) for context, band in bands.items()] for end in (0, 1))
    band: list[tuple[float, float]] = [*lower, *upper[::-1]]
    curves: list[tuple[str, list[tuple[float, float]]]] = [("band", band)]
    curves += [("dashed", line) for line in lines]
    curves.append(("k0", middles))
    dots = zip(middles, near, strict=True) if len(near) <= _MOST_DOTS else ()
    marks = [canvas.mark(x, y, _STEP, step.told) for (x, y), step in dots]
    marks += [canvas.mark(each.n_context, canvas.y.high, _BEYOND, each.told) for each in course.far]
    return canvas.plot([canvas.curves(curves), *marks], summary)


def _band(samples_ns: Sequence[int]) -> tuple[float, float]:
    if len(samples_ns) < 2:
        return samples_ns[0], samples_ns[0]
    tenths = quantiles(samples_ns, n=10, method="inclusive")
    return tenths[0], tenths[-1]
