"""Forecasts of phases: operators, what the engine makes of them, and the interval around both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import llama_workload
from perfsuite.expectation.timing.calibration import CalibrationPoint, Composition
from perfsuite.expectation.timing.engine_times import (
    LEAST_SPREAD_RATIO,
    REST_SPREAD_RATIO,
    UNKNOWN_FACTOR,
    EngineTimes,
    TimeForecast,
    phase_shapes,
)
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import LEAST_SPREAD_RATIO as LEAST_FIT_SPREAD_RATIO
from perfsuite.records.events import Phase
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

from ...synthetic_calibration import calibration, composition, lawful_ns, points_of, token_phase

PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536)
NORM = OperatorShape(op="RMS_NORM+MUL", type="f32", n_inner=576)
LAYERS = {PRODUCT: 30, NORM: 60}


def times(*compositions: Composition, points: Iterable[CalibrationPoint] | None = None) -> EngineTimes:
    """Forecast by a law and by compositions."""
    return EngineTimes(calibration(*compositions, points=points))


def alone_ns(shapes: dict[OperatorShape, int]) -> float:
    """Add the operators as the law has them."""
    return sum(lawful_ns(shape) * count for shape, count in shapes.items())


def width_of(found: TimeForecast) -> float:
    """Return how far the upper bound is from the expectation, as a logarithm."""
    return math.log(found.upper_ns / found.expected_ns)


def test_the_factor_is_the_engine_over_the_operators_alone() -> None:
    """Two compositions of 1.1 and 1.3 times their operators give their geometric mean, and their spread."""
    found = times(composition(LAYERS, ratio=1.1), composition({PRODUCT: 4}, ratio=1.3)).factors["decode"]
    assert found.ratio == pytest.approx(math.sqrt(1.1 * 1.3), rel=0.001)
    assert found.spread_ratio == pytest.approx(stdev([math.log(1.1), math.log(1.3)]), rel=0.01)
    assert found.n_compositions == 2


def test_a_phase_is_its_operators_times_the_factor_and_the_rest() -> None:
    """With a factor of 1.2 and 50 ns beside each operator the expectation follows by hand."""
    engine = times(*(composition(LAYERS, ratio=1.2, rest_ns=50.0 * 90) for _ in range(3)))
    assert engine.factors["decode"].rest_ns_per_operator == pytest.approx(50.0)
    shapes = {PRODUCT: 7, NORM: 3}
    assert engine.part(shapes, "decode").expected_ns == pytest.approx(1.2 * alone_ns(shapes), rel=0.001)
    assert engine.rest(10, "decode").expected_ns == pytest.approx(500.0)
    assert engine.phase(shapes, "decode").expected_ns == pytest.approx(1.2 * alone_ns(shapes) + 500.0, rel=0.001)
    with_gather = engine.phase(shapes, "decode", n_elsewhere=2).expected_ns
    assert with_gather == pytest.approx(1.2 * alone_ns(shapes) + 600.0, rel=0.001)


def test_the_rest_is_that_of_an_operator_in_the_middle() -> None:
    """What the engine spends beside its operators is the median over the compositions, for each operator."""
    rests = (10.0, 90.0, 20.0)
    engine = times(*(composition(LAYERS, rest_ns=rest * 90) for rest in rests))
    assert engine.factors["decode"].rest_ns_per_operator == pytest.approx(20.0)


def test_each_process_of_a_composition_may_be_disturbed() -> None:
    """The median of the processes counts, of the operators and of the rest."""
    steady = composition(LAYERS, ratio=1.2, rest_ns=900.0)
    operators, rest = steady.operators_ns[0], steady.rest_ns[0]
    spoilt = replace(steady, operators_ns=(operators, operators * 50, operators), rest_ns=(rest * 9, rest, rest))
    assert times(spoilt, spoilt).factors == times(steady, steady).factors


def test_phases_have_factors_of_their_own() -> None:
    """What prefill makes of its operators says nothing about decode."""
    engine = times(composition(LAYERS, ratio=1.5, phase="prefill"), composition(LAYERS, ratio=1.1))
    assert {phase: round(each.ratio, 3) for phase, each in engine.factors.items()} == {"prefill": 1.5, "decode": 1.1}


def test_without_a_composition_operators_add_up_as_they_are() -> None:
    """A phase that no composition ran has no factor and no rest, and the widest interval."""
    engine = times(composition(LAYERS, ratio=1.5, phase="prefill"), composition(LAYERS, ratio=1.5, phase="prefill"))
    found = engine.phase(LAYERS, "decode")
    assert found.expected_ns == pytest.approx(alone_ns(LAYERS), rel=0.001)
    assert width_of(found) > width_of(engine.phase(LAYERS, "prefill"))
    assert engine.rest(90, "decode").expected_ns == 0.0


def test_one_composition_has_the_spread_of_what_is_unknown() -> None:
    """A single ratio says nothing about the next architecture."""
    found = times(composition(LAYERS, ratio=1.2)).factors["decode"]
    assert (found.ratio, found.spread_ratio) == (pytest.approx(1.2, rel=0.001), UNKNOWN_FACTOR.spread_ratio)


@given(
    st.lists(st.floats(0.5, 3.0), max_size=6),
    st.integers(1, 100),
    st.integers(0, 100),
    st.floats(0.0, 1e6),
)
def test_an_interval_holds_its_expectation(ratios: list[float], n_products: int, n_norms: int, rest_ns: float) -> None:
    """Whatever was composed, the expectation lies within its bounds, as far from one as from the other in ratio."""
    compositions = [composition(LAYERS, ratio=ratio, rest_ns=rest_ns) for ratio in ratios]
    engine = times(*compositions, points=points_of([PRODUCT, NORM]))
    shapes = {PRODUCT: n_products, NORM: n_norms}
    for found in (engine.phase(shapes, "decode"), engine.part(shapes, "decode"), engine.rest(9, "decode")):
        assert 0.0 <= found.lower_ns <= found.expected_ns <= found.upper_ns < math.inf
        assert found.lower_ns * found.upper_ns == pytest.approx(found.expected_ns**2)


def test_fewer_compositions_widen_the_interval() -> None:
    """The same spread of the ratios is worth less where it was seen on fewer architectures."""
    widths = []
    for n_pairs in (4, 2, 1):
        engine = times(*(composition(LAYERS, ratio=ratio) for ratio in (1.1, 1.3) * n_pairs))
        widths.append(width_of(engine.phase(LAYERS, "decode")) / engine.factors["decode"].spread_ratio)
    assert widths == sorted(widths)
    assert widths[-1] > 3 * widths[0]


def test_a_wider_spread_of_the_compositions_widens_the_interval() -> None:
    """Architectures that differ more leave more to the next one."""
    close, far = (
        times(*(composition(LAYERS, ratio=1.2 * by) for by in (1 / spread, 1.0, 1.0, spread))) for spread in (1.02, 1.2)
    )
    assert width_of(far.phase(LAYERS, "decode")) > 2 * width_of(close.phase(LAYERS, "decode"))
    assert far.phase(LAYERS, "decode").expected_ns == pytest.approx(close.phase(LAYERS, "decode").expected_ns)


def test_the_least_interval_is_that_of_fits_and_phases() -> None:
    """Four compositions that agree leave the least spread of a fit and of a phase, by Student's quantile."""
    engine = times(*(composition({PRODUCT: 30}) for _ in range(4)))
    spread = math.hypot(LEAST_FIT_SPREAD_RATIO, LEAST_SPREAD_RATIO)
    assert width_of(engine.phase({PRODUCT: 5}, "decode")) == pytest.approx(stats.t.ppf(0.95, 3) * spread)


def test_errors_of_one_fit_add_and_those_of_two_even_out() -> None:
    """Two operators of one kind err together; two of different kinds in part cancel."""
    twin = replace(PRODUCT, n_outer=1537)
    even = {PRODUCT: 1, NORM: round(lawful_ns(PRODUCT) / lawful_ns(NORM))}
    engine = times(*(composition(LAYERS) for _ in range(4)))
    together, apart = (width_of(engine.part(shapes, "decode")) for shapes in ({PRODUCT: 1, twin: 1}, even))
    assert together == pytest.approx(width_of(engine.part({PRODUCT: 1}, "decode")))
    ratio = math.hypot(LEAST_FIT_SPREAD_RATIO / math.sqrt(2), LEAST_SPREAD_RATIO)
    assert apart / together == pytest.approx(ratio / math.hypot(LEAST_FIT_SPREAD_RATIO, LEAST_SPREAD_RATIO), rel=0.01)


def test_a_stand_in_widens_the_interval() -> None:
    """A type that was never measured is forecast with less trust than one that was."""
    engine = times(*(composition(LAYERS) for _ in range(4)))
    known, unknown = (width_of(engine.part({replace(PRODUCT, type=name): 1}, "decode")) for name in ("q8_0", "q5_k"))
    assert unknown > 5 * known


def test_the_rest_is_less_certain_than_operators() -> None:
    """What the engine spends outside its operators has a spread of its own."""
    engine = times(*(composition(LAYERS, rest_ns=900.0) for _ in range(4)))
    expected = stats.t.ppf(0.95, 3) * math.hypot(REST_SPREAD_RATIO, LEAST_SPREAD_RATIO)
    assert width_of(engine.rest(90, "decode")) == pytest.approx(expected)


def test_nothing_takes_no_time() -> None:
    """A part without operators is 0 ns, with no interval."""
    found = times(composition(LAYERS)).part({}, "decode")
    assert (found.lower_ns, found.expected_ns, found.upper_ns) == (0.0, 0.0, 0.0)


def test_what_follows_a_token_grows_with_the_vocabulary() -> None:
    """Softmax of 1000 logits in 4 us and 2000 in 8 us is 10000 in 40 us; else the geometric mean counts."""
    phases = [token_phase("softmax", 1000, 4e3), token_phase("softmax", 2000, 8e3)]
    engine = EngineTimes(calibration(token_phases=phases))
    found, twice = (engine.token_phase("softmax", n) for n in (10_000, 20_000))
    assert found is not None
    assert twice is not None
    assert found.expected_ns == pytest.approx(4e4)
    assert twice.expected_ns == pytest.approx(8e4)
    assert found.lower_ns < found.expected_ns < found.upper_ns
    phases[1] = token_phase("softmax", 2000, 2e3)
    unequal = EngineTimes(calibration(token_phases=phases)).token_phase("softmax", 1000)
    assert unequal is not None
    assert unequal.expected_ns == pytest.approx(2e3)
    assert width_of(unequal) > 5 * width_of(found)


def test_what_was_never_measured_after_a_token_has_no_forecast() -> None:
    """None, and not 0."""
    engine = EngineTimes(calibration(token_phases=[token_phase("softmax", 1000, 4e3)]))
    assert engine.token_phase("sampling", 1000) is None


def drifting(*shifts: float) -> list[CalibrationPoint]:
    """Measure two operators whose rounds are all shifted alike."""
    shapes = [replace(PRODUCT, n_inner=k) for k in (256, 512, 1024, 2048)]
    return [
        CalibrationPoint(shape=shape, rounds_ns=tuple(lawful_ns(shape) * math.exp(shift) for shift in shifts))
        for shape in shapes
    ]


def test_rounds_that_drift_widen_the_interval() -> None:
    """By as much as all operators together differed from round to round, whatever a single one did."""
    steady, drifted = (times(points=drifting(*shifts)) for shifts in ((0.0, 0.0, 0.0), (-0.2, 0.0, 0.2)))
    quantile = stats.t.ppf(0.95, 1)
    before, after = (width_of(each.part({PRODUCT: 1}, "x")) for each in (steady, drifted))
    assert after**2 - before**2 == pytest.approx((quantile * 0.2) ** 2, rel=0.001)


def test_a_single_outlier_is_no_drift() -> None:
    """One operator that was disturbed in one round says nothing about the machine."""
    points = drifting(0.0, 0.0, 0.0)
    outlier = replace(points[0], rounds_ns=(points[0].rounds_ns[0] * 3, *points[0].rounds_ns[1:]))
    found, steady = (times(points=each).part({PRODUCT: 1}, "x") for each in ([outlier, *points[1:]], points))
    assert found == steady


def test_one_round_knows_no_drift() -> None:
    """A calibration of a single round has the interval of one that did not drift."""
    found, steady = (times(points=drifting(*shifts)).part({PRODUCT: 1}, "x") for shifts in ((0.0,), (0.0, 0.0)))
    assert found == steady


def test_a_calibration_without_operators_is_an_error() -> None:
    """Nothing can be forecast from nothing."""
    with pytest.raises(MeasurementError, match="no operator was measured"):
        times(points=[])


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
def test_the_shapes_of_a_phase_are_those_of_its_graph(phase: Phase) -> None:
    """Every operator of a phase is counted once, that of 30 layers thirty times."""
    workload = llama_workload(resolve("smollm2-135m-q8_0", cache_dir=Path("/nowhere")), find_scenario("p64-g8"))
    found = phase_shapes(workload, phase)
    assert isinstance(found, Counter)
    assert found.total() == len(workload.graph(phase))
    n_tokens = 64 if phase is Phase.PREFILL else 1
    gates = found[OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536, n_tokens=n_tokens)]
    assert gates == (2 * 29 if phase is Phase.PREFILL else 2 * 30)


def test_operators_of_no_rows_are_left_out() -> None:
    """A micro-batch that gives no logits has a head of no rows, which takes no time."""
    workload = llama_workload(resolve("smollm2-135m-l2-q8_0", cache_dir=Path("/nowhere")), find_scenario("p600-g1"))
    found = phase_shapes(workload, Phase.PREFILL)
    assert found.total() < len(workload.graph(Phase.PREFILL))
    heads = [shape for shape in found.elements() if shape.n_outer == 49152]
    assert [shape.n_tokens for shape in heads] == [1]
