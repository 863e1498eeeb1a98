"""The simulated device takes what its formula says, and fails where a fault was planted."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest

from perfsuite.errors import ShapeCrashError
from perfsuite.measure.shapes.meter import ShapeMeters
from perfsuite.testing.shape_meters import SimulatedMeters, padded_time_ns
from perfsuite.workload.shapes.shape_case import ShapeCase


def gemv(n: int) -> ShapeCase:
    return ShapeCase.from_id(f"shape/tiled/gemv/n{n}-k32/f32/tile64-vector8")


def is_odd(case: ShapeCase) -> bool:
    return case.shape.of("n") % 2 == 1


def test_a_shape_takes_what_its_padded_shape_does() -> None:
    """Within a tile the time is one and the same; a tile more adds its FLOPs at the rate."""
    assert padded_time_ns(gemv(1)) == padded_time_ns(gemv(64))
    step_ns = padded_time_ns(gemv(65), flops_per_s=1e9) - padded_time_ns(gemv(64), flops_per_s=1e9)
    assert step_ns == pytest.approx(2 * 64 * 32)
    assert padded_time_ns(gemv(1), launch_ns=5, flops_per_s=1e9, useful=True) == pytest.approx(5 + 64)


def test_without_noise_samples_are_the_formula() -> None:
    """Samples, pairs and rounds of a quiet device are equal; slowdowns multiply."""
    meters: ShapeMeters = SimulatedMeters(
        time_ns=lambda case: 1000.0 * case.shape.of("n"),
        sigma=0.0,
        slowdowns=((is_odd, 2.0), (lambda case: case.shape.of("n") == 3, 1.5)),
    )
    meter = meters.resident()
    assert meter.samples(gemv(2), 2) == (2000, 2000)
    assert meter.pairs(gemv(1), gemv(3), 2).new_ns == (9000, 9000)
    assert meter.round([gemv(4), gemv(1)], order_seed=1) == (4000, 2000)
    assert meter.round([], order_seed=1) == ()


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


def test_a_crash_names_its_case_and_the_next_call_is_answered() -> None:
    """A round dies at the case where the fault is, and the process that follows is another one."""
    meters = SimulatedMeters(sigma=0.0, process_sigma=0.3, crashes=is_odd)
    meter = meters.resident()
    before = meter.samples(gemv(2), 1)
    with pytest.raises(ShapeCrashError, match="n3-k32"):
        meter.round([gemv(2), gemv(3), gemv(4)], order_seed=0)
    assert meter.samples(gemv(2), 1) != before
    assert meters.n_crashes == 1


def test_calls_samples_and_processes_are_counted() -> None:
    """A test can say how much was measured, and that nothing stayed open; what was planted is wrong or odd."""
    meters = SimulatedMeters(wrong=is_odd, problem=lambda case: "odd" if is_odd(case) else None)
    meters.resident().pairs(gemv(1), gemv(2), 5)
    with meters.fresh() as meter:
        meter.samples(gemv(1), 3)
        assert meters.n_open == 1
    assert (meters.n_fresh, meters.n_open) == (1, 0)
    assert meters.n_calls == {"pairs": 1, "samples": 1}
    assert meters.n_samples == {gemv(1).case_id: 8, gemv(2).case_id: 5}
    resident = meters.resident()
    assert resident is meters.resident()
    assert resident.description.n_compute_units == 2
    assert [resident.verify(gemv(n)).is_correct for n in (1, 2)] == [False, True]
    assert [resident.problem(gemv(n)) for n in (1, 2)] == ["odd", None]


def test_a_round_draws_its_noise_in_a_drawn_order() -> None:
    """Equal cases at other places of another order have other samples, and each has its own place in the answer."""
    cases = [gemv(64 * n) for n in range(1, 7)]
    rounds = [SimulatedMeters(sigma=0.01).resident().round(cases, order_seed=seed) for seed in (1, 1, 2)]
    assert rounds[0] == rounds[1] != rounds[2]
    places = list(range(6))
    random.Random(1).shuffle(places)
    stream = replace(SimulatedMeters(sigma=0.01), time_ns=lambda case: 1e6).resident().samples(gemv(1), 6)
    drawn = {place: stream[turn] / 1e6 * padded_time_ns(cases[place]) for turn, place in enumerate(places)}
    assert rounds[0] == tuple(pytest.approx(drawn[place], rel=1e-4) for place in range(6))
