"""What is interleaved, by type, shape and processor."""

from __future__ import annotations

import pytest

from perfsuite.expectation.memory.repack import is_repacked
from perfsuite.workload.tensors import TensorSpec

X86 = ("avx2",)
ARM = ("neon", "dotprod")

MATRIX = TensorSpec(name="blk.0.attn_q.weight", ne=(512, 64))


@pytest.mark.parametrize(
    ("type_name", "features", "expected"),
    [
        ("Q4_0", X86, True),
        ("q4_0", X86, True),
        ("Q4_0", (), False),
        ("Q8_0", X86, False),
        ("Q8_0", ARM, True),
        ("Q8_0", ("neon",), False),
        ("Q6_K", X86, False),
        ("Q6_K", ("neon", "matmul_int8"), True),
        ("Q2_K", X86, False),
        ("Q2_K", ("avx2", "avx512"), True),
        ("F16", ("avx2", "avx512"), False),
    ],
)
def test_type_and_processor_decide(type_name: str, features: tuple[str, ...], *, expected: bool) -> None:
    """Each type has an interleaved form on some processors only."""
    assert is_repacked(MATRIX, type_name, features) is expected


def test_a_matrix_needs_a_multiple_of_rows() -> None:
    """AVX2 interleaves 8 rows of Q4_0, Arm 4."""
    twelve = TensorSpec(name="blk.0.attn_k.weight", ne=(512, 12))
    assert not is_repacked(twelve, "Q4_0", X86)
    assert is_repacked(twelve, "Q4_0", ARM)


@pytest.mark.parametrize(
    ("name", "ne", "expected"),
    [
        ("token_embd.weight", (512, 64), False),
        ("output.weight", (512, 64), True),
        ("blk.0.ffn_up_exps.weight", (512, 64, 4), True),
        ("blk.0.attn_k_b.weight", (512, 64, 4), False),
        ("blk.0.ffn_gate_inp_shexp.weight", (512,), False),
    ],
)
def test_only_matrices_of_products_are_copied(name: str, ne: tuple[int, ...], *, expected: bool) -> None:
    """Routed experts have three dimensions, other matrices two; embeddings are looked up."""
    assert is_repacked(TensorSpec(name=name, ne=ne), "Q4_0", X86) is expected
