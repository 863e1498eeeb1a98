"""The latency of decode steps to come, forecast online from a short history.

Attention reads a cache that grows by one token a step, so a step's latency grows linearly; on top of it come noise,
outliers and sudden levels (throttling, another program). Three simple forecasts run side by side, and at each horizon
the one speaks whose latest forecasts were the best: a robust line, which wins where latency grows; the median of the
newest steps, which wins on a level; the last step, which wins where latency wanders.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import NormalDist, median

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


HORIZONS = (1, 8, 64)

#: Steps that must have been seen before the first forecast; a horizon also waits for half of its own length.
MINIMUM_HISTORY = 8

#: Steps that are remembered, and outcomes by which the forecasts are compared.
WINDOW = 128
_SCORED = 64

#: Share of outcomes that an interval is meant to hold.
COVERAGE_RATIO = 0.9

#: Outcomes without which the line speaks, with an interval by its own spread.
_ENOUGH_OUTCOMES = 20

#: So many steps on one side of the line, beyond so many standard deviations, are a new level: what was before is over.
_SHIFTED_STEPS = 8
_SHIFT_DEVIATIONS = 4.0

#: What another forecast's median error must stay below, as a share of the line's, to speak instead of it.
_PREFERENCE_RATIO = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class StepForecast:
    """What is expected of one step, ns; the interval is meant to hold `COVERAGE_RATIO` of the outcomes."""

    #: Steps ahead, and the step that is meant.
    horizon: int
    step: int
    forecast_ns: int
    lower_ns: int
    upper_ns: int


class _Way(Enum):
    """How a forecast is made; the line has the word until another one did better."""

    LINE = "line"
    LEVEL = "level"
    LAST = "last"


class StepForecaster:
    """Takes one step after the other, O(`WINDOW`) each, and forecasts the steps at each horizon.

    It needs no clock, no threads and no knowledge of the run; a new repetition has a forecaster of its own. A step
    takes about 0.1 ms of Python.
    """

    def __init__(self, horizons: Sequence[int] = HORIZONS) -> None:
        if not horizons or min(horizons) < 1:
            raise ValueError(f"horizons {tuple(horizons)}: expected one or more, each of 1 step or more")
        self._steps: list[int] = []
        self._times_ns: list[int] = []
        self._n_seen = 0
        self._tracks = tuple(_Track(horizon) for horizon in horizons)

    def observe(self, step: int, latency_ns: int) -> tuple[StepForecast, ...]:
        """Take the latency of a step, and return what follows from it; empty as long as the history is too short.

        Raises ValueError: the step does not come after the last one.
        """
        if self._steps and step <= self._steps[-1]:
            raise ValueError(f"step {step} does not come after step {self._steps[-1]}")
        for track in self._tracks:
            track.settle(step, latency_ns)
        self._remember(step, latency_ns)
        line = robust_line(self._steps, self._times_ns)
        proposed = {_Way.LEVEL: float(median(self._times_ns[-LEVEL_POINTS:])), _Way.LAST: float(latency_ns)}
        ready = [track for track in self._tracks if self._n_seen >= max(MINIMUM_HISTORY, track.horizon // 2)]
        return tuple(track.propose(line, proposed) for track in ready)

    def _remember(self, step: int, latency_ns: int) -> None:
        self._n_seen += 1
        self._steps.append(step)
        self._times_ns.append(latency_ns)
        if self._has_new_level():
            del self._steps[:-_SHIFTED_STEPS], self._times_ns[:-_SHIFTED_STEPS]
        del self._steps[:-WINDOW], self._times_ns[:-WINDOW]

    def _has_new_level(self) -> bool:
        """Whether the newest steps lie all on one side of the line through those before them, and far from it."""
        if len(self._steps) < 3 * _SHIFTED_STEPS:
            return False
        before = robust_line(self._steps[:-_SHIFTED_STEPS], self._times_ns[:-_SHIFTED_STEPS])
        newest = zip(self._steps[-_SHIFTED_STEPS:], self._times_ns[-_SHIFTED_STEPS:], strict=True)
        apart_ns = [time_ns - before.at(step) for step, time_ns in newest]
        is_one_sided = min(apart_ns) > 0 or max(apart_ns) < 0
        return is_one_sided and abs(median(apart_ns)) > 1 + _SHIFT_DEVIATIONS * before.deviation_ns


class _Track:
    """One horizon: what each way forecast, and how far off it was."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self._open: deque[tuple[int, dict[_Way, float]]] = deque()
        #: Outcome less forecast, ns, the newest ones.
        self._errors_ns: dict[_Way, deque[float]] = {way: deque(maxlen=_SCORED) for way in _Way}

    def settle(self, step: int, latency_ns: int) -> None:
        """Score what was forecast for this step; a step that never came scores nothing."""
        while self._open and self._open[0][0] <= step:
            meant, proposed = self._open.popleft()
            if meant == step:
                for way, forecast_ns in proposed.items():
                    self._errors_ns[way].append(latency_ns - forecast_ns)

    def propose(self, line: RobustLine, others: dict[_Way, float]) -> StepForecast:
        step = line.newest_step + self.horizon
        proposed = {_Way.LINE: line.at(step), **others}
        self._open.append((step, proposed))
        way = self._best_way()
        below_ns, above_ns = self._margins_ns(way, line)
        forecast_ns = proposed[way]
        return StepForecast(
            horizon=self.horizon,
            step=step,
            forecast_ns=round(forecast_ns),
            lower_ns=math.floor(forecast_ns + min(0.0, below_ns)),
            upper_ns=math.ceil(forecast_ns + max(0.0, above_ns)),
        )

    def _best_way(self) -> _Way:
        if len(self._errors_ns[_Way.LINE]) < _ENOUGH_OUTCOMES:
            return _Way.LINE
        misses_ns = {way: median([abs(error) for error in errors]) for way, errors in self._errors_ns.items()}
        best = min((_Way.LEVEL, _Way.LAST), key=lambda way: misses_ns[way])
        return best if misses_ns[best] < _PREFERENCE_RATIO * misses_ns[_Way.LINE] else _Way.LINE

    def _margins_ns(self, way: _Way, line: RobustLine) -> tuple[float, float]:
        """Return how far an outcome may lie below and above: by the latest outcomes, or before them by the line."""
        errors_ns = sorted(self._errors_ns[way])
        if len(errors_ns) >= _ENOUGH_OUTCOMES:
            n_cut = int((len(errors_ns) + 1) * (1.0 - COVERAGE_RATIO) / 2.0) - 1  # a new one is one more of them
            return errors_ns[n_cut], errors_ns[-1 - n_cut]
        spread_ns = math.hypot(line.deviation_ns, self.horizon * line.slope_error_ns)
        margin_ns = NormalDist().inv_cdf((1.0 + COVERAGE_RATIO) / 2.0) * spread_ns
        return -margin_ns, margin_ns
