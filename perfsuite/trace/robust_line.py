"""A straight line through a short series of times, by medians alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

#: Newest points that say where the line lies; the slope is that of all points.
LEVEL_POINTS = 16

#: A normal distribution's standard deviation over its median absolute deviation.
_DEVIATION_PER_MAD = 1.4826

#: How much wider the error of a median is than that of a mean.
_MEDIAN_ERROR_RATIO = math.sqrt(math.pi / 2.0)

#: Standard errors that a slope must exceed to count at all; beyond, it is shrunk the less, the surer it is.
_SHRINKING_ERRORS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustLine:
    """Time against step: ``level_ns + slope_ns * (step - newest_step)``."""

    newest_step: int
    #: At the newest step.
    level_ns: float
    #: By step, shrunk towards 0 by what it is unsure of.
    slope_ns: float
    slope_error_ns: float
    #: Standard deviation of the newest points about the line.
    deviation_ns: float

    def at(self, step: int) -> float:
        """Return the line's time at a step, ns."""
        return self.level_ns + self.slope_ns * (step - self.newest_step)


def robust_line(steps: Sequence[int], times_ns: Sequence[int]) -> RobustLine:
    """Fit a line in O(points), up to the sorting of a median.

    Slope: the median over i of ``(y[i + n/2] - y[i]) / (x[i + n/2] - x[i])``, Theil's incomplete method, in which each
    point serves once; a quarter of the points may be anywhere. Its error, e, is that of a median of so many slopes; it
    enters as ``slope * max(0, 1 - (2 e / slope)^2)``, so that chance gives a level series no slope to carry on 64
    steps. Level: the median of the newest 16 points moved along the slope to the newest step.

    *Source*: H. Theil, A rank-invariant method of linear and polynomial regression analysis, 1950, part I, section 1
    (incomplete method).

    Raises ValueError: there is no point, or the sides differ in length.
    """
    if not steps or len(steps) != len(times_ns):
        raise ValueError(f"{len(steps)} steps and {len(times_ns)} times make no line")
    newest = steps[-1]
    slope_ns, error_ns = _slope(steps, times_ns)
    if slope_ns:
        slope_ns *= max(0.0, 1.0 - (_SHRINKING_ERRORS * error_ns / slope_ns) ** 2)
    recent = zip(steps[-LEVEL_POINTS:], times_ns[-LEVEL_POINTS:], strict=True)
    moved_ns = [time_ns - slope_ns * (step - newest) for step, time_ns in recent]
    level_ns = median(moved_ns)
    return RobustLine(
        newest_step=newest,
        level_ns=level_ns,
        slope_ns=slope_ns,
        slope_error_ns=error_ns,
        deviation_ns=_deviation(moved_ns, level_ns),
    )


def _slope(steps: Sequence[int], times_ns: Sequence[int]) -> tuple[float, float]:
    """Return the slope and its standard error; a single point has neither."""
    apart = len(steps) // 2
    if apart == 0:
        return 0.0, 0.0
    slopes = [
        (later_ns - time_ns) / (later - step)
        for step, time_ns, later, later_ns in zip(steps, times_ns, steps[apart:], times_ns[apart:], strict=False)
    ]
    slope = median(slopes)
    return slope, _MEDIAN_ERROR_RATIO * _deviation(slopes, slope) / math.sqrt(len(slopes))


def _deviation(values: Sequence[float], center: float) -> float:
    return _DEVIATION_PER_MAD * median([abs(value - center) for value in values])
