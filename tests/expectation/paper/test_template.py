"""The generic template."""

from __future__ import annotations

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.paper.template import generic_template, template_of
from perfsuite.workload.catalog import find
from perfsuite.workload.variant import find_variant


def _matrices(name: str, variant: str = "bf16-bf16") -> dict[str, tuple[int, int]]:
    return {each.name: (each.k, each.n) for each in template_of(find(name), find_variant(variant)).matrices}


def test_llama_has_seven_matrices() -> None:
    """Grouped keys and values are narrower than queries."""
    assert _matrices("llama-3.2-1b") == {
        "q_proj": (2048, 2048),
        "k_proj": (2048, 512),
        "v_proj": (2048, 512),
        "o_proj": (2048, 2048),
        "gate_proj": (2048, 8192),
        "up_proj": (2048, 8192),
        "down_proj": (8192, 2048),
    }


@pytest.mark.parametrize(
    ("name", "matrices"),
    [
        ("phi-4-mini", ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]),
        ("pythia-70m", ["qkv_proj", "o_proj", "up_proj", "down_proj"]),
    ],
)
def test_matrices_may_be_fused_and_a_plain_block_has_no_gate(name: str, matrices: list[str]) -> None:
    """Queries, keys and values are one matrix, gate and up another; Pythia has an up and a down matrix."""
    assert list(_matrices(name)) == matrices


def test_the_mla_variant_gives_llama_the_papers_ranks() -> None:
    """Ranks 128 and 128, heads of 128 + 64 and 128."""
    assert list(_matrices("llama-2-7b", "bf16-int4-mla").values())[:4] == [
        *((4096, 128), (128, 32 * 192), (4096, 192), (128, 32 * 256)),
    ]


def test_latent_attention_of_its_own_is_kept() -> None:
    """PLM's own ranks stand under every variant, with queries projected directly."""
    own = find("plm-1.8b")
    assert own.mla is not None
    for variant in ("bf16-bf16", "bf16-int4-mla"):
        matrices = _matrices("plm-1.8b", variant)
        assert matrices["kv_a_proj"] == (own.n_embd, own.mla.kv_lora_rank + own.mla.qk_rope_head_dim)
        assert "q_a_proj" not in matrices


def test_experts_are_left_out_of_the_generic_template_alone() -> None:
    """DeepSeek-V2-Lite has a template that ignores its experts and its latent attention, and else none."""
    variant = find_variant("bf16-int4")
    assert generic_template(find("deepseek-v2-lite"), variant).latent is None
    with pytest.raises(ArchitectureError, match="moe has 64 experts, expected none"):
        template_of(find("deepseek-v2-lite"), variant)


def test_an_adapter_has_a_rank() -> None:
    """A rank of zero is refused even where no variant uses it."""
    with pytest.raises(ArchitectureError, match="lora_rank is 0"):
        template_of(find("llama-2-7b"), find_variant("bf16-bf16"), 0)
