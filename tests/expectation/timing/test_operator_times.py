"""Forecasts of single operators from those that were measured."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.op_rules import ELSE
from perfsuite.expectation.timing.calibration import CalibrationPoint
from perfsuite.expectation.timing.features import family
from perfsuite.expectation.timing.grid import TOKEN_LEVELS, standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import (
    LEAST_SPREAD_RATIO,
    STAND_IN_SPREAD_RATIO,
    OperatorTimes,
    efficiency,
    nonnegative_weights,
)

from ...synthetic_calibration import N_THREADS, Law, lawful_ns, points_of
from ...synthetic_roofline import processor_ceilings

_WEIGHT = st.floats(0.0, 100.0)


@given(st.lists(_WEIGHT, min_size=3, max_size=3))
def test_a_sum_of_terms_is_found_again(weights: list[float]) -> None:
    terms = [(1.0, n * 1e6, n * n * 1e-3) for n in (1.0, 2.0, 3.0, 5.0, 8.0)]
    values = [sum(weight * term for weight, term in zip(weights, row, strict=True)) for row in terms]
    found = nonnegative_weights(terms, values)
    again = [sum(weight * term for weight, term in zip(found, row, strict=True)) for row in terms]
    assert again == pytest.approx(values, rel=1e-6, abs=1e-6)
    assert min(found) >= 0.0


@pytest.mark.parametrize(
    ("terms", "values", "least"),
    [
        ((10.0, 30.0), (900.0, 300.0), (600.0, 0.0)),
        ((10.0, 30.0), (0.0, 400.0), (0.0, 12.0)),
        ((10.0, 30.0), (0.0, 0.0), (0.0, 0.0)),
        ((0.0, 0.0), (5.0, 5.0), (5.0, 0.0)),
    ],
)
def test_a_weight_stops_at_nothing(
    terms: tuple[float, float], values: tuple[float, float], least: tuple[float, float]
) -> None:
    """A line that would fall is flat, one that would start below nothing starts there; a term of 0 weighs nothing."""
    assert nonnegative_weights([(1.0, term) for term in terms], values) == pytest.approx(least, abs=1e-6)


#: A cache of 400 GB/s and memory of 50 GB/s; 0.4 TFLOP/s.
CEILINGS = processor_ceilings((10**6, 4e11), (10**8, 5e10))
PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=1024, n_outer=512, n_tokens=8)


def test_efficiency_is_work_over_time_over_the_peaks() -> None:
    """A product of 2 x 1024 x 512 x 8 FLOPs in 100 us reaches so much of 0.4 TFLOP/s and of memory's 50 GB/s."""
    times = fitted([replace(PRODUCT, n_inner=k) for k in (256, 512, 1024, 2048)], lambda _: 1e5)
    found = efficiency(PRODUCT, times, CEILINGS)
    assert found.spread_ratio == times.time(PRODUCT).spread_ratio
    flops = 2 * 1024 * 512 * 8
    n_bytes = 1024 // 32 * 34 * 512 + 4 * 8 * (1024 + 512)
    assert found.time_ns == pytest.approx(1e5)
    assert found.flops_per_s == pytest.approx(flops / 1e-4)
    assert found.compute_ratio == pytest.approx(flops / 1e-4 / 4e11)
    assert found.bytes_per_s == pytest.approx(n_bytes / 1e-4)
    assert found.memory_ratio == pytest.approx(n_bytes / 1e-4 / 5e10)


#: Operators of models of the catalogue, of sizes that the grid has not.
UNSEEN = (
    OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536),
    OperatorShape(op="MUL_MAT", type="q4_k", n_inner=896, n_outer=151936),
    OperatorShape(op="MUL_MAT", type="f16", n_inner=8192, n_outer=2048),
    OperatorShape(op="MUL_MAT", type="f16", n_inner=96, n_outer=640, n_heads=10, n_kv_heads=5),
    OperatorShape(op="MUL_MAT_ID", type="q4_0", n_inner=2048, n_outer=1408, n_experts=60, n_used=4),
    OperatorShape(op="FLASH_ATTN_EXT", type="f16", n_inner=80, n_heads=14, n_kv_heads=2, n_past=777),
    OperatorShape(op="SOFT_MAX", type="f32", n_inner=768, n_heads=9),
    OperatorShape(op="ROPE", type="f32", n_inner=96, n_heads=14),
    OperatorShape(op="RMS_NORM+MUL", type="f32", n_inner=896),
    OperatorShape(op="ADD", type="f32", n_inner=576),
    OperatorShape(op="SWIGLU", type="f32", n_inner=8960),
    OperatorShape(op="CPY", type="f32", n_inner=192),
    OperatorShape(op="GET_ROWS", type="f32", n_inner=3072),
    OperatorShape(op="SET_ROWS", type="f16", n_inner=320),
)


@pytest.fixture(scope="module")
def times() -> OperatorTimes:
    """Return the fits to the standard grid on a device that follows the law."""
    return OperatorTimes(points_of(standard_shapes()), n_threads=N_THREADS)


def products(count: int = 12, levels: Iterable[int] = TOKEN_LEVELS, *, type: str = "q8_0") -> list[OperatorShape]:
    """Return products with weights of many sizes, at each level of rows."""
    draw = random.Random(3)
    sizes = [(256 * draw.randint(1, 24), 64 * draw.randint(2, 96)) for _ in range(count)]
    return [OperatorShape(op="MUL_MAT", type=type, n_inner=k, n_outer=m, n_tokens=n) for k, m in sizes for n in levels]


def fitted(shapes: Iterable[OperatorShape], law: Law = lawful_ns) -> OperatorTimes:
    return OperatorTimes(points_of(shapes, law), n_threads=N_THREADS)


@pytest.mark.parametrize("shape", UNSEEN, ids=lambda shape: "/".join(family(shape)))
def test_a_law_is_recovered_at_the_levels(times: OperatorTimes, shape: OperatorShape) -> None:
    """Where times follow the terms, any shape of the kind is forecast exactly at rows that were measured."""
    levels = {known.n_tokens for known in standard_shapes() if family(known) == family(shape)}
    for n_tokens in levels:
        wanted = replace(shape, n_tokens=n_tokens)
        assert times.time(wanted).time_ns == pytest.approx(lawful_ns(wanted), rel=0.01), n_tokens


@pytest.mark.parametrize("shape", [each for each in UNSEEN if "ATTN" not in each.op and "_ID" not in each.op], ids=str)
def test_a_law_is_recovered_between_the_levels(times: OperatorTimes, shape: OperatorShape) -> None:
    """Where times grow by a power of the rows, rows between two levels are forecast exactly too."""
    for n_tokens in (2, 5, 20, 64, 100, 300, 511):
        wanted = replace(shape, n_tokens=n_tokens)
        assert times.time(wanted).time_ns == pytest.approx(lawful_ns(wanted), rel=0.01), n_tokens


@pytest.mark.parametrize("n_tokens", [600, 1024, 4096])
def test_beyond_the_last_level_it_goes_on_alike(n_tokens: int) -> None:
    times = fitted(products(levels=(8, 128)))
    shape = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=2048, n_outer=8192, n_tokens=n_tokens)
    assert times.time(shape).time_ns == pytest.approx(lawful_ns(shape), rel=0.01)
    single = replace(shape, n_tokens=1)
    assert times.time(single).time_ns == pytest.approx(lawful_ns(single), rel=0.01)


def test_the_last_two_levels_decide_what_is_beyond() -> None:
    """A kind that takes 4 times as long from 128 to 512 rows takes another 4 times as long at 2048."""
    per_level = {1: 1.0, 128: 3.0, 512: 12.0}
    times = fitted(products(levels=per_level), lambda shape: 1e4 * per_level[shape.n_tokens])
    shape = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=2048, n_outer=512)
    expected = {1: 1e4, 128: 3e4, 256: 6e4, 512: 12e4, 2048: 48e4}
    found = {n: times.time(replace(shape, n_tokens=n)).time_ns for n in expected}
    assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("shape", UNSEEN, ids=lambda shape: "/".join(family(shape)))
def test_more_rows_take_longer(times: OperatorTimes, shape: OperatorShape) -> None:
    found = [times.time(replace(shape, n_tokens=n)).time_ns for n in range(1, 700)]
    assert all(fewer < more for fewer, more in pairwise(found))


def test_one_level_alone_grows_with_the_rows() -> None:
    times = fitted(products(levels=(8,)))
    shape = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=1024, n_outer=4096, n_tokens=8)
    assert times.time(shape).time_ns == pytest.approx(lawful_ns(shape), rel=0.01)
    for n_tokens in (1, 4, 16, 800):
        found = times.time(replace(shape, n_tokens=n_tokens)).time_ns
        assert found == pytest.approx(lawful_ns(shape) * n_tokens / 8, rel=0.01)


def test_a_law_without_noise_has_the_least_spread(times: OperatorTimes) -> None:
    """No fit is believed to be better than what one process of the same work differs from the next by."""
    assert {fit.spread_ratio for fit in times.fits.values()} == {LEAST_SPREAD_RATIO}
    assert {times.time(shape).spread_ratio for shape in UNSEEN} == {LEAST_SPREAD_RATIO}


@pytest.mark.parametrize("noise_ratio", [0.05, 0.1, 0.2])
def test_the_spread_is_near_the_noise(noise_ratio: float) -> None:
    """With many points, what is wrong with those that are left out is the noise of a single one."""
    draw = random.Random(7)
    times = fitted(products(120), lambda shape: lawful_ns(shape) * math.exp(draw.gauss(0.0, noise_ratio)))
    (fit,) = times.fits.values()
    assert fit.spread_ratio == pytest.approx(noise_ratio, rel=0.2)
    assert fit.n_points == 120 * len(TOKEN_LEVELS)


def test_the_spread_is_of_points_that_the_fit_did_not_see() -> None:
    """As many terms as points fit anything, and yet four points that follow no law have a large spread."""
    shapes = [
        OperatorShape(op="MUL_MAT", type="f16", n_inner=k, n_outer=m) for k, m in ((64, 64), (512, 64), (64, 512))
    ]
    last = OperatorShape(op="MUL_MAT", type="f16", n_inner=512, n_outer=512)
    taken = dict(zip([*shapes, last], (1e4, 2e4, 3e4, 1e5), strict=True))
    times = fitted(taken, taken.__getitem__)
    assert times.time(last).time_ns == pytest.approx(1e5, rel=0.01)
    assert times.time(last).spread_ratio > 0.3


def test_a_round_that_was_disturbed_spoils_nothing() -> None:
    shapes = products()
    rounds = [CalibrationPoint(shape=each, rounds_ns=(lawful_ns(each), 1e12, lawful_ns(each))) for each in shapes]
    found = OperatorTimes(rounds, n_threads=N_THREADS).time(shapes[5])
    assert found.time_ns == pytest.approx(lawful_ns(shapes[5]), rel=0.01)


def test_too_few_points_to_leave_one_out_are_not_trusted() -> None:
    found = fitted(products(2)).time(UNSEEN[0])
    assert found.spread_ratio == STAND_IN_SPREAD_RATIO


@pytest.mark.parametrize(
    ("op", "type", "stands_in"),
    [
        *(("MUL_MAT", name, ("MUL_MAT", "q4_0")) for name in ("iq4_nl", "q2_k", "iq1_s")),
        ("MUL_MAT", "q4_1", ("MUL_MAT", "q5_0")),
        ("MUL_MAT", "bf16", ("MUL_MAT", "f16")),
        *((op, "f32", ("SWIGLU", "f32")) for op in ("REGLU", "GELU_QUICK")),
        ("RMS_NORM", "f32", ("RMS_NORM+MUL", "f32")),
        ("CONT", "f32", ("CPY", "f32")),
        ("CLAMP", "f32", (ELSE, "f32")),
    ],
)
def test_what_was_not_measured_takes_its_stand_in(
    times: OperatorTimes, op: str, type: str, stands_in: tuple[str, str]
) -> None:
    """The type nearest in bytes, the operator that works alike or else a product, which is not believed as much."""
    n_outer = 512 if op == "MUL_MAT" else 0
    shape = OperatorShape(op=op, type=type, n_inner=1024, n_outer=n_outer, n_tokens=8)
    found = times.time(shape)
    assert found.family == stands_in
    assert found.time_ns == times.time(replace(shape, op=stands_in[0], type=stands_in[1])).time_ns
    assert found.spread_ratio == STAND_IN_SPREAD_RATIO


def test_a_stand_in_that_is_worse_keeps_its_own_spread() -> None:
    draw = random.Random(1)
    times = fitted(products(20), lambda shape: lawful_ns(shape) * math.exp(draw.gauss(0.0, 2.0)))
    (fit,) = times.fits.values()
    assert fit.spread_ratio > STAND_IN_SPREAD_RATIO
    assert times.time(replace(UNSEEN[0], type="q4_0")).spread_ratio == fit.spread_ratio


def test_weights_are_never_negative() -> None:
    """More of a term never makes a forecast shorter, however noisy the points are."""
    draw = random.Random(2)
    (fit,) = fitted(products(8), lambda _: draw.uniform(1e3, 1e6)).fits.values()
    assert all(weight >= 0.0 for _, weights in fit.levels for weight in weights)
    assert [level for level, _ in fit.levels] == sorted(TOKEN_LEVELS)


def test_all_points_count_alike() -> None:
    draw = random.Random(11)
    shapes = products(40, levels=(1,))
    times = fitted(shapes, lambda shape: lawful_ns(shape) * math.exp(draw.gauss(0.0, 0.05)))
    smallest, largest = sorted(shapes, key=lawful_ns)[:8], sorted(shapes, key=lawful_ns)[-8:]
    for members in (smallest, largest):
        errors = [abs(times.time(shape).time_ns / lawful_ns(shape) - 1.0) for shape in members]
        assert median(errors) < 0.03
