"""Costs of matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError, QuantizationError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.matmul import (
    bmm,
    dequantize_weights,
    elementwise,
    embedding,
    linear,
    lora_update,
    piecewise_linear,
    rms_norm,
    rope,
    softmax,
)
from perfsuite.expectation.operators.number_format import BF16, NUMBER_FORMATS, NumberFormat, find_format
from perfsuite.expectation.operators.tiling import check_count, check_positive, chunk_bounds, padded, tile_efficiency
from perfsuite.workload.ggml_types import GGML_TYPES

_ANY_FORMAT = st.sampled_from(sorted(NUMBER_FORMATS.values(), key=lambda each: each.name))
_COUNT = st.integers(0, 100_000)


@pytest.mark.parametrize(
    ("name", "n_bytes"),
    [
        *(("bf16", 20), ("fp16", 20), ("fp32", 40), ("int8", 10), ("int16", 20), ("int4", 5)),
        *(("mxfp8", 33), ("MXINT8", 33), ("q4_0", 18), ("Q6_K", 210)),
    ],
)
def test_ten_elements_take_whole_blocks(name: str, n_bytes: int) -> None:
    """Values are stored in whole bytes or blocks of their format."""
    assert find_format(name).stored_bytes(10) == n_bytes


@pytest.mark.parametrize(
    ("name", "k", "n", "n_bytes"),
    [
        *(("int4", k, 4096, k * 4096 * 133 // 256) for k in (128, 4096, 11008)),
        ("int4", 129, 3, 3 * 65 + 15),
        ("int4", 1, 1, 1 + 3),
        ("mxfp8", 64, 10, 10 * 66),
        ("mxint8", 64, 10, 10 * 66),
    ],
)
def test_matrices_carry_the_parameters_of_their_groups(name: str, k: int, n: int, n_bytes: int) -> None:
    """128 int4 weights along k share 2 bytes of scale and half a byte of zero, rounded up once; 32 of MX 8 bits."""
    assert find_format(name).matrix_bytes(k, n) == n_bytes


@pytest.mark.parametrize("name", sorted(GGML_TYPES))
def test_a_ggml_type_has_its_true_blocks(name: str) -> None:
    kind = GGML_TYPES[name]
    assert find_format(name).stored_bytes(3 * kind.block_values) == kind.row_bytes(3 * kind.block_values)


@given(_ANY_FORMAT, _COUNT, _COUNT)
def test_more_elements_never_take_less(number_format: NumberFormat, few: int, more: int) -> None:
    """Stored bytes grow with the elements, are integers, and are not lost when two runs are joined."""
    both = number_format.stored_bytes(few + more)
    assert isinstance(both, int)
    assert max(number_format.stored_bytes(few), number_format.stored_bytes(more)) <= both
    assert both <= number_format.stored_bytes(few) + number_format.stored_bytes(more)


def test_floats_are_not_dequantised() -> None:
    plain = {name for name, each in NUMBER_FORMATS.items() if not each.is_quantized}
    assert plain == {"bf16", "fp16", "fp32", "f16", "f32", "f64"}


def test_an_unknown_format_is_refused_with_what_is_accepted() -> None:
    with pytest.raises(QuantizationError, match=r"number format 'int3' is unknown; accepted are .*bf16"):
        find_format("int3")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_positive(m=0), "m is 0, expected a positive integer"),
        (lambda: check_positive(k=1, n=-4), "n is -4, expected a positive integer"),
        (lambda: check_positive(m=1.5), "m is 1.5, expected a positive integer"),
        (lambda: check_positive(m=True), "m is True, expected a positive integer"),
        (lambda: check_count(n_past=-1), "n_past is -1, expected an integer of 0 or more"),
        (lambda: list(chunk_bounds(10, 0)), "chunk is 0, expected a positive integer"),
        (lambda: padded(1, 0), "tile is 0, expected a positive integer"),
    ],
)
def test_a_dimension_out_of_range_is_named(check: Callable[..., Any], message: str) -> None:
    with pytest.raises(ArchitectureError) as caught:
        check()
    check_positive(m=1)
    check_count(n_past=0)
    assert str(caught.value) == message


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 100))
def test_chunks_cover_the_prompt_in_order(n_prompt: int, chunk: int, n_past: int) -> None:
    bounds = list(chunk_bounds(n_prompt, chunk, n_past))
    assert sum(n_tokens for _, n_tokens in bounds) == n_prompt
    assert all(1 <= n_tokens <= chunk for _, n_tokens in bounds)
    assert bounds[0][0] == n_past
    ends = [past + n_tokens for past, n_tokens in bounds]
    assert [past for past, _ in bounds[1:]] == ends[:-1]


@given(st.integers(1, 10_000), st.integers(1, 500))
def test_padding_reaches_the_next_whole_tile(length: int, tile: int) -> None:
    up = padded(length, tile)
    assert up % tile == 0
    assert 0 <= up - length < tile
    assert padded(up, tile) == up
    assert tile_efficiency(length, tile) == pytest.approx(length / up)


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        (elementwise(3, 5), OpCost(flops=15, read_bytes=60, written_bytes=30)),
        (piecewise_linear(10), OpCost(flops=20, read_bytes=20 + 512, written_bytes=20, parameter_bytes=512)),
        (rms_norm(3, 10), OpCost(flops=120, read_bytes=80, written_bytes=60, parameter_bytes=20)),
        (softmax(4, 5), OpCost(flops=120, read_bytes=40, written_bytes=40)),
        (softmax(4, 5, activations=find_format("int8")), OpCost(flops=120, read_bytes=20, written_bytes=20)),
        (embedding(3, 100, 8), OpCost(read_bytes=2 * (800 + 8), written_bytes=48, parameter_bytes=1600)),
        (rope(3, 8, table_elements=5), OpCost(flops=72, read_bytes=58, written_bytes=48, parameter_bytes=10)),
        (linear(3, 5, 7, weights=BF16), OpCost(flops=210, read_bytes=100, written_bytes=42, parameter_bytes=70)),
        (dequantize_weights(5, 7), OpCost(flops=70, n_dispatches=0)),
        (lora_update(5, 7, 4), OpCost(flops=10 * 35, read_bytes=96, parameter_bytes=96, n_dispatches=0)),
        (bmm(8, 2, 3, 5, activations=BF16, right_bytes=11), OpCost(flops=480, read_bytes=107, written_bytes=160)),
    ],
)
def test_a_cost_is_its_formula(cost: OpCost, expected: OpCost) -> None:
    """Elements of two bytes are read and written once; tables and weights are parameters; an embedding reads all.

    A product has 2 FLOPs a multiply-add; what is done to its weights happens in its dispatch.
    """
    assert cost == expected


_SIDE = st.integers(1, 3000)


@given(_SIDE, _SIDE, _SIDE, _SIDE)
def test_a_linear_operator_adds_up_over_rows(m: int, more: int, k: int, n: int) -> None:
    """Two chunks of rows compute what both together do, and read the parameters twice."""
    whole, *chunks = (linear(rows, k, n, weights=BF16) for rows in (m + more, m, more))
    parts = chunks[0] + chunks[1]
    assert parts.flops == whole.flops
    assert parts.read_bytes - parts.parameter_bytes == whole.read_bytes - whole.parameter_bytes
    assert parts.written_bytes == whole.written_bytes
    assert parts.parameter_bytes == 2 * whole.parameter_bytes


@given(st.integers(1, 64), _SIDE, _SIDE, _SIDE)
def test_a_batched_product_is_that_many_products(b: int, m: int, k: int, n: int) -> None:
    """b x (m, k) x (k, n) costs b linear operators without parameters, in one dispatch."""
    one = linear(m, k, n, weights=BF16)
    cost = bmm(b, m, k, n, activations=BF16, right_bytes=2 * b * k * n)
    products = (b * one.flops, b * one.read_bytes, b * one.written_bytes)
    assert (cost.flops, cost.read_bytes, cost.written_bytes) == products
    assert (cost.parameter_bytes, cost.n_dispatches) == (0, 1)
