"""Sweeps of simulated devices as a whole, and steps that are found from times alone."""

from __future__ import annotations

import math
import random
from functools import partial

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.shapes.sweep import SweptCase
from perfsuite.experiments.shapes.sweep_analysis import QUARTILE, analysed_sweep, choose_part, estimate
from perfsuite.experiments.shapes.sweep_jumps import (
    compare_steps,
    find_jumps,
    local_noise_ratios,
    noise_ratio,
    period_of,
    rank_correlation,
    roughness_ratio,
)
from perfsuite.experiments.shapes.sweep_record import Jump, ShapeSweep, TileSteps
from perfsuite.measure.shapes.meter import BenchDescription
from perfsuite.testing.shape_meters import SimulatedMeters, padded_time_ns
from tests.synthetic_shape_sweep import bmm_setting, line, staircase, swept

SIZES = range(1, 513)
QUIET = [0.001] * 512


def jump(size: int, height_ns: float = 1000.0, step: int = 1) -> Jump:
    return Jump(size=size, next_size=size + step, height_ns=height_ns, height_ratio=0.1)


def test_each_multiple_is_found_missed_or_hidden() -> None:
    """What is at no multiple is extra, and a fall is neither; of coarse sizes the jump between 61 and 71 is at 64."""
    assert compare_steps([jump(64), jump(70), jump(128, -5.0), jump(192)], SIZES, 64, QUIET) == TileSteps(
        step=64, found=(64, 192), missed=(128, 256, 320, 384, 448), hidden=(), extra=(70,)
    )
    assert compare_steps([], range(1, 131), 64, QUIET).missed == (64,)
    assert compare_steps([], range(1, 132), 64, QUIET).missed == (64, 128)
    assert compare_steps([], range(63, 132), 64, QUIET).missed == (128,)
    assert compare_steps([jump(61, step=10)], range(1, 512, 10), 64, QUIET).found == (64,)
    found = compare_steps([], SIZES, 64, [0.08] * 512)
    assert (found.missed, found.hidden) == ((64, 128, 192), (256, 320, 384, 448))


@pytest.mark.parametrize("period", [8, 32, 100, 150])
def test_a_period_is_that_of_the_jumps(period: int) -> None:
    assert period_of([jump(size) for size in range(period, 510, period)], SIZES) == period


def test_a_period_stands_what_is_missed_and_what_lies_between() -> None:
    jumps = [jump(size) for size in (64, 128, 256, 320, 384, 448)]
    assert period_of([jump(30, 50.0), *jumps, jump(400, 60.0)], SIZES) == 64
    sizes = range(1, 1 << 20, 128)
    jumps = [jump(size, step=128) for size in sizes if size // 8192 != (size + 128) // 8192]
    assert period_of(jumps, sizes) == 8192
    assert period_of([jump(size) for size in (17, 90, 101, 257, 300, 411)], SIZES) is None
    assert period_of([jump(64)], SIZES) is None
    assert period_of([jump(64, -1.0), jump(128, -1.0)], SIZES) is None


def test_ranks_alone_are_compared() -> None:
    """Spearman's coefficient is 1 for whatever grows with the other; what does not vary has None, not NaN."""
    assert rank_correlation([1.0, 2.0, 3.0, 40.0], [1.0, 4.0, 9.0, 10.0]) == pytest.approx(1.0)
    assert rank_correlation([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == pytest.approx(-1.0)
    assert rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    assert rank_correlation([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]) is None
    assert rank_correlation([1.0, 2.0], [1.0, 2.0]) is None


def test_the_estimate_is_the_lower_quartile() -> None:
    """Between samples where it falls between them; of 15 rounds ten may be disturbed."""
    assert estimate([50, 10, 30, 20, 40]).time_ns == 20.0
    assert estimate([40, 10, 20, 30]).time_ns == pytest.approx(17.5)
    assert estimate([7]) == (7.0, 7.0, 7.0)
    quiet = estimate([100, 101, 102, 103, 104] + [110] * 10)
    disturbed = estimate([100, 101, 102, 103, 104] + [9999] * 10)
    assert quiet.time_ns == disturbed.time_ns


def modes(slow_share: float) -> list[list[int]]:
    """Fifteen samples of each of 200 sizes, of which a share takes twice as long."""
    draws = random.Random(2)

    def sample() -> int:
        return round(1e6 * (2.0 if draws.random() < slow_share else 1.0) * draws.lognormvariate(0.0, 0.005))

    return [[sample() for _ in range(15)] for _ in range(200)]


@pytest.mark.parametrize(("slow_share", "part"), [(0.0, 0.25), (0.2, 0.25), (0.65, 0.125), (0.85, 0.5), (1.0, 0.25)])
def test_a_quantile_between_two_modes_is_not_taken(slow_share: float, part: float) -> None:
    """Where 65 of 100 samples are disturbed the eighth is not, and where 85 are the median always is."""
    assert choose_part(modes(slow_share)) == part


def test_few_sizes_have_the_quartile() -> None:
    assert choose_part([[1, 2, 3], [1, 2, 3]]) == QUARTILE


def test_intervals_are_those_of_the_binomial_distribution() -> None:
    """Of 15 rounds the quartile lies between samples 1 and 8, the median between 4 and 12; 10000 are nearly normal."""
    assert estimate(range(101, 116), 0.5) == (108.0, 104.0, 112.0)
    assert estimate(range(101, 116))[1:] == (101.0, 108.0)
    assert estimate([10, 20])[1:] == (10.0, 20.0)
    found = estimate(range(1, 10_001))
    assert found.lower_ns == pytest.approx(2500.5 - 84.9, abs=1.0)
    assert found.upper_ns == pytest.approx(2500.5 + 84.9, abs=1.0)


@pytest.mark.parametrize("n_rounds", [13, 15, 40])
def test_the_interval_holds_the_quartile(n_rounds: int) -> None:
    """In at least 95 of 100 sweeps, whatever the distribution; here it has a long tail."""
    draws = random.Random(1)
    quartile_ns = 1000.0 * 4 / 3
    held = 0
    for _ in range(2000):
        found = estimate([round(1000.0 / (1.0 - draws.random())) for _ in range(n_rounds)])
        held += found.lower_ns <= quartile_ns <= found.upper_ns
    assert held >= 0.94 * 2000


MULTIPLES = tuple(range(64, 510, 64))


def steps_of(sweep: ShapeSweep) -> TileSteps:
    assert sweep.tile_steps is not None
    return sweep.tile_steps


def test_a_perfect_staircase_is_the_model() -> None:
    """Efficiency is that of the model at each size, and each step is found."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=staircase(64), sigma=0.0))
    assert sweep.rank_correlation == pytest.approx(1.0)
    assert sweep.mean_efficiency_ratio == pytest.approx(sweep.expected_mean_efficiency_ratio)
    for point in sweep.points:
        assert point.efficiency_ratio == pytest.approx(point.expected_efficiency_ratio)
        assert point.lower_ns == point.time_ns == point.upper_ns
    assert steps_of(sweep) == TileSteps(step=64, found=MULTIPLES, missed=(), hidden=(), extra=())
    assert (sweep.period, sweep.device, sweep.n_rounds) == (64, "simulated device", 15)


@pytest.mark.parametrize("seed", range(2))
def test_a_noisy_staircase_is_still_one(seed: int) -> None:
    """A launch's fixed time of a tenth of a tile's, and samples that scatter by 3 %."""
    time_ns = partial(padded_time_ns, launch_ns=5_000.0)
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=time_ns, sigma=0.03, seed=seed))
    assert (sweep.rank_correlation or 0.0) > 0.95
    assert steps_of(sweep) == TileSteps(step=64, found=MULTIPLES, missed=(), hidden=(), extra=())
    assert 0.005 < (sweep.noise_ratio or 0.0) < 0.02


@pytest.mark.parametrize("seed", range(2))
def test_a_straight_line_follows_no_tile(seed: int) -> None:
    """Its efficiency is the same everywhere, although the ranks of its times agree with the staircase's."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=line, seed=seed))
    assert sweep.rank_correlation is not None
    assert abs(sweep.rank_correlation) < 0.3
    assert (sweep.time_rank_correlation or 0.0) > 0.98
    assert sweep.jumps == ()
    assert (steps_of(sweep).found, steps_of(sweep).missed) == ((), MULTIPLES)


def test_a_staircase_of_another_tile_has_its_own_period() -> None:
    """Steps at each 48 are not those of a tile of 64."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=staircase(48), sigma=0.005))
    assert sweep.period == 48
    assert (steps_of(sweep).found, steps_of(sweep).missed) == ((192, 384), (64, 128, 256, 320, 448))
    assert steps_of(sweep).extra == (48, 96, 144, 240, 288, 336, 432, 480)


def test_noise_that_hides_steps_is_told() -> None:
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=staircase(64), sigma=0.5))
    assert set(steps_of(sweep).hidden) >= {320, 384, 448}
    assert steps_of(sweep).missed == ()


def test_without_a_whole_tile_the_best_of_all_is_the_measure() -> None:
    sweep = swept(bmm_setting(tile=None), SimulatedMeters(time_ns=staircase(32), sigma=0.003))
    assert (sweep.tile_steps, sweep.rank_correlation, sweep.time_rank_correlation) == (None, None, None)
    assert sweep.period == 32
    assert max(point.efficiency_ratio or 0.0 for point in sweep.points) == 1.0
    sweep = swept(bmm_setting(range(1, 41)), SimulatedMeters(sigma=0.0))
    assert sweep.points[-1].efficiency_ratio == 1.0


def test_a_size_without_a_time_is_missing_and_no_more() -> None:
    meters = SimulatedMeters(crashes=lambda case: case.shape.of("n") in (64, 200), sigma=0.003)
    sweep = swept(bmm_setting(), meters, verifies=True)
    assert [point.size for point in sweep.points if point.missing] == [64, 200]
    assert len(sweep.points) == 512
    assert (sweep.points[63].time_ns, sweep.points[63].efficiency_ratio) == (None, None)
    assert sweep.points[63].expected_efficiency_ratio == 1.0
    assert steps_of(sweep).found == MULTIPLES


def test_correctness_is_told_of_each_size() -> None:
    meters = SimulatedMeters(wrong=lambda case: case.shape.of("n") == 3)
    sweep = swept(bmm_setting(range(1, 9)), meters, verifies=True)
    assert [point.is_correct for point in sweep.points] == [True, True, False, True, True, True, True, True]
    assert sweep.points[2].error_norm == 1.0
    assert {point.is_correct for point in swept(bmm_setting(range(1, 9)), SimulatedMeters()).points} == {None}


def test_a_sweep_of_nothing_is_an_error() -> None:
    """With the reason of its first size."""
    setting = bmm_setting(range(1, 3))
    found = [SweptCase(case=case, samples_ns=(), deviation=None, missing="gone") for case in setting.cases]
    description = BenchDescription(device="device", n_compute_units=1, fingerprint=())
    with pytest.raises(MeasurementError, match="no size was measured; gone"):
        analysed_sweep(setting, found, description, n_rounds=1)


def times_of(tile: int) -> list[float]:
    return [20_000.0 + 300.0 * math.ceil(size / tile) * tile for size in SIZES]


def noisy(times: list[float], share: float, seed: int) -> list[float]:
    draws = np.random.default_rng(seed)
    return [time * (1.0 + share * float(draws.standard_normal())) for time in times]


@pytest.mark.parametrize("tile", [8, 16, 48, 64, 200])
@pytest.mark.parametrize("share", [0.0, 0.001])
def test_each_step_of_a_staircase_is_found(tile: int, share: float) -> None:
    """At every multiple of a tile that nobody named, and nowhere else."""
    found = find_jumps(SIZES, noisy(times_of(tile), share, tile))
    assert [jump.size for jump in found] == list(range(tile, 510, tile))
    assert [jump.next_size for jump in found] == [jump.size + 1 for jump in found]


def test_a_jump_has_its_height() -> None:
    first = find_jumps(SIZES, times_of(64))[0]
    assert first.height_ns == pytest.approx(64 * 300.0)
    assert first.height_ratio == pytest.approx(64 * 300.0 / (20_000.0 + 64 * 300.0))
    (fall,) = find_jumps(range(20), [100.0] * 10 + [70.0] * 10)
    assert (fall.size, fall.next_size) == (9, 10)
    assert fall.height_ns == pytest.approx(-30.0)


@pytest.mark.parametrize("share", [0.0005, 0.003, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("fixed_ns", [0.0, 20_000.0])
def test_a_straight_line_has_no_steps(share: float, fixed_ns: float) -> None:
    times = [fixed_ns + 300.0 * size for size in SIZES]
    assert [find_jumps(SIZES, noisy(times, share, seed)) for seed in range(10)] == [()] * 10


def test_neither_a_bend_nor_a_disturbed_size_is_a_step() -> None:
    """A line that goes on twice as steep, and one that grows ever steeper, have at most one false step in 20."""
    kink = [20_000.0 + max(300.0 * size, 600.0 * size - 60_000.0) for size in SIZES]
    curve = [20_000.0 + 300.0 * size + size**2 for size in SIZES]
    sweeps = [find_jumps(SIZES, noisy(times, 0.01, seed)) for times in (kink, curve) for seed in range(10)]
    assert sum(map(len, sweeps)) <= 1
    times = noisy(times_of(64), 0.003, 1)
    times[200] *= 3.0
    assert [jump.size for jump in find_jumps(SIZES, times)] == list(range(64, 510, 64))


def test_noise_is_what_differs_from_neighbours() -> None:
    """Steps, slopes and disturbances do not count, and nothing is quieter than a thousandth; roughness counts them."""
    assert noise_ratio(times_of(64)) == 0.001
    assert noise_ratio([1.0, 2.0]) == 0.001
    assert noise_ratio(noisy(times_of(64), 0.05, 2)) == pytest.approx(0.05, rel=0.2)
    times = noisy([1000.0] * 500, 0.01, 6)
    smooth = roughness_ratio(times)
    times[250] *= 2.0
    assert roughness_ratio(times) > 1.1 * smooth
    assert noise_ratio(times) < 1.1 * smooth
    assert roughness_ratio([1.0, 2.0]) == 0.0


def test_noise_is_told_where_it_is() -> None:
    times = [*noisy([1000.0] * 300, 0.002, 3), *noisy([1000.0] * 212, 0.1, 4)]
    ratios = local_noise_ratios(times)
    assert len(ratios) == 512
    assert ratios[100] == noise_ratio(times) < 0.01
    assert ratios[400] == pytest.approx(0.1, rel=0.5)
    assert local_noise_ratios([1.0]) == (0.001,)


@pytest.mark.parametrize("n_points", [0, 1, 2, 5])
def test_too_few_sizes_have_no_steps(n_points: int) -> None:
    assert find_jumps(range(n_points), [float(size**3) for size in range(n_points)]) == ()
