"""The cases that are judged by a trace."""

from __future__ import annotations

import pytest

from perfsuite.expectation.trace_cases import TRACE, n_routed_layers, trace_cases
from perfsuite.records.events import Phase

from ..catalogue_workloads import catalogue_workload


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
