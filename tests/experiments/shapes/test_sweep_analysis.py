"""Sweeps of simulated devices as a whole."""

from __future__ import annotations

from functools import partial

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.shapes.sweep import SweptCase
from perfsuite.experiments.shapes.sweep_analysis import analysed_sweep
from perfsuite.measure.shapes.meter import BenchDescription
from perfsuite.testing.shape_meters import SimulatedMeters, padded_time_ns
from perfsuite.workload.shapes.shape_case import ShapeCase
from tests.synthetic_shape_sweep import bmm_setting, line, staircase, swept

MULTIPLES = tuple(range(64, 510, 64))


def test_a_perfect_staircase_is_the_model() -> None:
    """Efficiency is that of the model at each size, and each step is found."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=staircase(64), sigma=0.0))
    assert sweep.rank_correlation == pytest.approx(1.0)
    assert sweep.mean_efficiency_ratio == pytest.approx(sweep.expected_mean_efficiency_ratio)
    for point in sweep.points:
        assert point.efficiency_ratio == pytest.approx(point.expected_efficiency_ratio)
        assert point.lower_ns == point.time_ns == point.upper_ns
    assert sweep.tile_steps is not None
    assert (sweep.tile_steps.found, sweep.tile_steps.missed, sweep.tile_steps.extra) == (MULTIPLES, (), ())
    assert sweep.period == 64
    assert (sweep.device, sweep.n_rounds) == ("simulated device", 15)


@pytest.mark.parametrize("seed", range(3))
def test_a_noisy_staircase_is_still_one(seed: int) -> None:
    """A launch's fixed time of a tenth of a tile's, and samples that scatter by 3 %."""
    time_ns = partial(padded_time_ns, launch_ns=5_000.0)
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=time_ns, sigma=0.03, seed=seed))
    assert sweep.rank_correlation is not None
    assert sweep.rank_correlation > 0.95
    assert sweep.tile_steps is not None
    assert (sweep.tile_steps.found, sweep.tile_steps.extra) == (MULTIPLES, ())
    assert sweep.noise_ratio is not None
    assert 0.005 < sweep.noise_ratio < 0.02


@pytest.mark.parametrize("seed", range(3))
def test_a_straight_line_follows_no_tile(seed: int) -> None:
    """Its efficiency is the same everywhere, although the ranks of its times agree with the staircase's."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=line, seed=seed))
    assert sweep.rank_correlation is not None
    assert abs(sweep.rank_correlation) < 0.3
    assert sweep.time_rank_correlation is not None
    assert sweep.time_rank_correlation > 0.98
    assert sweep.jumps == ()
    assert sweep.tile_steps is not None
    assert sweep.tile_steps.found == ()
    assert sweep.tile_steps.missed == MULTIPLES


def test_a_staircase_of_another_tile_has_its_own_period() -> None:
    """Steps at each 48 are not those of a tile of 64."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=staircase(48), sigma=0.005))
    assert sweep.period == 48
    assert sweep.tile_steps is not None
    assert sweep.tile_steps.found == (192, 384)
    assert sweep.tile_steps.missed == (64, 128, 256, 320, 448)
    assert sweep.tile_steps.extra == (48, 96, 144, 240, 288, 336, 432, 480)


def test_noise_that_hides_steps_is_told() -> None:
    """Samples that scatter by half of themselves."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=staircase(64), sigma=0.5))
    assert sweep.tile_steps is not None
    assert set(sweep.tile_steps.hidden) >= {320, 384, 448}
    assert sweep.tile_steps.missed == ()


def test_a_subject_without_a_tile_has_what_is_found() -> None:
    """Steps and their period, and efficiency against the best of all sizes."""
    sweep = swept(bmm_setting(tile=None), SimulatedMeters(time_ns=staircase(32), sigma=0.003))
    assert (sweep.tile_steps, sweep.rank_correlation, sweep.time_rank_correlation) == (None, None, None)
    assert sweep.period == 32
    assert max(point.efficiency_ratio or 0.0 for point in sweep.points) == 1.0


def test_a_size_without_a_time_is_missing_and_no_more() -> None:
    """The others have their efficiencies, and the steps are found around it."""
    meters = SimulatedMeters(crashes=lambda case: case.shape.of("n") in (64, 200), sigma=0.003)
    sweep = swept(bmm_setting(), meters, verifies=True)
    assert [point.size for point in sweep.points if point.missing] == [64, 200]
    assert len(sweep.points) == 512
    assert (sweep.points[63].time_ns, sweep.points[63].efficiency_ratio) == (None, None)
    assert sweep.points[63].expected_efficiency_ratio == 1.0
    assert sweep.tile_steps is not None
    assert sweep.tile_steps.found == MULTIPLES


def test_correctness_is_told_of_each_size() -> None:
    """None where nothing was verified."""
    meters = SimulatedMeters(wrong=lambda case: case.shape.of("n") == 3)
    sweep = swept(bmm_setting(range(1, 9)), meters, verifies=True)
    assert [point.is_correct for point in sweep.points] == [True, True, False, True, True, True, True, True]
    assert sweep.points[2].error_norm == 1.0
    assert {point.is_correct for point in swept(bmm_setting(range(1, 9)), SimulatedMeters()).points} == {None}


def test_without_a_whole_tile_the_best_of_all_is_the_measure() -> None:
    """Sizes of 1 to 40 at tile 64."""
    sweep = swept(bmm_setting(range(1, 41)), SimulatedMeters(sigma=0.0))
    assert sweep.points[-1].efficiency_ratio == 1.0


def test_a_sweep_of_nothing_is_an_error() -> None:
    """With the reason of its first size."""
    setting = bmm_setting(range(1, 3))
    found = [_missing(case) for case in setting.cases]
    description = BenchDescription(device="device", n_compute_units=1, fingerprint=())
    with pytest.raises(MeasurementError, match="no size was measured; gone"):
        analysed_sweep(setting, found, description, n_rounds=1)


def _missing(case: ShapeCase) -> SweptCase:
    return SweptCase(case=case, samples_ns=(), deviation=None, missing="gone")
