"""What a subscriber makes of live records: forecasts of the tokens to come, and how late the records were."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.records.live import LiveForecast, LiveLoss, LivePhase, LiveRecord, LiveToken
from perfsuite.trace.forecast_errors import ForecastScore, HorizonErrors
from perfsuite.trace.step_forecast import HORIZONS, StepForecast


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
        return self._follow_token(record) if isinstance(record, LiveToken) else ()

    def _follow_token(self, token: LiveToken) -> tuple[LiveForecast, ...]:
        self.n_tokens += 1
        if token.repetition != self._repetition or token.step <= self._step:
            self._score.begin()
        self._repetition, self._step = token.repetition, token.step
        forecasts = self._score.observe(token.step, token.latency_ns)
        return tuple(_live_forecast(token, forecast) for forecast in forecasts)

    def delays(self) -> tuple[DeliveryDelay, ...]:
        """Return the delays of each name, in the order of their first records."""
        return tuple(_delay(name, sorted(delays_ns)) for name, delays_ns in self._delays_ns.items())

    def forecast_errors(self) -> tuple[HorizonErrors, ...]:
        """Return how far off the forecasts were that have had their outcome."""
        return self._score.errors()


def _live_forecast(token: LiveToken, forecast: StepForecast) -> LiveForecast:
    return LiveForecast(
        repetition=token.repetition,
        step=forecast.step,
        horizon=forecast.horizon,
        forecast_ns=forecast.forecast_ns,
        lower_ns=forecast.lower_ns,
        upper_ns=forecast.upper_ns,
    )


def _delay(name: str, delays_ns: Sequence[int]) -> DeliveryDelay:
    return DeliveryDelay(
        name=name,
        n_records=len(delays_ns),
        median_ns=round(median(delays_ns)),
        p95_ns=delays_ns[min(len(delays_ns) - 1, int(0.95 * len(delays_ns)))],
    )
