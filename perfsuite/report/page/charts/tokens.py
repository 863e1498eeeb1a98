"""How long each decode step took over the tokens in the context, over the replicates, beside other runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from perfsuite.records.observation import Observation, TokenLatency
from perfsuite.report.page.charts.axes import BLUE, GREY, NUMBERS, VERMILLION, Look, TimeScale, layer, looks, shown, tip
from perfsuite.report.page.charts.figure import Figure, Spec
from perfsuite.report.page.charts.runs import run_label
from perfsuite.report.page.page_run import PageRun
from perfsuite.units import format_count, format_ns, format_ratio

_HEIGHT = 220
#: Steps beyond so many times the usual one are marked at the top, so that they do not press the others flat.
_FAR = 1.6
_MOST_OTHERS = 5


def tokens_figure(observation: Observation, others: Sequence[PageRun] = ()) -> Iterator[Figure]:
    """Show the median of each step with the band of its replicates."""
    tokens = [each for each in observation.tokens if each.samples_ns]
    if len(tokens) < 2:
        return
    usual_ns = median(median(each.samples_ns) for each in tokens)
    far = [each for each in tokens if median(each.samples_ns) > usual_ns * _FAR]
    beside = [each for each in others if len(each.observation.tokens) >= 2][-_MOST_OTHERS:]
    yield Figure(
        figure_id="tokens",
        subject="tokens",
        title="Time of a decode step over the context",
        summary=_summary(tokens, far, beside),
        spec=_spec(tokens, far, beside, usual_ns),
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
    return told + (f" Thin lines are the medians of {format_count(len(beside), 'other run')}." if beside else "")


def _spec(
    tokens: Sequence[TokenLatency], far: Sequence[TokenLatency], beside: Sequence[PageRun], usual_ns: float
) -> Spec:
    near = [each for each in tokens if each not in far] or list(tokens)
    scale = TimeScale.of([usual_ns])
    steps = [_step(each, scale) for each in near]
    lines = [
        {"run": run_label(each.run), "context": token.n_context, "time": scale(median(token.samples_ns))}
        for each in beside
        for token in each.observation.tokens
        if token.samples_ns and median(token.samples_ns) <= usual_ns * _FAR
    ]
    low = min(*(each["low"] for each in steps), *(each["time"] for each in (*lines, *steps)))
    high = max(*(each["high"] for each in steps), *(each["time"] for each in (*lines, *steps)))
    high = min(high, scale(usual_ns * _FAR))
    room = (high - low) * 0.08 or high * 0.05
    domain = [shown(max(0.0, low - room)), shown(high + room)]
    axis = {"title": scale.title("time of a step"), "format": NUMBERS, "tickCount": 5}
    time = {"type": "quantitative", "scale": {"domain": domain, "nice": False, "zero": False}, "axis": axis}
    return {
        "height": _HEIGHT,
        "encoding": {"x": _context(tokens)},
        "layer": [
            _band_layer(steps, time),
            *_other_layers(lines, time),
            *_median_layers(steps, time),
            *_far_layers(far, domain[1], time),
        ],
    }


def _context(tokens: Sequence[TokenLatency]) -> Spec:
    domain = [tokens[0].n_context, tokens[-1].n_context]
    axis = {"title": "tokens in the context", "format": NUMBERS, "tickMinStep": 1, "tickCount": 6}
    scale = {"domain": domain, "nice": False, "zero": False, "padding": 8}
    return {"field": "context", "type": "quantitative", "scale": scale, "axis": axis}


def _step(token: TokenLatency, scale: TimeScale) -> Spec:
    low, high = _band(token.samples_ns)
    told = f"{token.n_context} tokens: {format_ns(median(token.samples_ns))}, {format_ns(low)} to {format_ns(high)}"
    time = scale(median(token.samples_ns))
    return {"context": token.n_context, "time": time, "low": scale(low), "high": scale(high), "tip": told}


def _band(samples_ns: Sequence[int]) -> tuple[float, float]:
    if len(samples_ns) < 2:
        return samples_ns[0], samples_ns[0]
    tenths = quantiles(samples_ns, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def _band_layer(steps: Sequence[Spec], time: Spec) -> Spec:
    encoding = {"y": {"field": "low", **time}, "y2": {"field": "high"}}
    return layer("area", steps, encoding, opacity=0.28, color=BLUE, clip=True)


def _other_layers(lines: Sequence[Spec], time: Spec) -> Iterator[Spec]:
    if lines:
        encoding = {"y": {"field": "time", **time}, "detail": {"field": "run", "type": "nominal"}}
        look = {"strokeWidth": 1, "opacity": 0.8, "color": GREY, "strokeDash": [4, 3], "clip": True}
        yield layer("line", lines, encoding, **look)


def _median_layers(steps: Sequence[Spec], time: Spec) -> Iterator[Spec]:
    y = {"field": "time", **time}
    yield layer("line", steps, {"y": y}, strokeWidth=2, color=BLUE)
    yield layer("point", steps, {"y": y, "tooltip": tip()}, filled=True, size=36, opacity=1, color=BLUE)


def _far_layers(far: Sequence[TokenLatency], top: float, time: Spec) -> Iterator[Spec]:
    if not far:
        return
    values = [
        {
            "context": each.n_context,
            "time": top,
            "what": "beyond the axis",
            "told": format_ns(median(each.samples_ns)),
            "tip": f"{each.n_context} tokens: {format_ns(median(each.samples_ns))}",
        }
        for each in far
    ]
    y = {"field": "time", **time}
    look = looks("what", {"beyond the axis": Look(colour=VERMILLION, shape="triangle-up")})
    yield layer("point", values, {"y": y, **look, "tooltip": tip()}, filled=True, size=90, opacity=1, yOffset=5)
    if len(far) <= 3:
        yield layer("text", values, {"y": y, "text": {"field": "told"}}, align="left", dx=9, dy=7)
