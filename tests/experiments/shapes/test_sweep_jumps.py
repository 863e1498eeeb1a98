"""Steps that are found from times alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from perfsuite.experiments.shapes.sweep_jumps import (
    find_jumps,
    local_noise_ratios,
    noise_ratio,
    roughness_ratio,
)

SIZES = range(1, 513)


def steps_of(tile: int) -> list[float]:
    return [20_000.0 + 300.0 * math.ceil(size / tile) * tile for size in SIZES]


def noisy(times: list[float], share: float, seed: int) -> list[float]:
    draws = np.random.default_rng(seed)
    return [time * (1.0 + share * float(draws.standard_normal())) for time in times]


@pytest.mark.parametrize("tile", [8, 16, 48, 64, 200])
@pytest.mark.parametrize("share", [0.0, 0.001])
def test_each_step_of_a_staircase_is_found(tile: int, share: float) -> None:
    """At every multiple of a tile that nobody named, and nowhere else."""
    found = find_jumps(SIZES, noisy(steps_of(tile), share, tile))
    assert [jump.size for jump in found] == list(range(tile, 510, tile))
    assert [jump.next_size for jump in found] == [jump.size + 1 for jump in found]


def test_a_jump_has_its_height() -> None:
    first = find_jumps(SIZES, steps_of(64))[0]
    assert first.height_ns == pytest.approx(64 * 300.0)
    assert first.height_ratio == pytest.approx(64 * 300.0 / (20_000.0 + 64 * 300.0))
    (fall,) = find_jumps(range(20), [100.0] * 10 + [70.0] * 10)
    assert (fall.size, fall.next_size) == (9, 10)
    assert fall.height_ns == pytest.approx(-30.0)


@pytest.mark.parametrize("share", [0.0005, 0.003, 0.01, 0.03, 0.1])
@pytest.mark.parametrize("fixed_ns", [0.0, 20_000.0])
def test_a_straight_line_has_no_steps(share: float, fixed_ns: float) -> None:
    line = [fixed_ns + 300.0 * size for size in SIZES]
    assert [find_jumps(SIZES, noisy(line, share, seed)) for seed in range(10)] == [()] * 10


def test_neither_a_bend_nor_a_disturbed_size_is_a_step() -> None:
    """A line that goes on twice as steep, and one that grows ever steeper, have at most one false step in 20."""
    kink = [20_000.0 + max(300.0 * size, 600.0 * size - 60_000.0) for size in SIZES]
    curve = [20_000.0 + 300.0 * size + size**2 for size in SIZES]
    sweeps = [find_jumps(SIZES, noisy(times, 0.01, seed)) for times in (kink, curve) for seed in range(10)]
    assert sum(map(len, sweeps)) <= 1
    times = noisy(steps_of(64), 0.003, 1)
    times[200] *= 3.0
    assert [jump.size for jump in find_jumps(SIZES, times)] == list(range(64, 510, 64))


def test_noise_is_what_differs_from_neighbours() -> None:
    """Steps, slopes and disturbances do not count, and nothing is quieter than a thousandth; roughness counts them."""
    assert noise_ratio(steps_of(64)) == 0.001
    assert noise_ratio([1.0, 2.0]) == 0.001
    assert noise_ratio(noisy(steps_of(64), 0.05, 2)) == pytest.approx(0.05, rel=0.2)
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
