"""Forecasts of the cases of a workload, by case id."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import REST_ROLE, operator_cases, phase_cases
from perfsuite.expectation.timing.calibration import TokenPhase
from perfsuite.expectation.timing.case_times import case_forecasts
from perfsuite.expectation.timing.engine_times import EngineTimes, TimeForecast, phase_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.records.events import Phase

from ...catalogue_workloads import catalogue_workload
from ...synthetic_calibration import calibration, composition, token_phase

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


def summed(found: list[TimeForecast]) -> float:
    """Add what is expected."""
    return sum(each.expected_ns for each in found)


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("scenario", ["siso", "p700-g3", "p8-g0", "p0-g4", "p5-g5-d300"])
@pytest.mark.parametrize("model", ["smollm2-135m-l2-q8_0", "qwen3-0.6b-l2-q4_k_m", "deepseek-v2-lite-l3-q4_0"])
def test_every_case_has_a_forecast(model: str, scenario: str, flash_attn: bool) -> None:
    """The ids are those of the phases and operators that a run enumerates, no more and no fewer."""
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
    assert found[f"phase/{of.prefix}/{phase}"].expected_ns == pytest.approx(summed(roles))


def test_the_gather_of_the_prompt_is_a_phase() -> None:
    """It is the role of the token table in the prefill, all batches together, and with the prefill the whole graph."""
    of, times = catalogue_workload(scenario="p700-g3"), engine()
    found = case_forecasts(of, times)
    assert found[f"phase/{of.prefix}/embedding"] == found[f"operator/{of.prefix}/prefill/embd"]
    parts = [found[f"phase/{of.prefix}/{name}"] for name in ("embedding", "prefill")]
    assert summed(parts) == pytest.approx(times.phase(phase_shapes(of, Phase.PREFILL), "prefill").expected_ns)


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


def test_the_token_phases_are_of_this_vocabulary() -> None:
    """4 us for 1000 logits are 49 times as much for 49152."""
    of = catalogue_workload()
    found = case_forecasts(of, engine())[f"phase/{of.prefix}/softmax"]
    assert found.expected_ns == pytest.approx(4000.0 * 49152 / 1000)


def test_what_was_not_measured_has_no_forecast() -> None:
    """Without the sampler neither it nor the whole is forecast; everything else is."""
    of = catalogue_workload()
    prefix = f"phase/{of.prefix}"
    missing = set(case_forecasts(of, engine())) - set(case_forecasts(of, engine(TOKEN_PHASES[:2])))
    assert missing == {f"{prefix}/sampling", f"{prefix}/end_to_end"}


def test_an_unknown_graph_has_no_forecast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where operators cannot be enumerated nothing is forecast."""
    monkeypatch.setattr("perfsuite.expectation.cases.KNOWN_GRAPHS", frozenset())
    assert case_forecasts(catalogue_workload(), engine()) == {}


def test_more_layers_take_longer() -> None:
    """Thirty layers are forecast longer than two, in every phase of the graph; what follows a token is the same."""
    small, large = catalogue_workload(), catalogue_workload("smollm2-135m-q8_0")
    few, many = case_forecasts(small, engine()), case_forecasts(large, engine())
    for phase in ("prefill", "decode", "end_to_end"):
        assert many[f"phase/{large.prefix}/{phase}"].expected_ns > few[f"phase/{small.prefix}/{phase}"].expected_ns
    assert many[f"phase/{large.prefix}/copy"] == few[f"phase/{small.prefix}/copy"]
