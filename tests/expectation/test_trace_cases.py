"""Cases that are judged by a trace, and what is expected of them."""

from __future__ import annotations

import random
from statistics import fmean
from typing import Any

import pytest

from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.trace_cases import (
    TRACE,
    ReuseExpectation,
    attended_positions,
    growth_expectation,
    has_growth,
    has_line,
    linearity_expectation,
    n_routed_layers,
    reuse_expectation,
    trace_cases,
)
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.events import Phase

from ..catalogue_workloads import catalogue_workload
from ..synthetic_roofline import processor_ceilings


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


def workload(name: str = "smollm2-135m-l2-q8_0", scenario: str = "p64-g600", **settings: Any) -> LlamaWorkload:
    return catalogue_workload(name, scenario, **settings)


def ceilings(flops_per_s: float, bytes_per_s: float) -> Ceilings:
    peaks = dict.fromkeys(("fp32_flops_per_s", "int8_flops_per_s", "f16_flops_per_s"), flops_per_s)
    return processor_ceilings((1 << 30, bytes_per_s), **peaks)


def test_a_position_costs_its_keys_and_values() -> None:
    """Two layers read 3 heads of 64 F16 keys and values, and an F16 mask, and 9 heads multiply both."""
    found = growth_expectation(workload())
    assert found.bytes_per_position == 2 * (3 * 64 * 2 * 2 + 2)
    assert found.flops_per_position == 2 * 9 * (2 * (64 + 64) + 6)
    quantised = growth_expectation(workload(type_k="q8_0", type_v="q8_0"))
    assert quantised.bytes_per_position == pytest.approx(2 * (3 * 64 * 2 * 34 / 32 + 2))


def test_the_slower_of_memory_and_arithmetic_decides() -> None:
    """On a device of slow memory the bytes are the slope, on one of slow arithmetic the FLOPs."""
    found = growth_expectation(workload())
    assert found.slope_ns(ceilings(1e15, 1e9)) == pytest.approx(found.bytes_per_position)
    assert found.slope_ns(ceilings(1e9, 1e15)) == pytest.approx(found.flops_per_position)


@pytest.mark.parametrize(
    ("n_used", "positions"), [(65, 65), (256, 256), (257, 512), (300, 512), (512, 512), (513, 768)]
)
def test_the_busiest_thread_is_what_a_step_waits_for(n_used: int, positions: int) -> None:
    """From 512 padded positions on a thread sees half of them, in use or not, so the step takes as long as both."""
    assert attended_positions(workload(), n_used, 2) == positions
    assert attended_positions(workload(flash_attn=False), n_used, 2) == -(-n_used // 256) * 256


@pytest.mark.parametrize(
    ("name", "scenario", "grows", "has_products"),
    [
        ("smollm2-135m-q8_0", "siso", True, True),
        ("smollm2-135m-q8_0", "p64-g1", False, True),
        ("smollm2-135m-q8_0", "p64-g0", False, False),
        ("gemma-2-2b-q8_0", "siso", False, True),
    ],
)
def test_growth_needs_steps_and_a_whole_cache(name: str, scenario: str, grows: bool, has_products: bool) -> None:
    """One step has no growth, and a sliding window stops it; a prompt alone has no products of decoding."""
    assert (has_growth(workload(name, scenario)), has_line(workload(name, scenario))) == (grows, has_products)


def test_products_have_the_bytes_of_their_weights() -> None:
    """A Q8_0 matrix of 576 x 192 takes 34 bytes for 32 elements; each layer has its own."""
    found = linearity_expectation(catalogue_workload("smollm2-135m-l2-q8_0"))
    keys = [each for each in found.products if each.role == "Kcur"]
    assert [(each.layer, each.type, each.weight_bytes) for each in keys] == [
        (layer, "q8_0", 576 * 192 * 34 // 32) for layer in (0, 1)
    ]
    assert {each.role for each in found.products} == {
        *("Qcur", "Kcur", "Vcur", "attn_out", "ffn_gate", "ffn_up", "ffn_out", "result_output")
    }
    assert found.types == ("q8_0",)
    assert found.working_set_bytes > sum(each.weight_bytes for each in found.products)
    assert found.slope_ns_per_byte(ceilings(1e12, 1e10)) == pytest.approx(0.1)  # at 10 GB/s


def test_routed_products_read_the_chosen_experts() -> None:
    """Four of sixty experts are read in a step."""
    found = linearity_expectation(catalogue_workload("qwen1.5-moe-a2.7b-l2-q4_0"))
    (gate, _) = [each for each in found.products if each.role == "ffn_moe_gate"]
    assert gate.weight_bytes == 4 * 2048 * 1408 * 18 // 32
