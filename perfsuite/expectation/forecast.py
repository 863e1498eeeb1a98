"""From costs and ceilings to times: the least that physics allows, what is expected, the most that passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfsuite.expectation.timing.engine_times import TimeForecast
from perfsuite.records.case import CaseCost, Expectation
from perfsuite.records.ceilings import Ceilings


def expect(
    costs: Sequence[CaseCost],
    ceilings: Ceilings | None,
    best_ceilings: Ceilings | None,
    *,
    tolerance_ratio: float | None,
    least_ns: int,
    spread_ratio: float,
) -> Expectation:
    """Forecast a case from the ceilings of this run, and its floor from the best that the device has ever shown.

    expected = sum over parts of max(FLOPs / FP32 peak, bytes / bandwidth) + dispatches x dispatch cost, with the
    bandwidth of the cache level that holds the part. floor = max(FLOPs / fastest peak, parameter bytes / fastest
    bandwidth), less the ceilings' own spread: only what must be computed and read on any path, so that an honest
    measurement is never below it. limit = expected x tolerance, for forecasts of `least_ns` and more.
    """
    if not costs or ceilings is None or best_ceilings is None:
        return Expectation()
    expected_ns = sum(expected_part_ns(part, ceilings) for part in costs)
    floor_ns = floor_time_ns(costs, best_ceilings) * (1.0 - spread_ratio)
    has_limit = tolerance_ratio is not None and expected_ns >= least_ns
    limit_ns = round(expected_ns * tolerance_ratio) if has_limit and tolerance_ratio else None
    return Expectation(floor_ns=round(floor_ns), expected_ns=round(expected_ns), limit_ns=limit_ns)


def with_forecast(
    expectation: Expectation, forecast: TimeForecast, *, tolerance_ratio: float | None, least_ns: int
) -> Expectation:
    """Replace the forecast of the ceilings by that of a calibration; the floor stays.

    limit = upper bound x tolerance, for forecasts of `least_ns` and more.
    """
    has_limit = tolerance_ratio is not None and forecast.expected_ns >= least_ns
    return replace(
        expectation,
        expected_ns=round(forecast.expected_ns),
        lower_ns=round(forecast.lower_ns),
        upper_ns=round(forecast.upper_ns),
        limit_ns=round(forecast.upper_ns * tolerance_ratio) if has_limit and tolerance_ratio else None,
    )


def expected_part_ns(part: CaseCost, ceilings: Ceilings) -> float:
    """Forecast one part at sustained bandwidth and at the multiply-add peak, ns."""
    cost = part.cost
    activation_bytes = cost.moved_bytes - cost.parameter_bytes
    passed_bytes = part.activation_set_bytes
    if passed_bytes is None:
        passed_bytes = activation_bytes // max(1, cost.n_dispatches)
    memory_s = cost.parameter_bytes / ceilings.sustained_bandwidth_bytes_per_s(part.working_set_bytes)
    memory_s += activation_bytes / ceilings.sustained_bandwidth_bytes_per_s(passed_bytes)
    compute_s = cost.flops / ceilings.fp32_flops_per_s
    return max(compute_s, memory_s) * 1e9 + cost.n_dispatches * (ceilings.dispatch_ns or 0)


def floor_time_ns(costs: Sequence[CaseCost], ceilings: Ceilings) -> float:
    """Return the time below which physics forbids, ns: every part on its fastest path, and nothing else to do."""
    compute_s = sum(part.cost.flops / ceilings.fastest_flops_per_s for part in costs)
    memory_s = sum(
        part.floor_parameter_bytes / ceilings.fastest_bandwidth_bytes_per_s(part.working_set_bytes) for part in costs
    )
    return max(compute_s, memory_s) * 1e9
