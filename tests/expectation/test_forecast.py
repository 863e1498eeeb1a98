"""From costs and ceilings to times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.forecast import expect, expected_part_ns, floor_time_ns, with_forecast
from perfsuite.expectation.timing.engine_times import TimeForecast
from perfsuite.records.case import CaseCost, Expectation
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.op_cost import OpCost

from ..synthetic_roofline import processor_ceilings

#: Caches of 1 and 10 MB at 400 and 200 GB/s, memory at 50 GB/s; 0.4 TFLOP/s of floats, 1.6 of integers.
CEILINGS = processor_ceilings()


def forecast(
    *costs: CaseCost, ceilings: Ceilings | None = CEILINGS, best: Ceilings | None = None, **options: Any
) -> Expectation:
    """Forecast with a tolerance of two, for costs of any length, on a device that shows its best."""
    usual: dict[str, Any] = {"tolerance_ratio": 2.0, "least_ns": 0, "spread_ratio": 0.0}
    return expect(costs, ceilings, best or ceilings, **{**usual, **options})


def part(
    *, flops: int = 0, parameter_bytes: int = 0, activation_bytes: int = 0, type: str = "q8_0", held: int = 10**9
) -> CaseCost:
    cost = OpCost(flops=flops, read_bytes=parameter_bytes + activation_bytes, parameter_bytes=parameter_bytes)
    return CaseCost(cost=cost, type=type, working_set_bytes=held)


@st.composite
def case_costs(draw: st.DrawFn) -> CaseCost:
    """Draw a part with any proportion of FLOPs, parameters and activations."""
    counts = st.integers(0, 10**12)
    parameter_bytes = draw(counts)
    cost = OpCost(
        flops=draw(counts),
        read_bytes=parameter_bytes + draw(counts),
        written_bytes=draw(counts),
        parameter_bytes=parameter_bytes,
        n_dispatches=draw(st.integers(1, 1000)),
    )
    kind = draw(st.sampled_from(["f32", "f16", "bf16", "q8_0", "q4_0", "q6_k", "i32"]))
    return CaseCost(cost=cost, type=kind, working_set_bytes=draw(st.integers(0, 10**10)))


@st.composite
def any_ceilings(draw: st.DrawFn) -> Ceilings:
    """Draw ceilings in which a larger set may even be faster, and copying faster than reading."""
    rates = st.floats(1e8, 1e13)
    sizes = sorted(draw(st.sets(st.integers(1, 10**9), min_size=1, max_size=4)))
    return processor_ceilings(
        *((size, draw(rates)) for size in sizes),
        copy_ratio=draw(st.floats(0.1, 10.0)),
        fp32_flops_per_s=draw(rates),
        int8_flops_per_s=draw(rates),
        f16_flops_per_s=draw(st.none() | rates),
        dispatch_ns=draw(st.integers(1, 10**5)),
    )


_PARTS = st.lists(case_costs(), min_size=1, max_size=6)


@given(_PARTS, any_ceilings() | st.just(CEILINGS), st.floats(0.0, 0.1))
def test_the_floor_is_never_above_the_forecast(costs: list[CaseCost], ceilings: Ceilings, spread_ratio: float) -> None:
    """What physics allows at the least is no more than what is expected, and the limit is no less, on any device."""
    found = forecast(*costs, ceilings=ceilings, spread_ratio=spread_ratio)
    assert found.floor_ns is not None
    assert found.expected_ns is not None
    assert found.limit_ns is not None
    assert 0 <= found.floor_ns <= found.expected_ns <= found.limit_ns


@given(_PARTS, case_costs())
def test_more_to_do_takes_no_less(costs: list[CaseCost], more: CaseCost) -> None:
    assert floor_time_ns([*costs, more], CEILINGS) >= floor_time_ns(costs, CEILINGS)
    few, many = forecast(*costs), forecast(*costs, more)
    assert few.expected_ns is not None
    assert many.expected_ns is not None
    assert many.expected_ns >= few.expected_ns


@given(_PARTS, st.floats(1.0, 100.0))
def test_a_faster_device_takes_no_more(costs: list[CaseCost], factor: float) -> None:
    levels = ((size, per_s * factor) for size, per_s in CEILINGS.levels)
    faster = processor_ceilings(*levels, fp32_flops_per_s=4e11 * factor, int8_flops_per_s=1.6e12 * factor)
    assert floor_time_ns(costs, faster) <= floor_time_ns(costs, CEILINGS) * (1 + 1e-9)
    assert all(expected_part_ns(each, faster) <= expected_part_ns(each, CEILINGS) * (1 + 1e-9) for each in costs)


@pytest.mark.parametrize(
    ("cost", "expected_ns", "floor_ns"),
    [
        (part(parameter_bytes=5 * 10**7), 10**6 + 300, 10**6),
        (part(parameter_bytes=5 * 10**7, held=10**7), 250_300, 250_000),
        (part(activation_bytes=10**6), 2_800, 0),
        (part(flops=16 * 10**8), 4 * 10**6 + 300, 10**6),
        (part(flops=16 * 10**8, parameter_bytes=5 * 10**8), 10**7 + 300, 10**7),
        (part(), 300, 0),
    ],
    ids=["memory", "cache", "activations", "arithmetic", "both", "nothing"],
)
def test_the_slower_of_computing_and_moving_counts(cost: CaseCost, expected_ns: int, floor_ns: int) -> None:
    """A forecast is the longer of the two and a dispatch; the floor knows parameters and the fastest arithmetic."""
    assert forecast(cost) == Expectation(floor_ns=floor_ns, expected_ns=expected_ns, limit_ns=2 * expected_ns)


def test_the_floor_rests_on_the_best_that_was_ever_shown() -> None:
    """A device that was faster once has a lower floor, and the forecast of today; so has one whose ceilings spread."""
    best = processor_ceilings(*((size, 1e11) for size, _ in CEILINGS.levels))
    cases: tuple[tuple[dict[str, Any], int], ...] = (({"best": best}, 500_000), ({"spread_ratio": 0.1}, 900_000))
    for options, floor_ns in cases:
        found = forecast(part(parameter_bytes=5 * 10**7), **options)
        assert (found.floor_ns, found.expected_ns) == (floor_ns, 10**6 + 300)
    cost, with_f16 = part(flops=32 * 10**8), replace(CEILINGS, f16_flops_per_s=3.2e12)
    assert [floor_time_ns([cost], each) for each in (CEILINGS, with_f16)] == pytest.approx([2 * 10**6, 10**6])


@pytest.mark.parametrize(
    ("tolerance_ratio", "least_ns", "limit_ns"),
    [(None, 0, None), (3.0, 10**6, 3_000_900), (3.0, 10**6 + 300, 3_000_900), (3.0, 10**6 + 301, None)],
)
def test_a_limit_needs_a_tolerance_and_a_forecast_that_is_long_enough(
    tolerance_ratio: float | None, least_ns: int, limit_ns: int | None
) -> None:
    """Without a tolerance, and for forecasts shorter than the least, nothing is too slow."""
    found = forecast(part(parameter_bytes=5 * 10**7), tolerance_ratio=tolerance_ratio, least_ns=least_ns)
    assert found.limit_ns == limit_ns


CALIBRATED = TimeForecast(expected_ns=1000.4, lower_ns=800.2, upper_ns=1250.6)


def test_a_calibration_replaces_the_forecast_and_keeps_the_floor() -> None:
    """Expectation and interval are the calibration's, in whole ns; what physics forbids stays forbidden."""
    by_ceilings = forecast(part(parameter_bytes=5 * 10**7))
    assert by_ceilings.lower_ns is by_ceilings.upper_ns is None
    found = with_forecast(by_ceilings, CALIBRATED, tolerance_ratio=2.0, least_ns=0)
    assert found == Expectation(
        floor_ns=by_ceilings.floor_ns, expected_ns=1000, lower_ns=800, upper_ns=1251, limit_ns=2501
    )
    without_cost = with_forecast(Expectation(), CALIBRATED, tolerance_ratio=2.0, least_ns=0)
    assert without_cost == replace(found, floor_ns=None)


@pytest.mark.parametrize(
    ("tolerance_ratio", "least_ns", "limit_ns"),
    [(None, 0, None), (1.5, 0, 1876), (1.5, 1000, 1876), (1.5, 1001, None)],
)
def test_a_limit_is_the_upper_bound_times_the_tolerance(
    tolerance_ratio: float | None, least_ns: int, limit_ns: int | None
) -> None:
    """Without a tolerance, and below the least, nothing is too slow; the limit of the ceilings is gone."""
    by_ceilings = forecast(part(parameter_bytes=5 * 10**7), tolerance_ratio=8.0)
    assert by_ceilings.limit_ns is not None
    found = with_forecast(by_ceilings, CALIBRATED, tolerance_ratio=tolerance_ratio, least_ns=least_ns)
    assert found.limit_ns == limit_ns
