from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.workload.tensors import TensorSpec, in_full, shortened


def test_layers_that_are_alike_are_one_row() -> None:
    """A row has a star where each layer has its tensor, else the ranges of those that have."""
    tensors = [TensorSpec(name=f"blk.{at}.attn_norm.weight", ne=(8,)) for at in range(6)]
    tensors += [TensorSpec(name=f"blk.{at}.attn_q.weight", ne=(8, 8)) for at in (0, 2, 3, 5)]
    assert shortened(tensors, 6) == {"blk.*.attn_norm.weight": (8,), "blk.0,2-3,5.attn_q.weight": (8, 8)}


@given(st.sets(st.integers(0, 9), min_size=1), st.integers(1, 10))
def test_what_is_shortened_comes_back(layers: set[int], n_layers: int) -> None:
    tensors = {TensorSpec(name=f"blk.{at}.ffn_up.weight", ne=(4, 2)) for at in layers}
    tensors.add(TensorSpec(name="token_embd.weight", ne=(4, 7)))
    assert set(in_full(shortened(sorted(tensors, key=lambda each: each.name), n_layers), n_layers)) == tensors
