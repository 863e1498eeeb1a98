"""Factors of a phase, by hand: what operators take within the engine over what they take alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import stdev

import pytest

from perfsuite.expectation.timing.calibration import Composition
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.expectation.timing.phase_factor import (
    UNKNOWN_SPREAD_RATIO,
    Factor,
    PhaseFactor,
    factor_of,
    phase_factor,
)

from ...synthetic_calibration import N_THREADS, points_of

SMALL_PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=512, n_outer=256)
HEAD = OperatorShape(op="MUL_MAT", type="f16", n_inner=512, n_outer=256)
SCORES = OperatorShape(op="MUL_MAT", type="f16", n_inner=64, n_outer=256, n_heads=8, n_kv_heads=2)
SMALL_NORM = OperatorShape(op="RMS_NORM+MUL", type="f32", n_inner=512)
ADDITION = OperatorShape(op="ADD", type="f32", n_inner=512)

#: What each operator takes alone, ns.
ALONE_NS = {SMALL_PRODUCT: 1000.0, HEAD: 4000.0, SCORES: 500.0, SMALL_NORM: 100.0, ADDITION: 50.0}
TIMES = OperatorTimes(points_of(ALONE_NS, ALONE_NS.__getitem__), n_threads=N_THREADS)


def composed(
    within: Mapping[OperatorShape, tuple[int, float]],
    *,
    processes: tuple[float, ...] = (1.0, 1.0, 1.0),
    rest_ns: tuple[float, ...] | None = None,
) -> Composition:
    """Compose shapes that occur so often, and take so long in all in a process of 1.0, in others more or less."""
    return Composition(
        name="own",
        phase="decode",
        shapes=tuple(within),
        counts=tuple(count for count, _ in within.values()),
        shapes_ns=tuple(tuple(time_ns * process for process in processes) for _, time_ns in within.values()),
        rest_ns=rest_ns or (0.0,) * len(processes),
    )


#: Products of 1.1 and norms of 2 times their time alone; of 1.3 and 4.
ONE = composed({SMALL_PRODUCT: (10, 11_000.0), SMALL_NORM: (20, 4_000.0)})
OTHER = composed({SMALL_PRODUCT: (4, 5_200.0), SMALL_NORM: (30, 12_000.0)})


def test_the_factor_of_a_kind_is_a_geometric_mean() -> None:
    """Products of 1.1 and 1.3, and norms of 2 and 4 times their time alone, each have their mean and their spread."""
    found = phase_factor([ONE, OTHER], TIMES)
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
    found = phase_factor([mixed], TIMES)
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
    found = phase_factor([ONE, *with_additions], TIMES)
    assert found.kind("ADD").ratio == pytest.approx(3.0)
    assert found.kind("ADD").spread_ratio == pytest.approx(stdev([math.log(2.0), math.log(4.5)]))
    assert found.kind("RMS_NORM+MUL") == Factor(ratio=pytest.approx(2.0), spread_ratio=UNKNOWN_SPREAD_RATIO)
    assert found.n_compositions == 3


def test_a_kind_that_no_architecture_has_is_taken_as_all_together() -> None:
    """Sums of 15 over 12 us and of 17.2 over 7 us give one factor, by which an unknown kind is forecast."""
    found = phase_factor([ONE, OTHER], TIMES)
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
    found = phase_factor(mixes, TIMES)
    assert found.overall.spread_ratio > 0.5
    assert found.spread_ratio == pytest.approx(0.0, abs=1e-9)


def test_the_spread_of_a_phase_is_of_what_is_left() -> None:
    """Each architecture is compared with the sum of its operators, each times the factor of its kind."""
    product, norm = math.sqrt(1.1 * 1.3), math.sqrt(8.0)
    left = [15_000 / (10_000 * product + 2_000 * norm), 17_200 / (4_000 * product + 3_000 * norm)]
    assert phase_factor([ONE, OTHER], TIMES).spread_ratio == pytest.approx(stdev(map(math.log, left)))


def test_the_median_of_the_processes_counts() -> None:
    """A process in which everything took ten times as long changes no factor."""
    spoilt = composed({SMALL_PRODUCT: (10, 11_000.0), SMALL_NORM: (20, 4_000.0)}, processes=(1.0, 10.0, 1.0))
    assert phase_factor([spoilt], TIMES).kinds == phase_factor([ONE], TIMES).kinds


def test_the_spread_of_processes_is_pooled() -> None:
    """Three processes 10 % apart and two that agree have 2 ln(1.1)^2 over 2 + 1 degrees of freedom."""
    apart = composed({SMALL_PRODUCT: (10, 11_000.0)}, processes=(1.0, 1.1, 1.21))
    level = composed({SMALL_PRODUCT: (10, 99_000.0)}, processes=(1.0, 1.0))
    found = phase_factor([apart, level], TIMES)
    assert found.process_spread_ratio == pytest.approx(math.log(1.1) * math.sqrt(2 / 3))


def test_processes_are_compared_as_a_whole() -> None:
    """Operators that take turns in being slow make no process slower than another."""
    turns = Composition(
        name="own",
        phase="decode",
        shapes=(SMALL_PRODUCT, SMALL_NORM),
        counts=(1, 1),
        shapes_ns=((1_000.0, 1_500.0), (900.0, 400.0)),
        rest_ns=(0.0, 0.0),
    )
    assert phase_factor([turns], TIMES).process_spread_ratio == pytest.approx(0.0, abs=1e-9)


def test_one_process_each_knows_no_spread() -> None:
    """Where no architecture ran twice, nothing is known of processes, and nothing is added."""
    single = composed({SMALL_PRODUCT: (10, 11_000.0)}, processes=(1.0,))
    assert phase_factor([single, single], TIMES).process_spread_ratio == 0.0


def resting(*rests: tuple[int, float]) -> tuple[float, float]:
    """Return what is fitted to so many operators with so much beside them: for an evaluation, for an operator."""
    found = phase_factor([composed({SMALL_PRODUCT: (n, 1_000.0 * n)}, rest_ns=(rest,) * 3) for n, rest in rests], TIMES)
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
        )
        for low, high in ((700.0, 1_100.0), (0.0, 1e6))
    )
    assert (spoilt.rest_ns, spoilt.rest_ns_per_operator) == pytest.approx((500.0, 20.0))
    assert (steady.rest_ns, steady.rest_ns_per_operator) == pytest.approx((500.0, 20.0))


def test_one_architecture_alone_says_nothing_of_the_next() -> None:
    """Its own ratios are the factors, its own rest is met, and every spread is that of what is unknown."""
    alone = composed({SMALL_PRODUCT: (10, 11_000.0), SMALL_NORM: (20, 4_000.0)}, rest_ns=(900.0, 900.0, 900.0))
    found = phase_factor([alone], TIMES)
    assert dict(found.kinds) == {
        "MUL_MAT": Factor(ratio=pytest.approx(1.1), spread_ratio=UNKNOWN_SPREAD_RATIO),
        "RMS_NORM+MUL": Factor(ratio=pytest.approx(2.0), spread_ratio=UNKNOWN_SPREAD_RATIO),
    }
    assert found.overall == Factor(ratio=pytest.approx(1.25), spread_ratio=UNKNOWN_SPREAD_RATIO)
    assert (found.spread_ratio, found.n_compositions) == (UNKNOWN_SPREAD_RATIO, 1)
    assert found.rest_ns + 30 * found.rest_ns_per_operator == pytest.approx(900.0)


def test_without_a_measurement_operators_are_as_they_are() -> None:
    """A phase that nothing was measured of has factors of 1, no rest, and the spread of what is unknown."""
    unknown = PhaseFactor()
    assert unknown.kind("MUL_MAT") == Factor(ratio=1.0, spread_ratio=UNKNOWN_SPREAD_RATIO)
    assert (unknown.rest_ns, unknown.rest_ns_per_operator, unknown.n_compositions) == (0.0, 0.0, 0)
    assert (unknown.spread_ratio, unknown.process_spread_ratio) == (UNKNOWN_SPREAD_RATIO, 0.0)


def test_factors_are_read_only() -> None:
    """A factor that was learnt is changed by nobody, and can be a key."""
    found = phase_factor([ONE], TIMES)
    with pytest.raises(TypeError, match="does not support item assignment"):
        found.kinds["ADD"] = Factor()  # type: ignore[index]
    assert {found: 1}[phase_factor([ONE], TIMES)] == 1


def test_ratios_have_a_geometric_mean_and_a_spread() -> None:
    """Of 1/2, 1 and 2 the mean is 1 and the logarithm deviates by ln 2; of one ratio nothing is known."""
    found = factor_of([0.5, 1.0, 2.0])
    assert (found.ratio, found.spread_ratio) == (pytest.approx(1.0), pytest.approx(math.log(2.0)))
    assert factor_of([1.5]) == Factor(ratio=pytest.approx(1.5), spread_ratio=UNKNOWN_SPREAD_RATIO)
