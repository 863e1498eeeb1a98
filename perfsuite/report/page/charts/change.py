"""How much a case changed, new over old, as a dot with its interval and margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from markupsafe import Markup

from perfsuite.records.outcome import Judgement
from perfsuite.report.charts.axes import Axis, linear_axis
from perfsuite.report.charts.svg import Look, block, mark, picture, rule, words
from perfsuite.units import to_change_percent

#: The scale shows at least and at most so much, in per cent: 6 % is a tenth of its width or more.
_LEAST, _MOST = (-4.0, 10.0), (-30.0, 30.0)
_HEIGHT, _MIDDLE = 18, 9.0


def bounds_of(judgement: Judgement) -> tuple[float, float] | None:
    """Return the bounds of a change; None where it has not both."""
    if judgement.lower_ratio is None or judgement.upper_ratio is None:
        return None
    return judgement.lower_ratio, judgement.upper_ratio


def change_drawing(judgement: Judgement, axis: Axis) -> Markup:
    """Draw a change: band and line are margin and zero, a bar the interval; a ring is a dot without one."""
    return picture(_marks(judgement, axis), _HEIGHT, "", "change")


def _marks(judgement: Judgement, axis: Axis) -> Iterator[Markup]:
    def part(ratio: float) -> float:
        return axis.part(to_change_percent(ratio))

    if (margin_ratio := judgement.margin_ratio) is not None:
        yield block(part(1.0 / (1.0 + margin_ratio)), part(1.0 + margin_ratio), 0.0, _HEIGHT, "margin")
    yield rule(part(1.0), 0.0, part(1.0), _HEIGHT, "zero")
    ratio, bounds, colour = judgement.change_ratio or 1.0, bounds_of(judgement), judgement.outcome.value
    if bounds is not None:
        yield rule(part(bounds[0]), _MIDDLE, part(bounds[1]), _MIDDLE, f"span {colour}")
    percent = to_change_percent(ratio)
    beyond = "right" if percent > axis.high else "left" if percent < axis.low else None
    yield mark(part(ratio), _MIDDLE, Look(colour=colour, shape=beyond or ("circle" if bounds else "ring")))


def change_axis(judgements: Iterable[Judgement]) -> Axis | None:
    """Return one scale for all changes, in per cent, with zero and the intervals on it, as far as 6 % is seen.

    None where nothing has a change.
    """
    changed = [each for each in judgements if each.change_ratio is not None]
    if not changed:
        return None
    ratios = [ratio for each in changed for ratio in (each.change_ratio or 1.0, *(bounds_of(each) or ()))]
    percents = list(map(to_change_percent, ratios))
    low = max(_MOST[0], min(_LEAST[0], *percents, 0.0))
    high = min(_MOST[1], max(_LEAST[1], *percents, 0.0))
    room = (high - low) * 0.04
    return linear_axis("change of time (%)", low - room, high + room, is_signed=True)


def axis_drawing(axis: Axis) -> Markup:
    """Draw the numbers of a scale of changes, for above or below its rows."""
    labels = [words(axis.part(tick), 11, axis.label(tick), "middle") for tick in axis.ticks]
    return picture(labels, 14, "", "change-axis")
