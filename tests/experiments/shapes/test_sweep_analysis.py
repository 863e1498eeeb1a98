"""Sweeps of simulated devices as a whole, steps that are found from times alone, and sentences about both."""

from __future__ import annotations

import csv
import math
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from perfsuite.experiments.shapes.sweep_analysis import choose_part, estimate
from perfsuite.experiments.shapes.sweep_findings import (
    shape_sweep_chart,
    sweep_finding,
    sweep_remarks,
)
from perfsuite.experiments.shapes.sweep_jumps import (
    compare_steps,
    find_jumps,
    period_of,
)
from perfsuite.experiments.shapes.sweep_record import COLUMNS, Jump, ShapeSweep, TileSteps, write_sweep_csv
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


def test_a_period_stands_what_is_missed_and_what_lies_between() -> None:
    jumps = [jump(size) for size in (64, 128, 256, 320, 384, 448)]
    assert period_of([jump(30, 50.0), *jumps, jump(400, 60.0)], SIZES) == 64
    sizes = range(1, 1 << 20, 128)
    jumps = [jump(size, step=128) for size in sizes if size // 8192 != (size + 128) // 8192]
    assert period_of(jumps, sizes) == 8192
    assert period_of([jump(size) for size in (17, 90, 101, 257, 300, 411)], SIZES) is None
    assert period_of([jump(64)], SIZES) is None
    assert period_of([jump(64, -1.0), jump(128, -1.0)], SIZES) is None


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


@pytest.mark.long_but_first
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


def test_a_row_has_a_size(tmp_path: Path) -> None:
    """What is not known is empty, and the line of the chart goes on behind it."""
    meters = SimulatedMeters(crashes=lambda case: case.shape.of("n") == 2, sigma=0.0)
    sweep = swept(bmm_setting(range(1, 4)), meters)
    write_sweep_csv(sweep, tmp_path / "sweep.csv")
    with (tmp_path / "sweep.csv").open(newline="") as written:
        rows = list(csv.DictReader(written))
    assert tuple(rows[0]) == COLUMNS
    assert [row["size"] for row in rows] == ["1", "2", "3"]
    assert float(rows[0]["time_ns"]) == sweep.points[0].time_ns
    assert (rows[1]["time_ns"], rows[0]["missing"]) == ("", "")
    assert "n2-" in rows[1]["missing"]
    assert shape_sweep_chart(sweep).panels[0].lines[0].x == (1.0, 3.0)


def test_what_disagrees_with_the_tile_is_told() -> None:
    """Each missing step, a distance that is not the tile's, and noise where it is to blame, with what it hides."""
    sweep = swept(bmm_setting(), SimulatedMeters(time_ns=line))
    assert sweep_finding(sweep).startswith("Steps at 0 of 7 multiples of 64; ")
    (remark,) = sweep_remarks(sweep)
    assert remark.startswith("No step at n = 64, 128, 192, 256, 320, 384, 448, ")
    sweep = swept(bmm_setting(tile=64), SimulatedMeters(time_ns=staircase(48), sigma=0.003))
    assert "The steps are 48 apart, not 64: that is not the tile which computes." in sweep_remarks(sweep)
    none = swept(bmm_setting(range(1, 191)), SimulatedMeters(time_ns=staircase(48), sigma=0.003))
    assert sweep_finding(none).startswith("3 steps, 48 apart, none at a multiple of 64; ")
    remarks = list(sweep_remarks(swept(bmm_setting(), SimulatedMeters(time_ns=staircase(64), sigma=0.5))))
    (noisy,) = (each for each in remarks if each.startswith("Too noisy: times scatter by "))
    assert "448" in noisy


def test_a_sweep_without_multiples_says_what_there_is() -> None:
    assert sweep_finding(swept(bmm_setting(tile=None), SimulatedMeters(time_ns=staircase(32), sigma=0.003))) == (
        "15 steps, 32 apart"
    )
    assert sweep_finding(swept(bmm_setting(tile=None), SimulatedMeters(time_ns=line))) == "No steps"
    assert sweep_finding(swept(bmm_setting(range(1, 41)), SimulatedMeters())).startswith(
        "No multiple of 64 lies well inside the range"
    )


def test_falling_sizes_are_named() -> None:
    meters = SimulatedMeters(time_ns=lambda case: 1e6 if case.shape.of("n") <= 32 else 5e5, sigma=0.003)
    remarks = list(sweep_remarks(swept(bmm_setting(range(1, 65), tile=None), meters)))
    assert remarks == ["The time falls behind n = 32: a larger size is faster there."]
