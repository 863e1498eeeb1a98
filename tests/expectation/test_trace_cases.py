"""The cases that are judged by a trace."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from perfsuite.expectation.trace_cases import TRACE, ReuseExpectation, n_routed_layers, reuse_expectation, trace_cases
from perfsuite.records.events import Phase

from ..catalogue_workloads import catalogue_workload


def expectation(n_steps: int, n_layers: int = 4) -> ReuseExpectation:
    """Return what is expected of 4 of 60 experts."""
    return reuse_expectation(60, 4, n_layers, n_steps)


def test_a_long_run_sees_the_geometric_mean() -> None:
    """Far beyond E / u = 15 steps the mean distance is 15, and the density is u / E."""
    found = expectation(2_000, n_layers=1)
    assert found.mean_distance == pytest.approx(15.0, rel=0.01)
    assert found.density_ratio == pytest.approx(4 / 60)


def test_the_formula_and_the_bounds_agree_with_a_plain_simulation() -> None:
    """Another simulation's mean is the formula's, and its runs are within the bounds as often as they should."""
    found, chance, means, n_found = expectation(40), random.Random(7), [], []
    for _ in range(200):
        distances: list[int] = []
        for _layer in range(4):
            last: dict[int, int] = {}
            for step in range(40):
                for expert in chance.sample(range(60), 4):
                    if expert in last:
                        distances.append(step - last[expert])
                    last[expert] = step
        means.append(fmean(distances))
        n_found.append(len(distances))
    assert found.mean_distance == pytest.approx(fmean(means), rel=0.01)
    assert found.n_distances == pytest.approx(fmean(n_found), rel=0.02)
    assert found.lower_distance is not None
    assert found.upper_distance is not None
    inside = sum(found.lower_distance <= mean <= found.upper_distance for mean in means)
    assert inside >= 190
    assert found.upper_distance - found.lower_distance < 3.0


def case_ids(name: str, scenario: str = "siso", n_threads: int = 2) -> list[str]:
    workload = catalogue_workload(name, scenario)
    prefix = f"trace/{name}/{scenario}/"
    found = list(trace_cases(workload, n_threads))
    assert all(case.kind == TRACE and case.case_id.startswith(prefix) for case in found)
    assert len({case.case_id for case in found}) == len(found)
    return [case.case_id.removeprefix(prefix) for case in found]


def test_a_dense_workload_has_balance_growth_and_linearity() -> None:
    """Roles of both phases are judged, growth and linearity once; one thread has no balance, as it shares nothing."""
    found = case_ids("smollm2-135m-q8_0")
    assert {"balance/prefill/ffn_up", "balance/decode/ffn_up", "balance/decode/flash_attn_ext"} <= set(found)
    assert found[-2:] == case_ids("smollm2-135m-q8_0", n_threads=1) == ["attention_growth", "decode_linearity"]


def test_a_routed_workload_has_its_experts() -> None:
    """Each layer of Qwen1.5-MoE routes, so its reuse is judged."""
    assert case_ids("qwen1.5-moe-a2.7b-l2-q4_0")[-1] == "expert_reuse"
    workload = catalogue_workload("deepseek-v2-lite-l3-q4_0", "siso")
    assert n_routed_layers(workload) == 2


@pytest.mark.parametrize(("scenario", "phase"), [("p64-g0", Phase.PREFILL), ("p0-g24", Phase.DECODE)])
def test_a_scenario_of_one_phase_has_its_cases_alone(scenario: str, phase: Phase) -> None:
    """A prompt alone has no decode to judge, and the other way round."""
    found = [each for each in case_ids("smollm2-135m-q8_0", scenario) if each.startswith("balance/")]
    assert {each.split("/")[1] for each in found} == {phase.value}
