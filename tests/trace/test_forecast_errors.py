"""Errors of forecasts, against what the naive ones reach on the same series."""

from __future__ import annotations

import random

import pytest

from perfsuite.records.live import LiveLoss, LivePhase, LiveToken
from perfsuite.trace.forecast_errors import ForecastScore, HorizonErrors, LiveWatch


def token(step: int, repetition: int = 0) -> LiveToken:
    """Return a token of a series that grows by 1 µs a step."""
    return LiveToken(
        repetition=repetition, step=step, token=64 + step, latency_ns=10**6 + 1000 * step, end_ns=step, tokens_per_s=9.0
    )


def test_tokens_are_forecast() -> None:
    watch = LiveWatch((1, 8))
    reported = [watch.follow(token(step), None) for step in range(9)]
    assert reported[:7] == [()] * 7
    assert [(each.repetition, each.step, each.horizon, each.forecast_ns) for each in reported[8]] == [
        (0, 9, 1, 1009000),
        (0, 16, 8, 1016000),
    ]
    assert [each.n_outcomes for each in watch.forecast_errors()] == [1, 0]
    watch = LiveWatch((1,))
    for step in range(9):
        watch.follow(token(step), None)
    assert (watch.follow(token(0, repetition=1), None), watch.n_tokens) == ((), 10)


def test_delays_are_reported_by_name() -> None:
    watch = LiveWatch()
    phase = LivePhase(phase="copy", repetition=0, token=0, n_tokens=1, start_ns=0, end_ns=1)
    for delay_ns in range(100, 0, -1):
        watch.follow(phase, delay_ns)
    watch.follow(token(0), 7)
    watch.follow(token(1), None)
    copy, tokens = watch.delays()
    assert (copy.name, copy.n_records, copy.median_ns, copy.p95_ns) == ("copy", 100, 50, 96)
    assert (tokens.name, tokens.n_records, tokens.median_ns, tokens.p95_ns) == ("token", 1, 7, 7)
    watch = LiveWatch()
    for n_records in (3, None, 4):
        watch.follow(LiveLoss(where="subscriber", n_records=n_records), None)
    assert watch.n_lost == 7


def forecast_errors(latencies_ns: list[int]) -> tuple[HorizonErrors, ...]:
    """Forecast a series step by step, each time from its past alone."""
    score = ForecastScore()
    for step, latency_ns in enumerate(latencies_ns):
        score.observe(step, latency_ns)
    return score.errors()


def series(n_steps: int, *, slope: float = 0.0, noise: float = 0.02, outliers: float = 0.0) -> list[int]:
    """Return latencies about 10 ms that grow by a share each step; of the outliers each takes twice its time."""
    order = random.Random(11)
    return [
        round(1e7 * (1 + slope * step) * order.gauss(1, noise) * (2 if order.random() < outliers else 1))
        for step in range(n_steps)
    ]


def medians(errors: HorizonErrors) -> tuple[float, float]:
    assert errors.median_percent is not None
    assert errors.last_median_percent is not None
    assert errors.mean_median_percent is not None
    return errors.median_percent, min(errors.last_median_percent, errors.mean_median_percent)


def test_every_outcome_is_counted_once() -> None:
    """n steps have n less the history less the horizon plus one outcomes."""
    errors = forecast_errors([100] * 100)
    assert [(each.horizon, each.n_outcomes) for each in errors] == [(1, 92), (8, 85), (64, 5)]
    assert all(each.median_percent == each.p95_percent == 0 for each in errors)
    assert all(each.within_ratio == 1 for each in errors)


def test_only_the_past_is_used() -> None:
    first, second = ForecastScore(), ForecastScore()
    reported = [
        [score.observe(step, time_ns) for step, time_ns in enumerate(times_ns)][:60]
        for score, times_ns in ((first, series(80)), (second, [*series(60), *[9**9] * 20]))
    ]
    assert reported[0] == reported[1]
    score = ForecastScore((1,))
    for step in range(10):
        score.observe(step, 100)
    (before,) = score.errors()
    score.begin()
    assert (score.observe(0, 500), score.errors()) == ((), (before,))


@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_growth_is_forecast_better_than_by_the_naive(outliers: float) -> None:
    """Where latency grows by a thousandth a step, errors are clearly below the better naive's, far ahead by half."""
    errors = forecast_errors(series(400, slope=0.001, noise=0.01, outliers=outliers))
    limits = (0.85, 0.8, 0.5)
    for each, limit in zip(errors, limits, strict=True):
        ours, naive = medians(each)
        assert ours < limit * naive


def test_a_noisy_level_costs_little() -> None:
    """Where there is nothing but noise, the better of the naive ones is at most an eighth better."""
    for each in forecast_errors(series(400, noise=0.03)):
        ours, naive = medians(each)
        assert ours < 1.125 * naive


def test_the_interval_holds_most_outcomes() -> None:
    for each in forecast_errors(series(600, slope=0.0005)):
        assert each.within_ratio is not None
        assert 0.8 < each.within_ratio < 0.97
