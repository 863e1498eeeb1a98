from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.families import FAMILIES
from perfsuite.workload.tensors import tensor_specs


def _shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    return {spec.name: spec.ne for spec in tensor_specs(architecture)}


@pytest.mark.parametrize("gguf_architecture", FAMILIES)
def test_names_are_unique(tiny: Callable[..., Architecture], gguf_architecture: str) -> None:
    specs = tensor_specs(tiny(gguf_architecture))
    assert len({spec.name for spec in specs}) == len(specs)


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


@pytest.mark.parametrize(
    ("gguf_architecture", "changes", "message"),
    [
        ("deepseek2", {"moe": {"n_experts_used": 7}}, "moe.n_experts_used is 7, expected at most n_experts (6)"),
        ("deepseek2", {"moe": {"n_dense_layers": 10}}, "moe.n_dense_layers is 10, expected 0 to n_layers (9)"),
        ("llama", {"n_kv_heads": 3}, "n_kv_heads is 3, expected a divisor of n_heads (4)"),
        ("llama", {"n_rot": 63}, "n_rot is 63, expected an even number up to head_dim (64)"),
        ("llama", {"n_rot": 32}, "n_rot is 32, expected head_dim (64) in 'llama'"),
        ("llama", {"rope_freq_base": float("nan")}, "rope_freq_base is nan, expected a positive number"),
        ("gemma2", {"tied_embeddings": False}, "tied_embeddings is False, expected True in 'gemma2'"),
        ("qwen2moe", {"moe": None}, "moe is None, expected one in 'qwen2moe'"),
        ("plm", {"n_kv_heads": 2}, "n_kv_heads is 2, expected 4 from the latent attention"),
        ("deepseek2", {"v_head_dim": 32}, "v_head_dim is 32, expected 64 from the latent attention"),
    ],
)
def test_contradictions_are_refused(
    tiny: Callable[..., Architecture], gguf_architecture: str, changes: dict[str, Any], message: str
) -> None:
    usual = tiny(gguf_architecture)
    parts = {name: replace(getattr(usual, name), **of) for name, of in changes.items() if isinstance(of, dict)}
    with pytest.raises(ArchitectureError) as caught:
        tiny(gguf_architecture, **{**changes, **parts})
    assert str(caught.value) == f"architecture 'tiny': {message}"


def test_another_depth_has_another_name_and_equal_layers(tiny: Callable[..., Architecture]) -> None:
    """A copy of other depth says so in its name, keeps the dense layers within it, and adds as much with each layer."""
    cut = tiny("deepseek2").with_layers(1)
    assert (cut.name, cut.n_layers) == ("tiny-l1", 1)
    counts = [tiny().with_layers(depth).n_parameters for depth in (1, 2, 3)]
    assert counts[1] - counts[0] == counts[2] - counts[1] > 0
