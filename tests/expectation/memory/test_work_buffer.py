"""The scratch memory of products."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import llama_workload
from perfsuite.expectation.memory.work_buffer import dot_type, work_bytes
from perfsuite.records.events import Phase
from perfsuite.workload.scenario import find_scenario

from ...catalogue_workloads import catalogue_weights, catalogue_workload


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [("f32", "F32"), ("F16", "F16"), ("q4_0", "Q8_0"), ("q4_1", "Q8_1"), ("q4_k", "Q8_K"), ("mxfp4", "Q8_0")],
)
def test_each_matrix_has_the_type_of_its_partner(matrix: str, expected: str) -> None:
    """Quantised matrices take activations in blocks of 8-bit integers of the same length."""
    assert dot_type(matrix) == expected


def test_the_widest_product_decides() -> None:
    """The way down of the feed-forward reads 64 rows of 1536 values, 34 bytes for each 32 of them."""
    workload = catalogue_workload("smollm2-135m-q8_0", "siso")
    assert work_bytes(workload, workload.batches(Phase.PREFILL)) == 64 * 1536 * 34 // 32


def test_scores_are_turned_to_f16_without_flash_attention() -> None:
    """Nine heads of 64 by 256 scores, at 2 bytes, outweigh every product with weights."""
    weights = catalogue_weights("smollm2-135m-q8_0")
    workload = llama_workload(weights, find_scenario("siso"), flash_attn=False)
    assert work_bytes(workload, workload.batches(Phase.PREFILL)) == 9 * 64 * 256 * 2


def test_no_evaluation_needs_no_scratch() -> None:
    """Nothing is computed, nothing is kept."""
    workload = catalogue_workload("smollm2-135m-q8_0", "siso")
    assert work_bytes(workload, ()) == 0
