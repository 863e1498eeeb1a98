"""Bytes that operators move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.events import Tensor
from perfsuite.testing.engine_traces import node, tensor
from perfsuite.trace.graph.bytes import operator_bytes, tensor_bytes


def quantized(name: str, ne: tuple[int, ...], block_bytes: int = 34) -> Tensor:
    """Return a Q8_0 tensor: 34 bytes for 32 values."""
    made = tensor(name, ne, type="q8_0")
    row = ne[0] // 32 * block_bytes
    sizes = (*ne[1:], 1, 1, 1)
    return replace(made, nb=(block_bytes, row, row * sizes[0], row * sizes[0] * sizes[1]))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (tensor("a", (576,)), 2304),
        (tensor("a", (576, 3)), 6912),
        (quantized("a", (576, 192)), 576 * 192 // 32 * 34),
        (tensor("a", (4, 2), type="no type"), None),
        (tensor("a", (0, 2)), 0),
    ],
)
def test_a_tensor_is_as_long_as_its_elements(shown: Tensor, expected: int | None) -> None:
    """Blocks of a quantised type count as blocks; nothing is known of a type that ggml does not have."""
    assert tensor_bytes(shown) == expected


def test_a_view_across_strides_reaches_from_its_first_to_its_last_element() -> None:
    """A permuted view of 3 heads of 64 values at 256 positions is as long as the cache that it shows."""
    view = replace(tensor("k", (64, 256, 3), type="f16"), nb=(2, 384, 128, 98304))
    assert tensor_bytes(view) == 192 * 256 * 2


def test_a_broadcast_reads_its_element_once() -> None:
    """A stride of 0 takes no bytes."""
    assert tensor_bytes(replace(tensor("a", (64, 9)), nb=(4, 0, 0, 0))) == 256


def test_a_product_moves_weights_activations_and_result() -> None:
    """All three by their own sizes."""
    product = node("MUL_MAT", tensor("y", (192,)), quantized("w", (576, 192)), tensor("x", (576,)))
    assert operator_bytes(product) == 117504 + 4 * 576 + 4 * 192


def test_a_lookup_reads_the_rows_that_it_returns() -> None:
    """Two rows of 34/32 bytes a value, two ids and two rows of the result; not the table."""
    lookup = node("GET_ROWS", tensor("y", (64, 2)), quantized("t", (64, 1000)), tensor("ids", (2,), type="i32"))
    assert operator_bytes(lookup) == 2 * 68 + 8 + 512


def test_a_store_writes_the_rows_that_it_is_given() -> None:
    """One row in, one id, one row of F16 out; the cache behind them stays where it is."""
    cache = tensor("cache", (192, 256), type="f16", element_bytes=2)
    store = node("SET_ROWS", cache, tensor("k", (192,)), tensor("ids", (1,), type="i64", element_bytes=8), cache)
    assert operator_bytes(store) == 768 + 8 + 384


def test_experts_that_nobody_chose_are_not_read() -> None:
    """Of 60 matrices the 4 that one token chose; of two, never more than there are."""
    for n_experts, n_read in ((60, 4), (2, 2)):
        experts = quantized("w", (64, 32, n_experts))
        chosen = tensor("ids", (4,), type="i32")
        product = node("MUL_MAT_ID", tensor("y", (32, 4)), experts, tensor("x", (64,)), chosen)
        assert operator_bytes(product) == n_read * 64 * 32 // 32 * 34 + 256 + 16 + 512


def test_a_prompt_reads_the_different_experts() -> None:
    """16 tokens of 4 experts each choose 64 of 60, of which 60 (1 - (56/60)^16) = 40 differ."""
    experts, chosen = quantized("w", (64, 32, 60)), tensor("ids", (4, 16), type="i32")
    product = node("MUL_MAT_ID", tensor("y", (32, 4, 16)), experts, tensor("x", (64, 1, 16)), chosen)
    assert operator_bytes(product) == 40 * 64 * 32 // 32 * 34 + 16 * (256 + 16 + 512)


def test_what_fused_attention_reads_is_not_known() -> None:
    """A step at 20 positions skips most of a cache of 256, and nothing in the graph says so."""
    cache = tensor("cache_k_l0", (64, 256), type="f16", element_bytes=2)
    assert operator_bytes(node("FLASH_ATTN_EXT", tensor("y", (64,)), tensor("q", (64,)), cache, cache)) is None


def test_one_unknown_type_makes_the_sum_unknown() -> None:
    """A sum without one of its parts would be too small."""
    assert operator_bytes(node("ADD", tensor("y"), tensor("x", type="new"))) is None
