"""How long each decode step took over the tokens in the context, over the replicates, beside other runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from markupsafe import Markup

from perfsuite.records.observation import Observation, TokenLatency
from perfsuite.report.page.charts.axes import TimeScale, level_axis, linear_axis
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.svg import Canvas, Look
from perfsuite.report.page.page_run import PageRun
from perfsuite.units import format_count, format_ns, format_ratio

_HEIGHT = 180
#: Steps beyond so many times the usual one are marked at the top, so that they do not press the others flat.
_FAR = 1.6
_MOST_OTHERS, _MOST_DOTS = 5, 128

_STEP, _BEYOND = Look(colour="k0", shape="circle"), Look(colour="k1", shape="up")


def tokens_figure(observation: Observation, others: Sequence[PageRun] = ()) -> Iterator[Figure]:
    """Show the median of each step with the band of its replicates."""
    tokens = [each for each in observation.tokens if each.samples_ns]
    if len(tokens) < 2:
        return
    usual_ns = median(median(each.samples_ns) for each in tokens)
    far = [each for each in tokens if median(each.samples_ns) > usual_ns * _FAR]
    beside = [each for each in others if len(each.observation.tokens) >= 2][-_MOST_OTHERS:]
    summary = _summary(tokens, far, beside)
    yield Figure(
        figure_id="tokens",
        subject="tokens",
        title="Time of a decode step over the context",
        summary=summary,
        drawing=_drawing(tokens, far, beside, usual_ns, summary),
    )


def _summary(tokens: Sequence[TokenLatency], far: Sequence[TokenLatency], beside: Sequence[PageRun]) -> str:
    near = [each for each in tokens if each not in far] or tokens
    first, last = (median(each.samples_ns) for each in (near[0], near[-1]))
    told = (
        f"{format_count(len(tokens), 'step')}, from {format_ns(first)} to {format_ns(last)} "
        f"({format_ratio(last / first)}) while the context grows from {tokens[0].n_context} to {tokens[-1].n_context} "
        "tokens. The band holds eight of ten replicates."
    )
    if far:
        steps = "; ".join(f"{format_ns(median(each.samples_ns))} at {each.n_context} tokens" for each in far[:3])
        told += f" {format_count(len(far), 'step')} beyond the axis, marked at its top: {steps}."
    return told + (f" Dashed lines are the medians of {format_count(len(beside), 'other run')}." if beside else "")


def _drawing(
    tokens: Sequence[TokenLatency],
    far: Sequence[TokenLatency],
    beside: Sequence[PageRun],
    usual_ns: float,
    summary: str,
) -> Markup:
    near = [each for each in tokens if each not in far] or list(tokens)
    scale = TimeScale.of([usual_ns])
    bands = {each.n_context: [scale(end) for end in _band(each.samples_ns)] for each in near}
    middles: list[tuple[float, float]] = [(each.n_context, scale(median(each.samples_ns))) for each in near]
    lines = [list(_other(each, usual_ns, scale)) for each in beside]
    top = scale(usual_ns * _FAR)
    ends = [
        *(min(top, end) for band in bands.values() for end in band),
        *(y for line in (middles, *lines) for _, y in line),
    ]
    canvas = Canvas(
        x=linear_axis("tokens in the context", tokens[0].n_context, tokens[-1].n_context, least_step=1.0),
        y=level_axis(scale.title("time of a step"), ends),
        height=_HEIGHT,
    )
    lower, upper = ([(context, band[end]) for context, band in bands.items()] for end in (0, 1))
    band: list[tuple[float, float]] = [*lower, *upper[::-1]]
    curves = [("band", band), *(("dashed", line) for line in lines), ("k0", middles)]
    marks = [canvas.mark(x, y, _STEP, f"{x} tokens: {format_ns(time)}") for (x, y), time in _dots(near, middles)]
    marks += [
        canvas.mark(
            each.n_context, canvas.y.high, _BEYOND, f"{each.n_context} tokens: {format_ns(median(each.samples_ns))}"
        )
        for each in far
    ]
    return canvas.plot([canvas.curves(curves), *marks], summary)


def _dots(
    near: Sequence[TokenLatency], middles: Sequence[tuple[float, float]]
) -> Iterator[tuple[tuple[float, float], float]]:
    if len(near) <= _MOST_DOTS:
        yield from zip(middles, (median(each.samples_ns) for each in near), strict=True)


def _other(page_run: PageRun, usual_ns: float, scale: TimeScale) -> Iterator[tuple[float, float]]:
    """Return the steps of another run, without those beyond the axis."""
    for token in page_run.observation.tokens:
        if token.samples_ns and median(token.samples_ns) <= usual_ns * _FAR:
            yield token.n_context, scale(median(token.samples_ns))


def _band(samples_ns: Sequence[int]) -> tuple[float, float]:
    if len(samples_ns) < 2:
        return samples_ns[0], samples_ns[0]
    tenths = quantiles(samples_ns, n=10, method="inclusive")
    return tenths[0], tenths[-1]
