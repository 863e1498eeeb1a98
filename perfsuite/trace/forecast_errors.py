"""How far off the forecasts of decode steps were, beside two naive ones; only the past is ever used."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TypeVar

from perfsuite.records.live import LiveForecast, LiveLoss, LivePhase, LiveRecord, LiveToken
from perfsuite.trace.step_forecast import HORIZONS, WINDOW, StepForecast, StepForecaster

_Value = TypeVar("_Value", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonErrors:
    """The errors of one horizon, each ``100 * |forecast - outcome| / outcome``; None without an outcome."""

    horizon: int
    n_outcomes: int
    median_percent: float | None
    p95_percent: float | None
    #: Share of outcomes that lay within the forecast's interval.
    within_ratio: float | None
    #: The yardstick: the median errors of repeating the last step, and of the mean of the remembered ones.
    last_median_percent: float | None
    mean_median_percent: float | None


class ForecastScore:
    """Collects forecasts and outcomes of any number of repetitions, as they come."""

    def __init__(self, horizons: Sequence[int] = HORIZONS) -> None:
        self._horizons = tuple(horizons)
        self._forecaster = StepForecaster(horizons)
        self._newest_ns: deque[int] = deque(maxlen=WINDOW)
        #: By step to come: its forecasts, each beside what the naive ones said.
        self._open: dict[int, list[tuple[StepForecast, float, float]]] = defaultdict(list)
        self._percent: dict[int, list[tuple[float, float, float]]] = {horizon: [] for horizon in horizons}
        self._n_within = dict.fromkeys(horizons, 0)

    def begin(self) -> None:
        """Forget the history, not the errors: a repetition begins."""
        self._forecaster = StepForecaster(self._horizons)
        self._newest_ns.clear()
        self._open.clear()

    def observe(self, step: int, latency_ns: int) -> tuple[StepForecast, ...]:
        """Score what was forecast for this step, and return the forecasts that follow from it."""
        for forecast, *naive_ns in self._open.pop(step, ()):
            times_ns = (forecast.forecast_ns, *naive_ns)
            ours, last, mean = (100.0 * abs(time_ns - latency_ns) / latency_ns for time_ns in times_ns)
            self._percent[forecast.horizon].append((ours, last, mean))
            self._n_within[forecast.horizon] += forecast.lower_ns <= latency_ns <= forecast.upper_ns
        forecasts = self._forecaster.observe(step, latency_ns)
        self._newest_ns.append(latency_ns)
        mean_ns = sum(self._newest_ns) / len(self._newest_ns)
        for forecast in forecasts:
            self._open[forecast.step].append((forecast, latency_ns, mean_ns))
        return forecasts

    def errors(self) -> tuple[HorizonErrors, ...]:
        return tuple(self._errors(horizon) for horizon in self._horizons)

    def _errors(self, horizon: int) -> HorizonErrors:
        percent = self._percent[horizon]
        n_outcomes = len(percent)
        ours, last, mean = zip(*percent, strict=True) if percent else ((), (), ())
        return HorizonErrors(
            horizon=horizon,
            n_outcomes=n_outcomes,
            median_percent=_median(ours),
            p95_percent=_p95(sorted(ours)) if percent else None,
            within_ratio=self._n_within[horizon] / n_outcomes if percent else None,
            last_median_percent=_median(last),
            mean_median_percent=_median(mean),
        )


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDelay:
    """How long records of one name took from their end to the subscriber."""

    #: ``token``, ``kernel``, or the phase.
    name: str
    n_records: int
    median_ns: int
    p95_ns: int


class LiveWatch:
    """Follows one run, record by record."""

    def __init__(self, horizons: Sequence[int] = HORIZONS) -> None:
        self._score = ForecastScore(horizons)
        self._repetition: int | None = None
        self._step = -1
        self._delays_ns: dict[str, list[int]] = defaultdict(list)
        #: Tokens so far, and records that are known to be lost.
        self.n_tokens = 0
        self.n_lost = 0

    def follow(self, record: LiveRecord, delay_ns: int | None) -> tuple[LiveForecast, ...]:
        """Take a record and its delay, where it is known; return the forecasts that follow from a token."""
        if delay_ns is not None:
            self._delays_ns[record.phase if isinstance(record, LivePhase) else record.kind].append(delay_ns)
        if isinstance(record, LiveLoss):
            self.n_lost += record.n_records or 0
        if not isinstance(record, LiveToken):
            return ()
        self.n_tokens += 1
        if record.repetition != self._repetition or record.step <= self._step:
            self._score.begin()
        self._repetition, self._step = record.repetition, record.step
        forecasts = self._score.observe(record.step, record.latency_ns)
        return tuple(LiveForecast(repetition=record.repetition, **asdict(forecast)) for forecast in forecasts)

    def delays(self) -> tuple[DeliveryDelay, ...]:
        found = ((name, sorted(delays_ns)) for name, delays_ns in self._delays_ns.items())
        return tuple(
            DeliveryDelay(name=name, n_records=len(each), median_ns=round(median(each)), p95_ns=_p95(each))
            for name, each in found
        )

    def forecast_errors(self) -> tuple[HorizonErrors, ...]:
        return self._score.errors()


def _p95(ordered: Sequence[_Value]) -> _Value:
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
