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


@pytest.mark.parametrize(
    ("gguf_architecture", "changes", "shapes"),
    [
        ("llama", {"tied_embeddings": True}, {"output.weight": None}),
        ("llama", {"tied_embeddings": False}, {"output.weight": (256, 384)}),
        ("llama", {}, {"blk.8.attn_q.weight": (256, 256), "blk.8.attn_k.weight": (256, 128)}),
        ("llama", {}, {"blk.8.attn_v.weight": (256, 128)}),
        ("phi3", {}, {"blk.0.attn_qkv.weight": (256, 512), "rope_factors_long.weight": (24,)}),
        ("phi3", {}, {"blk.0.ffn_up.weight": (256, 1024), "blk.0.ffn_gate.weight": None}),
        ("plm", {}, {"blk.0.attn_kv_b.weight": (256, 4 * 96)}),
        ("deepseek2", {}, {"blk.0.attn_k_b.weight": (32, 256, 4), "blk.0.attn_v_b.weight": (256, 64, 4)}),
        ("deepseek2", {}, {"blk.0.ffn_up.weight": (256, 512), "blk.0.ffn_gate_inp.weight": None}),
        ("deepseek2", {}, {"blk.1.ffn_gate_inp.weight": (256, 6), "blk.1.ffn_down_exps.weight": (256, 256, 6)}),
    ],
)
def test_layouts(
    tiny: Callable[..., Architecture],
    gguf_architecture: str,
    changes: dict[str, bool],
    shapes: dict[str, tuple[int, ...] | None],
) -> None:
    """An output only where it is untied, narrower grouped keys, fused or absorbed matrices, dense layers in front."""
    found = _shapes(tiny(gguf_architecture, **changes))
    assert {name: found.get(name) for name in shapes} == shapes


def test_layer_norms_have_biases(tiny: Callable[..., Architecture]) -> None:
    """GPT-NeoX has a bias beside each matrix and each norm of a layer."""
    names = _shapes(tiny("gptneox"))
    layer = [name for name in names if name.startswith("blk.0.")]
    assert {name.removesuffix(".weight") + ".bias" for name in layer if name.endswith(".weight")} <= set(names)
