"""Forecasts of phases: operators, what the engine makes of them, and the interval around both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perfsuite.expectation.cases import operator_cases, phase_cases
from perfsuite.expectation.timing.calibration import CalibrationPoint, Composition, TokenPhase
from perfsuite.expectation.timing.engine_times import (
    LEAST_SPREAD_RATIO,
    REST_SPREAD_RATIO,
    EngineTimes,
    TimeForecast,
    case_forecasts,
    phase_operators,
    phase_shapes,
)
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import LEAST_SPREAD_RATIO as LEAST_FIT_SPREAD_RATIO
from perfsuite.records.case import REST_ROLE
from perfsuite.records.events import Phase

from ...catalogue_workloads import catalogue_workload
from ...synthetic_calibration import calibration, composition, lawful_ns, points_of, token_phase

TOKEN_PHASES = (
    token_phase("copy", 1000, 200.0),
    token_phase("softmax", 1000, 4000.0),
    token_phase("sampling", 1000, 3000.0),
)
PROJECTIONS = {OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536): 30}


def engine(token_phases: tuple[TokenPhase, ...] = TOKEN_PHASES) -> EngineTimes:
    """Forecast by a law, with a factor and a rest of their own for each phase."""
    compositions = [
        composition(PROJECTIONS, ratio=ratio, rest_ns=3000.0 * ratio, phase=phase)
        for phase, ratio in (("prefill", 1.4), ("prefill", 1.5), ("decode", 1.1), ("decode", 1.2))
    ]
    return EngineTimes(calibration(*compositions, token_phases=token_phases))


@pytest.mark.long_but_first
@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("scenario", ["siso", "p700-g3", "p8-g0", "p0-g4", "p5-g5-d300"])
@pytest.mark.parametrize("model", ["smollm2-135m-l2-q8_0", "qwen3-0.6b-l2-q4_k_m", "deepseek-v2-lite-l3-q4_0"])
def test_every_case_has_a_forecast(model: str, scenario: str, flash_attn: bool) -> None:
    of = catalogue_workload(model, scenario, flash_attn=flash_attn)
    expected = {case.case_id for case in (*phase_cases(of), *operator_cases(of))}
    assert set(case_forecasts(of, engine())) == expected


@pytest.mark.parametrize("scenario", ["siso", "p700-g3"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_a_phase_is_its_roles_and_the_rest(phase: str, scenario: str) -> None:
    """The roles without the gather of the embeddings add up to the phase, together with the engine's own share."""
    of = catalogue_workload(scenario=scenario)
    found = case_forecasts(of, engine())
    prefix = f"operator/{of.prefix}/{phase}/"
    roles = [each for case_id, each in found.items() if case_id.startswith(prefix) and case_id != f"{prefix}embd"]
    assert len(roles) > 15
    assert found[f"{prefix}{REST_ROLE}"].expected_ns > 0.0
    assert found[f"phase/{of.prefix}/{phase}"].expected_ns == pytest.approx(sum(each.expected_ns for each in roles))


def test_the_gather_of_the_prompt_is_a_phase() -> None:
    """It is the role of the token table in the prefill, all batches together, and with the prefill the whole graph."""
    of, times = catalogue_workload(scenario="p700-g3"), engine()
    found = case_forecasts(of, times)
    assert found[f"phase/{of.prefix}/embedding"] == found[f"operator/{of.prefix}/prefill/embd"]
    parts = [found[f"phase/{of.prefix}/{name}"] for name in ("embedding", "prefill")]
    assert sum(each.expected_ns for each in parts) == pytest.approx(
        times.phase(phase_shapes(of, Phase.PREFILL), "prefill").expected_ns
    )


@pytest.mark.long_but_first
@pytest.mark.parametrize(("scenario", "n_gen", "n_drawn"), [("p64-g8", 8, 9), ("p0-g8", 8, 8), ("p64-g0", 0, 1)])
@pytest.mark.parametrize("bound", ["expected_ns", "lower_ns", "upper_ns"])
def test_the_whole_is_its_phases_as_often_as_they_occur(scenario: str, n_gen: int, n_drawn: int, bound: str) -> None:
    """One prefill, each decode, and a token drawn after each evaluation; bounds add like expectations."""
    of = catalogue_workload(scenario=scenario)
    found = case_forecasts(of, engine())
    phases = {case_id.rpartition("/")[2]: each for case_id, each in found.items() if case_id.startswith("phase/")}
    occurs = {"embedding": 1, "prefill": 1, "decode": n_gen, "copy": n_drawn, "softmax": n_drawn, "sampling": n_drawn}
    expected = sum(getattr(phases[name], bound) * times for name, times in occurs.items() if name in phases)
    assert getattr(phases["end_to_end"], bound) == pytest.approx(expected)


def test_what_was_not_measured_has_no_forecast() -> None:
    """Without the sampler neither it nor the whole is forecast; everything else is."""
    of = catalogue_workload()
    prefix = f"phase/{of.prefix}"
    missing = set(case_forecasts(of, engine())) - set(case_forecasts(of, engine(TOKEN_PHASES[:2])))
    assert missing == {f"{prefix}/sampling", f"{prefix}/end_to_end"}


PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536)
NORM = OperatorShape(op="RMS_NORM+MUL", type="f32", n_inner=576)
LAYERS = {PRODUCT: 30, NORM: 60}


def times(*compositions: Composition, points: Iterable[CalibrationPoint] | None = None) -> EngineTimes:
    return EngineTimes(calibration(*compositions, points=points))


def alone_ns(shapes: dict[OperatorShape, int]) -> float:
    return sum(lawful_ns(shape) * count for shape, count in shapes.items())


def _joined(one: Composition, other: Composition) -> Composition:
    return replace(
        one,
        shapes=one.shapes + other.shapes,
        counts=one.counts + other.counts,
        shapes_ns=one.shapes_ns + other.shapes_ns,
    )


def width_of(found: TimeForecast) -> float:
    """Return how far the upper bound is from the expectation, as a logarithm."""
    return math.log(found.upper_ns / found.expected_ns)


def test_a_phase_is_its_operators_times_the_factor_and_the_rest() -> None:
    """With a factor of 1.2, and 700 ns and 50 ns for each operator beside them, the expectation follows by hand."""
    composed = (LAYERS, {PRODUCT: 40}, {NORM: 10})
    engine = times(*(composition(each, ratio=1.2, rest_ns=700.0 + 50.0 * sum(each.values())) for each in composed))
    shapes = {PRODUCT: 7, NORM: 3}
    assert engine.part(shapes, "decode").expected_ns == pytest.approx(1.2 * alone_ns(shapes), rel=0.001)
    assert engine.rest(10, "decode").expected_ns == pytest.approx(1200.0)
    assert engine.phase(shapes, "decode").expected_ns == pytest.approx(1.2 * alone_ns(shapes) + 1200.0, rel=0.001)
    with_gather = engine.phase(shapes, "decode", n_elsewhere=2).expected_ns
    assert with_gather == pytest.approx(1.2 * alone_ns(shapes) + 1300.0, rel=0.001)


def test_every_kind_has_a_factor_of_its_own() -> None:
    """Products that take 1.1 times as long within the engine and norms of 3 times add up, in a phase as in a part."""
    engine = times(*[_joined(composition({PRODUCT: 30}, ratio=1.1), composition({NORM: 60}, ratio=3.0))] * 2)
    shapes = {PRODUCT: 7, NORM: 300}
    expected_ns = 1.1 * alone_ns({PRODUCT: 7}) + 3.0 * alone_ns({NORM: 300})
    assert engine.part(shapes, "decode").expected_ns == pytest.approx(expected_ns, rel=0.001)
    assert engine.phase(shapes, "decode").expected_ns == pytest.approx(expected_ns, rel=0.001)


def test_without_a_composition_operators_add_up_as_they_are() -> None:
    """A phase that no composition ran has no factor and no rest, and the widest interval."""
    engine = times(composition(LAYERS, ratio=1.5, phase="prefill"), composition(LAYERS, ratio=1.5, phase="prefill"))
    found = engine.phase(LAYERS, "decode")
    assert engine.part({}, "decode") == TimeForecast(expected_ns=0.0, lower_ns=0.0, upper_ns=0.0)
    assert found.expected_ns == pytest.approx(alone_ns(LAYERS), rel=0.001)
    assert width_of(found) > width_of(engine.phase(LAYERS, "prefill"))
    assert engine.rest(90, "decode").expected_ns == 0.0


@given(st.lists(st.floats(0.5, 3.0), max_size=6), st.integers(1, 100), st.integers(0, 100), st.floats(0.0, 1e6))
def test_an_interval_holds_its_expectation(ratios: list[float], n_products: int, n_norms: int, rest_ns: float) -> None:
    """Whatever was composed, the expectation lies within its bounds, as far from one as from the other in ratio."""
    compositions = [composition(LAYERS, ratio=ratio, rest_ns=rest_ns) for ratio in ratios]
    engine = times(*compositions, points=points_of([PRODUCT, NORM]))
    shapes = {PRODUCT: n_products, NORM: n_norms}
    for found in (engine.phase(shapes, "decode"), engine.part(shapes, "decode"), engine.rest(9, "decode")):
        assert 0.0 <= found.lower_ns <= found.expected_ns <= found.upper_ns < math.inf
        assert found.lower_ns * found.upper_ns == pytest.approx(found.expected_ns**2)


def test_the_least_interval_is_that_of_fits_and_phases() -> None:
    """Four compositions that agree leave the least spread of a phase, by Student's quantile, and that of other fits."""
    engine = times(*(composition({PRODUCT: 30}) for _ in range(4)))
    quantile, spread = stats.t.ppf(0.95, 3), math.hypot(LEAST_FIT_SPREAD_RATIO, LEAST_SPREAD_RATIO)
    assert width_of(engine.phase({PRODUCT: 5}, "decode")) == pytest.approx(quantile * LEAST_SPREAD_RATIO)
    other = engine.phase({replace(PRODUCT, type="q4_0"): 5}, "decode")
    assert width_of(other) == pytest.approx(quantile * spread)


def test_errors_of_one_fit_add_and_those_of_two_even_out() -> None:
    """Two operators of one kind err together; two of different kinds in part cancel."""
    twin = replace(PRODUCT, n_outer=1537)
    even = {PRODUCT: 1, NORM: round(lawful_ns(PRODUCT) / lawful_ns(NORM))}
    engine = times(*(composition(LAYERS) for _ in range(4)))
    together, apart = (width_of(engine.part(shapes, "decode")) for shapes in ({PRODUCT: 1, twin: 1}, even))
    assert together == pytest.approx(width_of(engine.part({PRODUCT: 1}, "decode")))
    ratio = math.hypot(LEAST_FIT_SPREAD_RATIO / math.sqrt(2), LEAST_SPREAD_RATIO)
    assert apart / together == pytest.approx(ratio / math.hypot(LEAST_FIT_SPREAD_RATIO, LEAST_SPREAD_RATIO), rel=0.01)


def test_the_rest_is_less_certain_than_operators() -> None:
    engine = times(*(composition(LAYERS, rest_ns=900.0) for _ in range(4)))
    expected = stats.t.ppf(0.95, 3) * math.hypot(REST_SPREAD_RATIO, LEAST_SPREAD_RATIO)
    assert width_of(engine.rest(90, "decode")) == pytest.approx(expected)


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


def in_processes(*shifts: float) -> Composition:
    """Compose operators of which each process takes more or less, all alike."""
    steady = composition({PRODUCT: 30})
    return replace(
        steady,
        shapes_ns=tuple(tuple(once * math.exp(shift) for shift in shifts) for once, *_ in steady.shapes_ns),
        rest_ns=(0.0,) * len(shifts),
    )


def test_processes_that_differ_widen_the_interval() -> None:
    """By as much as the operators of the same architecture differ from process to process, a part as a phase."""
    steady, shifted = (times(*[in_processes(*shifts)] * 4) for shifts in ((0.0, 0.0, 0.0), (-0.2, 0.0, 0.2)))
    quantile = stats.t.ppf(0.95, 3)
    for kind in ("part", "phase"):
        before, after = (width_of(getattr(each, kind)({PRODUCT: 1}, "decode")) for each in (steady, shifted))
        assert after**2 - before**2 == pytest.approx((quantile * 0.2) ** 2, rel=0.001)


def test_the_spread_of_a_kind_is_that_of_its_parts() -> None:
    """Norms that differ between architectures widen the interval of norms, by their share that of both."""
    engine = times(
        *(
            _joined(composition({PRODUCT: 30}), composition({NORM: 60}, ratio=math.exp(shift)))
            for shift in (-0.3, 0.3, -0.3, 0.3)
        )
    )
    quantile, spread = stats.t.ppf(0.95, 3), stdev([-0.3, 0.3, -0.3, 0.3])
    least = math.hypot(LEAST_FIT_SPREAD_RATIO, LEAST_SPREAD_RATIO)
    assert width_of(engine.part({PRODUCT: 1}, "decode")) == pytest.approx(quantile * least)
    assert width_of(engine.part({NORM: 9}, "decode")) == pytest.approx(quantile * math.hypot(spread, least), rel=0.001)
    even = {PRODUCT: 1, NORM: round(lawful_ns(PRODUCT) / lawful_ns(NORM))}
    expected = math.hypot(LEAST_FIT_SPREAD_RATIO / math.sqrt(2), spread / 2, LEAST_SPREAD_RATIO)
    assert width_of(engine.part(even, "decode")) == pytest.approx(quantile * expected, rel=0.02)


@pytest.mark.parametrize("n_pairs", [1, 2, 4])
@pytest.mark.parametrize("high", [1.15, 1.3])
def test_a_phase_has_the_spread_of_what_is_left(n_pairs: int, high: float) -> None:
    """Where each kind has its factor, a phase differs by what the factors leave and not by those of its kinds.

    The same spread is worth less where it was seen on fewer architectures.
    """
    engine = times(*(composition(LAYERS, ratio=ratio) for ratio in (1.1, high) * n_pairs))
    n, spread = 2 * n_pairs, engine.factors["decode"].spread_ratio
    assert spread == pytest.approx(n / (n - 1) * math.log(high / 1.1) / 2, rel=0.001)
    expected = stats.t.ppf(0.95, n - 1) * math.hypot(LEAST_SPREAD_RATIO, spread)
    assert width_of(engine.phase({PRODUCT: 5}, "decode")) == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize("phase", [Phase.PREFILL, Phase.DECODE])
def test_the_shapes_of_a_phase_are_those_of_its_graph(phase: Phase) -> None:
    """Every operator of a phase is counted once, that of 30 layers thirty times."""
    workload = catalogue_workload("smollm2-135m-q8_0", "p64-g8")
    found = phase_shapes(workload, phase)
    assert isinstance(found, Counter)
    assert found.total() == len(workload.graph(phase))
    n_tokens = 64 if phase is Phase.PREFILL else 1
    gates = found[OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=1536, n_tokens=n_tokens)]
    assert gates == (2 * 29 if phase is Phase.PREFILL else 2 * 30)


def test_operators_come_in_the_order_of_the_graph() -> None:
    """A prompt starts at the gather of its embeddings and ends at the head, and each micro-batch does so."""
    workload = catalogue_workload("smollm2-135m-l2-q8_0", "p600-g1")
    found = phase_operators(workload, Phase.PREFILL)
    assert Counter(found) == phase_shapes(workload, Phase.PREFILL)
    gathers = [at for at, shape in enumerate(found) if shape.op == "GET_ROWS" and shape.n_tokens in (512, 88)]
    assert gathers[0] == 0
    assert {found[at].n_tokens for at in gathers} == {512, 88}
    assert found[-1] == OperatorShape(op="MUL_MAT", type="q8_0", n_inner=576, n_outer=49152, n_tokens=1)
