from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.workload.catalog import find
from perfsuite.workload.tensor_list import in_full, kind_of, layer_of, shortened
from perfsuite.workload.tensors import TensorSpec, tensor_specs


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


def test_tensors_lie_layer_by_layer() -> None:
    """In full, what is of no layer comes first, and then the layers in their order."""
    found = in_full(shortened(tensor_specs(find("smollm2-135m").with_layers(11)), 11), 11)
    layers = [layer_of(each.name) for each in found]
    assert layers[:2] == [None, None]
    assert layers[2:] == sorted(each for each in layers if each is not None)


def test_a_kind_has_no_number() -> None:
    """Only the number of a layer is dropped, wherever it is in the name."""
    assert kind_of("enc.blk.12.attn_q.weight") == "enc.blk.*.attn_q.weight"
    assert kind_of("dense_2.weight") == "dense_2.weight"
    assert layer_of("blk.12.post_ffw_norm_1.weight") == 12
