"""What the engine makes of its operators, learned from architectures whose times are known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import stdev

import pytest

from perfsuite.expectation.timing.calibration import Composition
from perfsuite.expectation.timing.engine_factors import (
    UNKNOWN_SPREAD_RATIO,
    Factor,
    phase_factor,
    streamed_bytes,
)
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes

from ...synthetic_calibration import N_THREADS, points_of

SMALL_PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=512, n_outer=256)
HEAD = OperatorShape(op="MUL_MAT", type="f16", n_inner=512, n_outer=256)
SCORES = OperatorShape(op="MUL_MAT", type="f16", n_inner=64, n_outer=256, n_heads=8, n_kv_heads=2)
SMALL_NORM = OperatorShape(op="RMS_NORM+MUL", type="f32", n_inner=512)
ADDITION = OperatorShape(op="ADD", type="f32", n_inner=512)

#: What each operator takes alone, ns: none is so short that it is the wait that counts.
ALONE_NS = {SMALL_PRODUCT: 1e6, HEAD: 4e6, SCORES: 5e5, SMALL_NORM: 1e5, ADDITION: 5e4}
TIMES = OperatorTimes(points_of(ALONE_NS, ALONE_NS.__getitem__), n_threads=N_THREADS)


#: What the matrices of operators alone were spread over.
SPREAD_BYTES = 1 << 28


def composed(
    within: Mapping[OperatorShape, tuple[int, float]],
    *,
    processes: tuple[float, ...] = (1.0, 1.0, 1.0),
    rest_ns: tuple[float, ...] | None = None,
) -> Composition:
    """Compose shapes that occur so often, and take so many us in all in a process of 1.0, in others more or less."""
    return Composition(
        name="own",
        phase="decode",
        shapes=tuple(within),
        counts=tuple(count for count, _ in within.values()),
        shapes_ns=tuple(tuple(time_us * 1e3 * process for process in processes) for _, time_us in within.values()),
        rest_ns=rest_ns or (0.0,) * len(processes),
    )


#: Products of 1.1 and norms of 2 times their time alone; of 1.3 and 4.
ONE = composed({SMALL_PRODUCT: (10, 11_000.0), SMALL_NORM: (20, 4_000.0)})
OTHER = composed({SMALL_PRODUCT: (4, 5_200.0), SMALL_NORM: (30, 12_000.0)})


def test_the_factor_of_a_kind_is_a_geometric_mean() -> None:
    """Products of 1.1 and 1.3, and norms of 2 and 4 times their time alone, each have their mean and their spread."""
    found = phase_factor([ONE, OTHER], TIMES, SPREAD_BYTES)
    assert set(found.kinds) == {"MUL_MAT", "RMS_NORM+MUL"}
    product, norm = found.kind("MUL_MAT"), found.kind("RMS_NORM+MUL")
    assert product.ratio == pytest.approx(math.sqrt(1.1 * 1.3))
    assert product.spread_ratio == pytest.approx(stdev([math.log(1.1), math.log(1.3)]))
    assert norm.ratio == pytest.approx(math.sqrt(8.0))
    assert norm.spread_ratio == pytest.approx(stdev([math.log(2.0), math.log(4.0)]))
    assert found.n_compositions == 2


def test_the_operators_of_a_kind_are_summed_before_they_are_compared() -> None:
    """Products of two types are one kind, in which the longer counts for more; those of attention are another."""
    mixed = composed({SMALL_PRODUCT: (10, 20_000.0), HEAD: (5, 22_000.0), SCORES: (2, 3_000.0)})
    found = phase_factor([mixed], TIMES, SPREAD_BYTES)
    assert {kind: factor.ratio for kind, factor in found.kinds.items()} == {
        "MUL_MAT": pytest.approx(42_000 / (10 * 1000 + 5 * 4000)),
        "MUL_MAT/heads": pytest.approx(3_000 / (2 * 500)),
    }


def test_a_kind_that_an_architecture_lacks_is_of_the_others() -> None:
    """An addition that two of three architectures have is their mean, and one that a single one has its ratio."""
    with_additions = [
        composed({SMALL_PRODUCT: (1, 1_000.0), ADDITION: (10, 1_000.0)}),
        composed({SMALL_PRODUCT: (1, 1_000.0), ADDITION: (2, 450.0)}),
    ]
    found = phase_factor([ONE, *with_additions], TIMES, SPREAD_BYTES)
    assert found.kind("ADD").ratio == pytest.approx(3.0)
    assert found.kind("ADD").spread_ratio == pytest.approx(stdev([math.log(2.0), math.log(4.5)]))
    assert found.kind("RMS_NORM+MUL") == Factor(ratio=pytest.approx(2.0), spread_ratio=UNKNOWN_SPREAD_RATIO)
    assert found.n_compositions == 3


def test_a_kind_that_no_architecture_has_is_taken_as_all_together() -> None:
    """Sums of 15 over 12 us and of 17.2 over 7 us give one factor, by which an unknown kind is forecast."""
    found = phase_factor([ONE, OTHER], TIMES, SPREAD_BYTES)
    ratios = (15_000 / 12_000, 17_200 / 7_000)
    assert found.overall.ratio == pytest.approx(math.sqrt(math.prod(ratios)))
    assert found.overall.spread_ratio == pytest.approx(stdev(map(math.log, ratios)))
    assert found.kind("ROPE") == found.overall


def test_factors_of_kinds_explain_what_architectures_differ_in() -> None:
    """Two mixes of the same kinds differ as a whole, and by nothing once each kind has its factor."""
    mixes = [
        composed({SMALL_PRODUCT: (n_products, 1_100.0 * n_products), SMALL_NORM: (n_norms, 300.0 * n_norms)})
        for n_products, n_norms in ((10, 1), (1, 100))
    ]
    found = phase_factor(mixes, TIMES, SPREAD_BYTES)
    assert found.overall.spread_ratio > 0.5
    assert found.spread_ratio == pytest.approx(0.0, abs=1e-9)


def test_a_kind_takes_longer_by_a_ratio_or_by_a_time() -> None:
    """What differs less between three architectures is taken; fewer show a ratio alone."""
    lengths = {512: 5e4, 513: 5e5, 514: 5e6}
    alone = {replace(ADDITION, n_inner=n): time_ns for n, time_ns in lengths.items()}
    times = OperatorTimes(points_of(alone, alone.__getitem__), n_threads=N_THREADS)
    later = [composed({shape: (10, (times.time(shape).time_ns + 2e5) / 100.0)}) for shape in alone]
    longer = [composed({shape: (10, times.time(shape).time_ns * 3.0 / 100.0)}) for shape in alone]
    by_time, by_ratio = (phase_factor(each, times, SPREAD_BYTES).kind("ADD") for each in (later, longer))
    assert (by_time.ratio, by_time.extra_ns) == (1.0, pytest.approx(2e5))
    assert (by_ratio.ratio, by_ratio.extra_ns) == (pytest.approx(3.0), 0.0)
    assert phase_factor(later[:2], times, SPREAD_BYTES).kind("ADD").extra_ns == 0.0
    assert by_time.within_ns(1e6, 5) == pytest.approx(2e6)


def test_a_short_operator_of_few_architectures_takes_longer_by_a_time() -> None:
    """An addition of 50 ns that takes 450 waits for 400; a product of 10 us that takes 20 has a ratio."""
    lengths = {ADDITION: 50.0, SMALL_PRODUCT: 10_000.0}
    times = OperatorTimes(points_of(lengths, lengths.__getitem__), n_threads=N_THREADS)
    found = phase_factor([composed({SMALL_PRODUCT: (2, 40.0), ADDITION: (10, 4.5)})], times, SPREAD_BYTES)
    assert found.kind("ADD") == Factor(extra_ns=pytest.approx(400.0))
    assert found.kind("MUL_MAT") == Factor(ratio=pytest.approx(2.0))


#: Layers of products that are streamed, from about 60 MB to 950 MB, by their number.
STREAMED = OperatorShape(op="MUL_MAT", type="f32", n_inner=1024, n_outer=4096)


def cached(n_layers: int, cached_bytes: float, *, phase: str = "decode") -> Composition:
    """Compose products of which a cache holds so much; alone they were spread over `SPREAD_BYTES`."""
    n_bytes = streamed_bytes({STREAMED: n_layers})
    ratio = (1.0 - cached_bytes / n_bytes) / (1.0 - cached_bytes / SPREAD_BYTES)
    return replace(composed({STREAMED: (n_layers, 1e3 * n_layers * ratio)}), phase=phase)


STREAMED_TIMES = OperatorTimes(points_of([STREAMED], lambda _: 1e6), n_threads=N_THREADS)


def test_small_models_show_what_a_cache_holds() -> None:
    """Of models that differ in size alone, a smaller one is faster by what a cache keeps from token to token."""
    found = phase_factor([cached(n, 20 << 20) for n in (4, 8, 16, 56)], STREAMED_TIMES, SPREAD_BYTES)
    assert found.cache.kept_bytes == 20 << 20
    assert found.kind("MUL_MAT").ratio == pytest.approx(1.0)
    small, as_alone, large = (found.cache.uncached_ratio(n_bytes) for n_bytes in (40 << 20, SPREAD_BYTES, 1 << 30))
    assert small < as_alone == 1.0 < large
    assert found.cache.uncached_ratio(1) > 0.0


@pytest.mark.parametrize(
    "compositions",
    [
        [cached(n, 20 << 20, phase="prefill") for n in (4, 8, 16, 56)],
        [cached(n, 20 << 20) for n in (4, 56)],
        [cached(n, 20 << 20) for n in (16, 18, 20)],
    ],
    ids=["a prompt computes", "too few", "too much alike"],
)
def test_what_a_cache_holds_is_not_always_seen(compositions: list[Composition]) -> None:
    assert phase_factor(compositions, STREAMED_TIMES, SPREAD_BYTES).cache.kept_bytes == 0


def test_the_median_of_the_processes_counts() -> None:
    """A process in which everything took ten times as long changes no factor."""
    spoilt = composed({SMALL_PRODUCT: (10, 11_000.0), SMALL_NORM: (20, 4_000.0)}, processes=(1.0, 10.0, 1.0))
    assert phase_factor([spoilt], TIMES, SPREAD_BYTES).kinds == phase_factor([ONE], TIMES, SPREAD_BYTES).kinds


def test_the_spread_of_processes_is_pooled() -> None:
    """Three processes 10 % apart and two that agree have 2 ln(1.1)^2 over 2 + 1 degrees of freedom."""
    apart = composed({SMALL_PRODUCT: (10, 11_000.0)}, processes=(1.0, 1.1, 1.21))
    level = composed({SMALL_PRODUCT: (10, 99_000.0)}, processes=(1.0, 1.0))
    found = phase_factor([apart, level], TIMES, SPREAD_BYTES)
    assert found.process_spread_ratio == pytest.approx(math.log(1.1) * math.sqrt(2 / 3))
    single = composed({SMALL_PRODUCT: (10, 11_000.0)}, processes=(1.0,))
    assert phase_factor([single, single], TIMES, SPREAD_BYTES).process_spread_ratio == 0.0


def resting(*rests: tuple[int, float]) -> tuple[float, float]:
    """Return what is fitted to so many operators with so much beside them: for an evaluation, for an operator."""
    found = phase_factor(
        [composed({SMALL_PRODUCT: (n, 1_000.0 * n)}, rest_ns=(rest,) * 3) for n, rest in rests], TIMES, SPREAD_BYTES
    )
    return found.rest_ns, found.rest_ns_per_operator


@pytest.mark.parametrize(
    ("rests", "fitted"),
    [
        (((10, 700.0), (30, 1_100.0), (50, 1_500.0)), (500.0, 20.0)),
        (((20, 700.0), (20, 900.0), (40, 1_400.0), (40, 1_600.0)), (100.0, 35.0)),
        (((10, 900.0), (30, 300.0)), (600.0, 0.0)),
        (((10, 0.0), (30, 400.0)), (0.0, 12.0)),
        (((10, 0.0), (30, 0.0)), (0.0, 0.0)),
    ],
)
def test_the_rest_is_so_much_an_evaluation_and_so_much_an_operator(
    rests: tuple[tuple[int, float], ...], fitted: tuple[float, float]
) -> None:
    """Least squares find both, neither below 0: 500 + 20 n, the middle of pairs, a mean, and a line through nothing."""
    assert resting(*rests) == pytest.approx(fitted, abs=1e-6)


def test_the_rest_of_each_architecture_is_that_of_its_median_process() -> None:
    """A process that spent far more beside its operators, and one that spent nothing, change no fit."""
    steady, spoilt = (
        phase_factor(
            [composed({SMALL_PRODUCT: (n, 1_000.0 * n)}, rest_ns=(low, 500.0 + 20.0 * n, high)) for n in (10, 30)],
            TIMES,
            SPREAD_BYTES,
        )
        for low, high in ((700.0, 1_100.0), (0.0, 1e6))
    )
    assert (spoilt.rest_ns, spoilt.rest_ns_per_operator) == pytest.approx((500.0, 20.0))
    assert (steady.rest_ns, steady.rest_ns_per_operator) == pytest.approx((500.0, 20.0))


def test_one_architecture_alone_says_nothing_of_the_next() -> None:
    """Its own ratios are the factors, its own rest is met, and every spread is that of what is unknown."""
    alone = composed({SMALL_PRODUCT: (10, 11_000.0), SMALL_NORM: (20, 4_000.0)}, rest_ns=(900.0, 900.0, 900.0))
    found = phase_factor([alone], TIMES, SPREAD_BYTES)
    assert dict(found.kinds) == {
        "MUL_MAT": Factor(ratio=pytest.approx(1.1), spread_ratio=UNKNOWN_SPREAD_RATIO),
        "RMS_NORM+MUL": Factor(ratio=pytest.approx(2.0), spread_ratio=UNKNOWN_SPREAD_RATIO),
    }
    assert found.overall == Factor(ratio=pytest.approx(1.25), spread_ratio=UNKNOWN_SPREAD_RATIO)
    assert (found.spread_ratio, found.n_compositions) == (UNKNOWN_SPREAD_RATIO, 1)
    assert found.rest_ns + 30 * found.rest_ns_per_operator == pytest.approx(900.0)
