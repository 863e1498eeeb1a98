"""How much a case changed: the same numbers as words, and as a dot with its interval and margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.charts.axes import Axis, linear_axis
from perfsuite.report.charts.svg import Look, block, mark, picture, rule, words
from perfsuite.units import format_ratio, to_change_percent

#: The scale shows at least and at most so much, in per cent: 6 % is a tenth of its width or more.
_LEAST, _MOST = (-4.0, 10.0), (-30.0, 30.0)
_HEIGHT, _MIDDLE = 18, 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of time, new over old, with all that is known of how sure it is."""

    ratio: float
    #: The bounds, both or none.
    bounds: tuple[float, float] | None
    #: What is still no change.
    margin_ratio: float | None
    outcome: Outcome

    @classmethod
    def of(cls, judgement: Judgement) -> Change | None:
        """Return the change of a case; None where there is none."""
        if judgement.change_ratio is None:
            return None
        low, high = judgement.lower_ratio, judgement.upper_ratio
        return cls(
            ratio=judgement.change_ratio,
            bounds=None if low is None or high is None else (low, high),
            margin_ratio=judgement.margin_ratio,
            outcome=judgement.outcome,
        )

    @property
    def text(self) -> str:
        """The change in words."""
        return format_ratio(self.ratio)

    def drawing(self, axis: Axis) -> Markup:
        """Draw the change: band and line are margin and zero, a bar the interval; a ring is a dot without one."""
        return picture(self._marks(axis), _HEIGHT, "", "change")

    def _marks(self, axis: Axis) -> Iterator[Markup]:
        def part(ratio: float) -> float:
            return axis.part(to_change_percent(ratio))

        if self.margin_ratio is not None:
            low, high = part(1.0 / (1.0 + self.margin_ratio)), part(1.0 + self.margin_ratio)
            yield block(low, high, 0.0, _HEIGHT, "margin")
        yield rule(part(1.0), 0.0, part(1.0), _HEIGHT, "zero")
        colour = self.outcome.value
        if self.bounds is not None:
            low, high = map(part, self.bounds)
            yield rule(low, _MIDDLE, high, _MIDDLE, f"span {colour}")
        percent = to_change_percent(self.ratio)
        beyond = "right" if percent > axis.high else "left" if percent < axis.low else None
        yield mark(
            part(self.ratio), _MIDDLE, Look(colour=colour, shape=beyond or ("circle" if self.bounds else "ring"))
        )


def change_axis(changes: Iterable[Change]) -> Axis:
    """Return one scale for these changes, in per cent, with zero and the intervals on it, as far as 6 % is seen."""
    percents = [to_change_percent(each) for change in changes for each in (change.ratio, *(change.bounds or ()))]
    low = max(_MOST[0], min(_LEAST[0], *percents, 0.0))
    high = min(_MOST[1], max(_LEAST[1], *percents, 0.0))
    room = (high - low) * 0.04
    return linear_axis("change of time (%)", low - room, high + room, is_signed=True)


def axis_drawing(axis: Axis) -> Markup:
    """Draw the numbers of a scale of changes, for above or below its rows."""
    labels = [words(axis.part(tick), 11, axis.label(tick), "middle") for tick in axis.ticks]
    return picture(labels, 14, "", "change-axis")
