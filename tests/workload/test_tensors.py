from __future__ import annotations

from collections.abc import Callable

import pytest

from perfsuite.workload.architecture import Architecture
from perfsuite.workload.families import FAMILIES
from perfsuite.workload.tensors import TensorSpec, tensor_specs


def _shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    return {spec.name: spec.ne for spec in tensor_specs(architecture)}


@pytest.mark.parametrize("gguf_architecture", FAMILIES)
def test_names_are_unique(tiny: Callable[..., Architecture], gguf_architecture: str) -> None:
    """No tensor is listed twice."""
    specs = tensor_specs(tiny(gguf_architecture))
    assert len({spec.name for spec in specs}) == len(specs)


def test_a_spec_counts_its_rows() -> None:
    """Elements are all extents multiplied, rows all but the first."""
    spec = TensorSpec(name="blk.0.ffn_up_exps.weight", ne=(256, 512, 6))
    assert (spec.n_elements, spec.n_rows) == (256 * 512 * 6, 512 * 6)


def test_tied_embeddings_have_no_output(tiny: Callable[..., Architecture]) -> None:
    """The output matrix is listed only where it is not the token embedding."""
    assert "output.weight" not in _shapes(tiny(tied_embeddings=True))
    assert _shapes(tiny(tied_embeddings=False))["output.weight"] == (256, 384)


def test_grouped_keys_are_narrower(tiny: Callable[..., Architecture]) -> None:
    """Keys and values have the width of the KV heads."""
    shapes = _shapes(tiny())
    assert shapes["blk.8.attn_q.weight"] == (256, 256)
    assert shapes["blk.8.attn_k.weight"] == shapes["blk.8.attn_v.weight"] == (256, 128)


def test_fused_layouts(tiny: Callable[..., Architecture]) -> None:
    """Phi holds Q, K and V in one matrix, and gate and up in another."""
    shapes = _shapes(tiny("phi3"))
    assert shapes["blk.0.attn_qkv.weight"] == (256, 512)
    assert shapes["blk.0.ffn_up.weight"] == (256, 1024)
    assert shapes["rope_factors_long.weight"] == (24,)
    assert "blk.0.ffn_gate.weight" not in shapes


def test_layer_norms_have_biases(tiny: Callable[..., Architecture]) -> None:
    """GPT-NeoX has a bias beside each matrix and each norm of a layer."""
    names = _shapes(tiny("gptneox"))
    layer = [name for name in names if name.startswith("blk.0.")]
    assert {name.removesuffix(".weight") + ".bias" for name in layer if name.endswith(".weight")} <= set(names)


def test_latent_attention_absorbed_or_not(tiny: Callable[..., Architecture]) -> None:
    """The decompression is one matrix, or one stack for keys and one for values where it is absorbed."""
    assert _shapes(tiny("plm"))["blk.0.attn_kv_b.weight"] == (256, 4 * 96)
    absorbed = _shapes(tiny("deepseek2"))
    assert absorbed["blk.0.attn_k_b.weight"] == (32, 256, 4)
    assert absorbed["blk.0.attn_v_b.weight"] == (256, 64, 4)


def test_leading_layers_are_dense(tiny: Callable[..., Architecture]) -> None:
    """Experts begin after the dense layers."""
    shapes = _shapes(tiny("deepseek2"))
    assert "blk.0.ffn_up.weight" in shapes
    assert "blk.0.ffn_gate_inp.weight" not in shapes
    assert shapes["blk.1.ffn_gate_inp.weight"] == (256, 6)
    assert shapes["blk.1.ffn_down_exps.weight"] == (256, 256, 6)
