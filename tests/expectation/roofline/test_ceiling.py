"""The ceilings of a device, by processor and number of threads, joined from several rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.roofline.ceiling import Rate, Resource, Survey, merge_surveys
from perfsuite.expectation.roofline.point import Regime, Roof

from ...synthetic_roofline import (
    CACHE_BYTES,
    FP32_FLOPS_PER_S,
    INT8_FLOPS_PER_S,
    MEMORY_BYTES,
    bandwidth_ceiling,
    ceilings,
    compute_ceiling,
    rate,
    survey,
)

#: 400 GFLOP/s over 20 GB/s.
ROOF = Roof(peak_flops_per_s=400e9, bandwidth_bytes_per_s=20e9)


@pytest.mark.parametrize(
    ("intensity", "expected", "regime"),
    [
        (0.0, 0.0, Regime.MEMORY),
        (0.25, 5e9, Regime.MEMORY),
        (19.0, 380e9, Regime.MEMORY),
        (19.999, 399.98e9, Regime.MEMORY),
        (20.0, 400e9, Regime.COMPUTE),
        (20.001, 400e9, Regime.COMPUTE),
        (1e6, 400e9, Regime.COMPUTE),
    ],
)
def test_below_the_ridge_the_roof_is_bandwidth_and_from_it_on_peak(
    intensity: float, expected: float, regime: Regime
) -> None:
    """400 GFLOP/s over 20 GB/s meet at 20 FLOPs a byte."""
    assert ROOF.ridge_point == 20.0
    assert ROOF.attainable_flops_per_s(intensity) == pytest.approx(expected)
    assert ROOF.regime(intensity) is regime


def test_of_takes_the_best_of_each_ceiling() -> None:
    """A level's rate is the fastest of read, copy and triad, and what is missing is None."""
    kinds = {"read": 3e9, "copy": 5e9, "triad": 4e9}
    found = Survey(
        ceilings=(
            *(bandwidth_ceiling(per_s, MEMORY_BYTES, kind=kind) for kind, per_s in kinds.items()),
            bandwidth_ceiling(9e9, CACHE_BYTES),
            *(compute_ceiling(per_s, kind=kind) for kind, per_s in (("fp32", 1e9), ("f16", None), ("int8", 4e9))),
        )
    ).of(2)
    assert found.levels == ((CACHE_BYTES, 9e9), (MEMORY_BYTES, 5e9))
    assert (found.fp32_flops_per_s, found.f16_flops_per_s, found.int8_flops_per_s) == (1e9, None, 4e9)
    assert (found.n_threads, found.dispatch_ns) == (2, None)


def test_processors_and_threads_are_kept_apart() -> None:
    """One thread has half of what two have, a device of OpenCL is no processor."""
    device = ceilings(None, processor="GPU", share=3.0)
    found = Survey(ceilings=(*survey(1, 2).ceilings, *device))
    assert found.thread_counts == {1, 2}
    assert found.of(1).fp32_flops_per_s == FP32_FLOPS_PER_S / 2
    assert found.of(2).int8_flops_per_s == INT8_FLOPS_PER_S


def spread(per_s: float, spread_ratio: float) -> dict[str, Rate]:
    return {"rate": rate(per_s, spread_ratio)}


def test_the_spread_is_that_of_memory_or_of_arithmetic() -> None:
    """Of bandwidth the fastest use of the largest working set counts, of arithmetic the type that swings the most."""
    found = Survey(
        ceilings=(
            bandwidth_ceiling(1e9, CACHE_BYTES, **spread(1e9, 0.9)),
            bandwidth_ceiling(1e9, MEMORY_BYTES, **spread(1e9, 0.2)),
            bandwidth_ceiling(9e8, MEMORY_BYTES, kind="copy", **spread(9e8, 0.5)),
            compute_ceiling(1e9, **spread(1e9, 0.1)),
            compute_ceiling(4e9, kind="int8", **spread(4e9, 0.3)),
        )
    )
    assert found.spread_ratio(Resource.BANDWIDTH, 2) == pytest.approx(0.2)
    assert found.spread_ratio(Resource.COMPUTE, 2) == pytest.approx(0.3)
    assert found.spread_ratio(Resource.COMPUTE, 3) == 0.0


def test_a_working_set_that_could_not_be_had_is_not_the_largest() -> None:
    """Where the largest working set is missing, the spread is that of the largest that was measured."""
    found = (
        bandwidth_ceiling(1e9, CACHE_BYTES, **spread(1e9, 0.4)),
        bandwidth_ceiling(1e9, MEMORY_BYTES, rate=None, missing="no memory"),
    )
    assert Survey(ceilings=found).spread_ratio(Resource.BANDWIDTH, 2) == pytest.approx(0.4)


def surveyed(best: float | None, median: float | None = None, n_rounds: int = 5) -> Survey:
    """Return a survey of 32-bit floats alone."""
    ceiling = compute_ceiling(best)
    if best is not None:
        ceiling = replace(ceiling, rate=Rate(best_per_s=best, median_per_s=median or best, n_rounds=n_rounds))
    return Survey(ceilings=(ceiling,))


def test_merging_keeps_the_best_and_weighs_medians_by_rounds() -> None:
    """Five rounds of median 80 and fifteen of 60 have 65; the best of all is the best."""
    (merged,) = merge_surveys([surveyed(100.0, 80.0, 5), surveyed(90.0, 60.0, 15)]).ceilings
    assert merged.rate == Rate(best_per_s=100.0, median_per_s=65.0, n_rounds=20)


def test_a_ceiling_that_one_survey_lacks_is_the_others() -> None:
    """What was measured once is measured; what was measured never keeps its reason."""
    for pair in ((surveyed(None), surveyed(90.0)), (surveyed(90.0), surveyed(None))):
        assert merge_surveys(pair) == surveyed(90.0)
    assert merge_surveys([surveyed(None), surveyed(None)]) == surveyed(None)
    assert merge_surveys([]) == Survey(ceilings=())


@given(st.lists(st.tuples(st.floats(1e-3, 1e15), st.floats(0.01, 1.0), st.integers(1, 50)), min_size=1, max_size=8))
def test_a_merged_median_stays_at_or_below_the_best(rounds: list[tuple[float, float, int]]) -> None:
    runs = [surveyed(best, best * share, n_rounds) for best, share, n_rounds in rounds]
    (merged,) = merge_surveys(runs).ceilings
    assert merged.rate is not None
    assert merged.rate.median_per_s <= merged.rate.best_per_s
    assert merged.rate.best_per_s == max(best for best, _, _ in rounds)
