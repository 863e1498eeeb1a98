"""The products of a step of decoding and their weights."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.trace_cases import (
    attended_positions,
    growth_expectation,
    has_growth,
    has_line,
    linearity_expectation,
)
from perfsuite.records.ceilings import Ceilings

from ..catalogue_workloads import catalogue_workload
from ..synthetic_roofline import processor_ceilings


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
