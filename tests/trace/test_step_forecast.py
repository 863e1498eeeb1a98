"""Forecasts of steps to come, from the steps before them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfsuite.trace.step_forecast import HORIZONS, MINIMUM_HISTORY, StepForecast, StepForecaster, robust_line

_LEVEL = st.integers(0, 10**9)
_SLOPE = st.integers(-(10**5), 10**5)


@given(_LEVEL, _SLOPE, st.lists(st.integers(1, 9), min_size=1, max_size=60))
def test_a_noiseless_line_is_found(level_ns: int, slope_ns: int, gaps: list[int]) -> None:
    steps = [sum(gaps[:at]) for at in range(len(gaps))]
    line = robust_line(steps, [level_ns + slope_ns * step for step in steps])
    expected = slope_ns if len(steps) > 1 else 0
    assert line.slope_ns == expected
    assert line.at(steps[-1] + 64) == pytest.approx(level_ns + slope_ns * steps[-1] + expected * 64)
    assert line.deviation_ns == 0


@given(_LEVEL, _SLOPE, st.sets(st.integers(0, 31), max_size=6), st.integers(-(10**15), 10**15))
def test_some_points_may_lie_anywhere(level_ns: int, slope_ns: int, wild: set[int], by_ns: int) -> None:
    """Fewer than a fifth of the points change the line by nothing, however far off they are."""
    steps = range(32)
    times_ns = [level_ns + slope_ns * step + (by_ns if step in wild else 0) for step in steps]
    line = robust_line(steps, times_ns)
    assert (line.slope_ns, line.level_ns) == (slope_ns, level_ns + slope_ns * 31)


def test_chance_gives_a_level_no_slope() -> None:
    """On a noisy level the slope is shrunk to 0 in most draws, and the least squares' size in none."""
    order = random.Random(3)
    slopes = [
        robust_line(range(64), [round(order.gauss(10**7, 10**5)) for _ in range(64)]).slope_ns for _ in range(200)
    ]
    assert sum(slope == 0 for slope in slopes) > 180
    assert max(map(abs, slopes)) < 5 * 10**5 / 64


def forecasts_of(times_ns: Sequence[int]) -> list[tuple[StepForecast, ...]]:
    forecaster = StepForecaster()
    return [forecaster.observe(step, time_ns) for step, time_ns in enumerate(times_ns)]


def test_no_forecast_comes_before_its_history() -> None:
    horizons = [tuple(each.horizon for each in found) for found in forecasts_of([1000] * 40)]
    assert horizons[: MINIMUM_HISTORY - 1] == [()] * (MINIMUM_HISTORY - 1)
    assert (horizons[MINIMUM_HISTORY - 1 : 31], horizons[31:]) == ([(1, 8)] * (32 - MINIMUM_HISTORY), [HORIZONS] * 9)


@given(st.integers(10**6, 10**9), st.integers(0, 10**5), st.integers(MINIMUM_HISTORY, 200))
@settings(max_examples=30, deadline=None)
def test_a_noiseless_line_is_forecast_exactly(level_ns: int, slope_ns: int, n_steps: int) -> None:
    for forecast in forecasts_of([level_ns + slope_ns * step for step in range(n_steps)])[-1]:
        expected = level_ns + slope_ns * (n_steps - 1 + forecast.horizon)
        assert forecast.step == n_steps - 1 + forecast.horizon
        assert abs(forecast.forecast_ns - expected) <= 1
        assert forecast.lower_ns - 1 <= expected <= forecast.upper_ns + 1
        assert forecast.upper_ns - forecast.lower_ns <= 2


@given(st.integers(0, 10**4), st.integers(0, 99), st.integers(-(10**6), 10**12))
@settings(max_examples=50, deadline=None)
def test_one_outlier_moves_nothing(slope_ns: int, place: int, by_ns: int) -> None:
    times_ns = [10**7 + slope_ns * step + (by_ns if step == place else 0) for step in range(101)]
    for forecast in forecasts_of(times_ns)[-1]:
        assert abs(forecast.forecast_ns - (10**7 + slope_ns * forecast.step)) <= 1


def test_a_new_level_is_followed() -> None:
    order = random.Random(5)
    times_ns = [round((10**7 if step < 100 else 2 * 10**7) * order.gauss(1, 0.01)) for step in range(116)]
    nearest, near, _ = forecasts_of(times_ns)[-1]
    assert nearest.forecast_ns == pytest.approx(2 * 10**7, rel=0.02)
    assert near.forecast_ns == pytest.approx(2 * 10**7, rel=0.02)
    order = random.Random(6)
    times_ns = [10**8]
    while len(times_ns) < 120:
        times_ns.append(times_ns[-1] + round(order.gauss(0, 10**6)))
    found = forecasts_of(times_ns)
    repeated = sum(each[0].forecast_ns == time_ns for each, time_ns in zip(found[60:], times_ns[60:], strict=True))
    assert repeated > 40


def test_steps_may_be_missing() -> None:
    forecaster = StepForecaster((1,))
    for step in (*range(20), *range(30, 40)):
        found = forecaster.observe(step, 10**6 + 1000 * step)
    assert [(each.step, each.forecast_ns) for each in found] == [(40, 10**6 + 40000)]
    forecaster = StepForecaster()
    forecaster.observe(3, 10)
    with pytest.raises(ValueError, match="step 3 does not come after step 3"):
        forecaster.observe(3, 10)
