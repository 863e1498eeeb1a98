"""The products of a step of decoding and their weights."""

from __future__ import annotations

import pytest

from perfsuite.expectation.decode_linearity import has_line, linearity_expectation

from ..catalogue_workloads import catalogue_workload
from .test_attention_growth import ceilings


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


def test_a_byte_takes_what_memory_needs_for_it() -> None:
    """At 10 GB/s a byte is 0.1 ns."""
    found = linearity_expectation(catalogue_workload("smollm2-135m-l2-q8_0"))
    assert found.slope_ns_per_byte(ceilings(1e12, 1e10)) == pytest.approx(0.1)


def test_routed_products_read_the_chosen_experts() -> None:
    """Four of sixty experts are read in a step."""
    found = linearity_expectation(catalogue_workload("qwen1.5-moe-a2.7b-l2-q4_0"))
    (gate, _) = [each for each in found.products if each.role == "ffn_moe_gate"]
    assert gate.weight_bytes == 4 * 2048 * 1408 * 18 // 32


def test_without_decoding_there_is_no_line() -> None:
    """A scenario of a prompt alone has no products of decoding."""
    assert has_line(catalogue_workload("smollm2-135m-l2-q8_0"))
    assert not has_line(catalogue_workload("smollm2-135m-l2-q8_0", "p64-g0"))
