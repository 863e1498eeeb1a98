"""Errors of forecasts, against what the naive ones reach on the same series."""

from __future__ import annotations

import random

import pytest

from perfsuite.trace.forecast_errors import ForecastScore, HorizonErrors, forecast_errors


def series(n_steps: int, *, slope: float = 0.0, noise: float = 0.02, outliers: float = 0.0) -> list[int]:
    """Return latencies about 10 ms that grow by a share each step; of the outliers each takes twice its time."""
    order = random.Random(11)
    return [
        round(1e7 * (1 + slope * step) * order.gauss(1, noise) * (2 if order.random() < outliers else 1))
        for step in range(n_steps)
    ]


def medians(errors: HorizonErrors) -> tuple[float, float]:
    """Return our median error and that of the better naive forecast."""
    assert errors.median_percent is not None
    assert errors.last_median_percent is not None
    assert errors.mean_median_percent is not None
    return errors.median_percent, min(errors.last_median_percent, errors.mean_median_percent)


def test_a_short_series_has_no_errors_rather_than_none_at_all() -> None:
    """Without an outcome every figure is unknown."""
    (errors,) = forecast_errors([100] * 20, (64,))
    assert errors == HorizonErrors(
        horizon=64,
        n_outcomes=0,
        median_percent=None,
        p95_percent=None,
        within_ratio=None,
        last_median_percent=None,
        mean_median_percent=None,
    )


def test_every_outcome_is_counted_once() -> None:
    """A series of n steps has n less the history less the horizon plus one outcomes."""
    errors = forecast_errors([100] * 100)
    assert [(each.horizon, each.n_outcomes) for each in errors] == [(1, 92), (8, 85), (64, 5)]
    assert all(each.median_percent == each.p95_percent == 0 for each in errors)
    assert all(each.within_ratio == 1 for each in errors)


def test_only_the_past_is_used() -> None:
    """What comes later changes no forecast that was made before."""
    first, second = ForecastScore(), ForecastScore()
    told = [
        [score.observe(step, time_ns) for step, time_ns in enumerate(times_ns)][:60]
        for score, times_ns in ((first, series(80)), (second, [*series(60), *[9**9] * 20]))
    ]
    assert told[0] == told[1]


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
    """On noise and growth, about nine outcomes of ten lie within."""
    for each in forecast_errors(series(600, slope=0.0005)):
        assert each.within_ratio is not None
        assert 0.8 < each.within_ratio < 0.97


def test_a_repetition_begins_anew() -> None:
    """What was open when a repetition begins is never scored, and its history is forgotten; errors stay."""
    score = ForecastScore((1,))
    for step in range(10):
        score.observe(step, 100)
    (before,) = score.errors()
    score.begin()
    assert score.observe(0, 500) == ()
    assert score.errors() == (before,)


def test_a_latency_is_positive() -> None:
    """A step without a time is refused by its number."""
    with pytest.raises(ValueError, match="step 1 took 0 ns"):
        forecast_errors([5, 0])
