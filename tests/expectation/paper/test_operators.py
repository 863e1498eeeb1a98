"""Costs of matrix products."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.operators.tiling import chunk_bounds, padded, tile_efficiency
from perfsuite.expectation.paper.operators import (
    BF16,
    bmm,
    dequantize_weights,
    elementwise,
    embedding,
    find_format,
    linear,
    lora_update,
    piecewise_linear,
    rms_norm,
    rope,
    softmax,
)
from perfsuite.records.op_cost import OpCost


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
