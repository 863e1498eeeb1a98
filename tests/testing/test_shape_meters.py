"""The simulated device takes what its formula says, and fails where a fault was planted."""

from __future__ import annotations

import statistics

import pytest

from perfsuite.testing.shape_meters import SimulatedMeters, padded_time_ns
from perfsuite.workload.shapes.shape_case import ShapeCase


def gemv(n: int) -> ShapeCase:
    return ShapeCase.from_id(f"shape/tiled/gemv/n{n}-k32/f32/tile64-vector8")


def test_noise_is_log_normal_and_drawn_from_the_seed() -> None:
    """The logarithms spread as asked for; the same seed draws the same, another one does not."""
    samples = SimulatedMeters(sigma=0.1, seed=1).resident().samples(gemv(1), 2000)
    assert samples == SimulatedMeters(sigma=0.1, seed=1).resident().samples(gemv(1), 2000)
    assert samples != SimulatedMeters(sigma=0.1, seed=2).resident().samples(gemv(1), 2000)
    quiet_ns = padded_time_ns(gemv(1))
    assert statistics.stdev(sample / quiet_ns for sample in samples) == pytest.approx(0.1, rel=0.1)
    assert statistics.median(samples) == pytest.approx(quiet_ns, rel=0.02)


def test_the_factor_of_a_process_cancels_from_its_pairs() -> None:
    meters = SimulatedMeters(sigma=0.0, process_sigma=0.3)
    ratios, times = set(), set()
    for _ in range(3):
        with meters.fresh() as meter:
            pairs = meter.pairs(gemv(1), gemv(65), 1)
        ratios.add(round(pairs.new_ns[0] / pairs.old_ns[0], 3))
        times.add(pairs.old_ns[0])
    assert len(times) == 3
    assert len(ratios) == 1


def test_the_factor_of_a_placement_shows_on_fresh_processes_only() -> None:
    """Within a process it is the same at each sample, whatever was measured before; in another one it is another."""
    meters = SimulatedMeters(sigma=0.0, placement_sigma=0.3)
    first = meters.resident().samples(gemv(1), 3)
    meters.resident().samples(gemv(2), 3)
    assert {*first, *meters.resident().samples(gemv(1), 1)} == {first[0]}
    with meters.fresh() as meter:
        assert meter.samples(gemv(1), 1)[0] != first[0]
