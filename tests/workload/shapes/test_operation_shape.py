"""An operation's shape: its id, and the least that it computes and moves."""

from __future__ import annotations

import pytest

from perfsuite.workload.kernel_catalog import KernelCase
from perfsuite.workload.shapes.operation_shape import OperationShape

IDS = (
    "gemm/m64-n512-k128/f16",
    "bmm/b32-m1-n65-k128/f32",
    "gemv/n49152-k576/q8_0",
    "gemv/n8-k256/q4_k",
    "attention/heads32-kvheads8-head64-context1000/q4_0",
)


@pytest.mark.parametrize("text", IDS)
def test_a_shape_comes_back_from_its_id(text: str) -> None:
    assert OperationShape.from_id(text).id == text
    assert OperationShape.from_id("bmm/b32-m1-n65-k128/f32").with_sizes(n=128).id == "bmm/b32-m1-n128-k128/f32"


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("gemm/m64-n576-k128/f16", "kernel/gemm/m576-n64-k128/f16"),
        ("gemv/n1536-k576/q8_0", "kernel/gemv_q8_0/m1536-k576/q8_0"),
    ],
)
def test_costs_agree_with_the_catalogue_of_kernels(text: str, kernel: str) -> None:
    """The same product under the catalogue's names of dimensions has the same FLOPs and bytes."""
    shape, case = OperationShape.from_id(text), KernelCase.from_id(kernel)
    assert shape.flops == case.flops
    assert shape.moved_bytes == case.read_bytes + case.written_bytes


def test_a_batched_product_is_as_many_products() -> None:
    one, many = (OperationShape.from_id(f"bmm/b{b}-m3-n65-k128/f16") for b in (1, 7))
    assert (many.flops, many.moved_bytes, many.n_outputs) == (7 * one.flops, 7 * one.moved_bytes, 7 * one.n_outputs)


def test_attention_reads_keys_and_values_once_for_each_kv_head() -> None:
    """Heads that share a KV head compute each, and read together: 2 x 100 x 2 x 64 values of 2 bytes, and q and out."""
    shape = OperationShape.from_id("attention/heads8-kvheads2-head64-context100/f16")
    assert shape.flops == 2 * (2 * 8 * 100 * 64)
    assert shape.stored_bytes == 2 * 100 * 2 * 64 * 2
    assert shape.moved_bytes - shape.stored_bytes == 2 * 4 * 8 * 64
