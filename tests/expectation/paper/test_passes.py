"""Passes under the paper's conventions."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.paper.passes import decode_pass, generic_template, prefill_pass, template_of
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.catalog import find, names
from perfsuite.workload.variant import find_variant, variant_names


def _matrices(name: str, variant: str = "bf16-bf16") -> dict[str, tuple[int, int]]:
    return {each.name: (each.k, each.n) for each in template_of(find(name), find_variant(variant)).matrices}


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
    """Whatever has experts has a template that ignores them and its latent attention, and else none."""
    variant = find_variant("bf16-int4")
    assert generic_template(find("deepseek-v2-lite"), variant).latent is None
    for name in (name for name in names() if find(name).moe is not None):
        told = f"architecture '{name}': moe has .*experts, expected none.*use the conventions 'engine'"
        with pytest.raises(ArchitectureError, match=told):
            prefill_pass(find(name), variant, 32)


_LLAMA = find("llama-2-7b")
_H, _I, _V, _LAYERS, _HEADS = 4096, 11008, 32000, 32, 32
_LAYER_WEIGHTS = 4 * _H * _H + 3 * _H * _I
_WEIGHTS = _LAYERS * _LAYER_WEIGHTS + _H * _V
_DENSE = [name for name in names() if find(name).moe is None]
_VARIANTS = st.sampled_from([find_variant(name) for name in variant_names()])


def prefill(variant: str, n_prompt: int) -> OpCost:
    return prefill_pass(_LLAMA, find_variant(variant), n_prompt).total


def without_scores(variant: str, n_prompt: int) -> OpCost:
    cost = prefill_pass(_LLAMA, find_variant(variant), n_prompt)
    scores_bytes = 2 * 2 * _HEADS * n_prompt**2 * _LAYERS
    total = cost.total
    fused = find_variant(variant).fused
    return replace(
        total,
        flops=total.flops - (4 * _H + 6 * _HEADS) * n_prompt**2 * _LAYERS,
        read_bytes=total.read_bytes - (0 if fused else scores_bytes),
        written_bytes=total.written_bytes - (0 if fused else scores_bytes),
    )


@pytest.mark.parametrize("n_prompt", [32, 100, 2048, 65536])
def test_operations_of_a_prompt_are_the_closed_form(n_prompt: int) -> None:
    """2N weights, 4h N^2 and 6 heads N^2 a layer, 17h + 3I a token and layer, 4h a token for the last norm."""
    pointwise = n_prompt * (_LAYERS * (17 * _H + 3 * _I) + 4 * _H)
    scores = (4 * _H + 6 * _HEADS) * n_prompt**2 * _LAYERS
    plain = 2 * n_prompt * _WEIGHTS + scores + pointwise
    assert prefill("bf16-bf16", n_prompt).flops == plain
    assert prefill("bf16-int4", n_prompt).flops == plain + 2 * _WEIGHTS
    assert prefill("bf16-int4-kv4", n_prompt).flops == plain + 2 * _WEIGHTS + 2 * _H * n_prompt * _LAYERS


@pytest.mark.parametrize(
    ("variant", "read", "written"),
    [
        # Elements of h and of I a token and layer, and bytes of K and of K and V for each element of h.
        ("bf16-bf16", (19, 4, 0.0), (15, 4, 0.0)),
        ("bf16-int4", (19, 4, 0.0), (15, 4, 0.0)),
        ("bf16-int4-kv4", (13, 0, 0.5), (8, 0, 1.0)),
        ("bf16-int4-fused", (13, 0, 2.0), (8, 0, 4.0)),
    ],
)
def test_a_token_moves_what_the_paper_says(
    variant: str, read: tuple[int, int, float], written: tuple[int, int, float]
) -> None:
    """Between two prompts, traffic beside the scores grows by the paper's elements a token and layer.

    Beside the layers, a token is embedded (h written), normed (h read, h written) and multiplied by the output matrix
    (h read, V written); RoPE reads the token's rows of its two tables.
    """
    less, more = without_scores(variant, 1000), without_scores(variant, 1001)
    tables = _LAYERS * 2 * 128 * 2
    assert more.read_bytes - less.read_bytes == _LAYERS * (
        2 * (read[0] * _H + read[1] * _I) + read[2] * _H
    ) + tables + 2 * (_H + _H)
    assert more.written_bytes - less.written_bytes == _LAYERS * (
        2 * (written[0] * _H + written[1] * _I) + written[2] * _H
    ) + 2 * (_H + _H + _V)


@pytest.mark.parametrize(("variant", "weight_bytes"), [("bf16-bf16", 2.0), ("bf16-int4", 133 / 256)])
def test_parameters_are_read_once_a_pass(variant: str, weight_bytes: float) -> None:
    """All matrices at their stored size, the whole embedding in bf16, norms, and tables of activation and RoPE."""
    n_prompt = 64
    norms = 2 * _H * (2 * _LAYERS + 1)
    tables = _LAYERS * 2 * (256 + 2 * n_prompt * 128)
    expected = weight_bytes * _WEIGHTS + 2 * _V * _H + norms + tables
    assert prefill(variant, n_prompt).parameter_bytes == expected


def test_the_cache_of_a_prompt() -> None:
    """2048 tokens fill 1 GiB in bf16 (fp16 is alike), a quarter in int4; full K and V are cached under MLA."""
    sizes = {"bf16-bf16": 1 << 30, "bf16-int4-kv4": 1 << 28, "bf16-int4-mla": 1 << 30}
    assert {variant: prefill(variant, 2048).kv_written_bytes for variant in sizes} == sizes
    assert prefill("fp16-fp16", 300) == prefill("bf16-bf16", 300)


def test_adapters_cost_their_closed_form_in_every_pass() -> None:
    """(2r + 2)kn FLOPs and A and B for seven matrices of every layer, whatever the tokens."""
    fused, adapted = find_variant("bf16-int4-fused"), find_variant("bf16-int4-lora")
    for rank in (8, 16, 256):
        for bare, with_adapters in (
            (prefill_pass(_LLAMA, fused, 40), prefill_pass(_LLAMA, adapted, 40, lora_rank=rank)),
            (decode_pass(_LLAMA, fused, 40), decode_pass(_LLAMA, adapted, 40, lora_rank=rank)),
        ):
            added = with_adapters.by_operator["lora"]
            assert with_adapters.total.flops - bare.total.flops == (2 * rank + 2) * _LAYER_WEIGHTS * _LAYERS
            assert added.flops == with_adapters.total.flops - bare.total.flops
            assert added.read_bytes == _LAYERS * 2 * rank * (4 * 2 * _H + 3 * (_H + _I))


def test_latent_attention_has_its_own_matrices() -> None:
    """Ranks of 128 and heads of 192 and 128 make 19.9 million weights of a layer's attention."""
    attention = _H * 128 + 128 * 32 * 192 + _H * (128 + 64) + 128 * 32 * 256 + _H * _H
    cost = prefill_pass(_LLAMA, find_variant("bf16-int4-mla"), 10)
    assert cost.by_operator["gemm"].flops == 2 * 10 * (_LAYERS * (attention + 3 * _H * _I) + _H * _V)
    assert cost.by_operator["bmm"].flops == 2 * 100 * _HEADS * (192 + 128) * _LAYERS


def test_eight_bit_activations_halve_what_moves_between_operators() -> None:
    """QuaRot computes what int4 weights and cache do, its Hadamard transforms not counted, on narrower activations."""
    quarot, kv4 = prefill("QuaRot-w4a4kv4", 2000), prefill("bf16-int4-kv4", 2000)
    assert quarot.flops == kv4.flops
    assert (
        2 * (quarot.written_bytes - quarot.kv_written_bytes) == kv4.written_bytes - kv4.kv_written_bytes + 2000 * _H * 2
    )


@pytest.mark.parametrize(
    ("variant", "gib_per_position"),
    # Past K and V once, and the operands: K and V and four moves of the scores, or K alone.
    [("bf16-bf16", 4 * 2 * _H + 4 * 2 * _HEADS), ("bf16-int4-fused", 3 * 2 * _H), ("bf16-int4-kv4", 3 * _H / 2)],
)
def test_a_step_is_a_straight_line_in_its_context(variant: str, gib_per_position: float) -> None:
    """Each further position adds its cache and its operands to every layer."""
    near, far = (decode_pass(_LLAMA, find_variant(variant), n_past).total for n_past in (100, 1100))
    assert far.moved_bytes - near.moved_bytes == 1000 * _LAYERS * gib_per_position


@pytest.mark.parametrize(
    ("variant", "evaluations", "bytes_per_evaluation"),
    [("bf16-bf16", 2, 4), ("bf16-int4-fused", 2, 1), ("bf16-int4-kv4", 3, 1)],
)
def test_rope_runs_over_its_whole_table(variant: str, evaluations: int, bytes_per_evaluation: int) -> None:
    """Table 7 evaluates 4096 x 128 elements for one token twice a layer, and a third time for a quantised cache."""
    cost = decode_pass(_LLAMA, find_variant(variant), 128).by_operator["rope"]
    assert cost.flops == 3 * evaluations * 4096 * 128 * _LAYERS
    assert cost.moved_bytes == 2 * evaluations * bytes_per_evaluation * 4096 * 128 * _LAYERS


def test_chunks_multiply_dispatches_and_repeat_the_weights() -> None:
    """64 chunks of 64 tokens have 64 times the dispatches and read the weights 64 times; products stay."""
    variant = find_variant("bf16-int4")
    whole, parts = (prefill_pass(_LLAMA, variant, 4096, chunk=chunk) for chunk in (None, 64))
    assert parts.total.n_dispatches == 64 * whole.total.n_dispatches
    assert parts.by_operator["gemm"].flops == whole.by_operator["gemm"].flops
    assert parts.by_operator["gemm"].parameter_bytes == 64 * whole.by_operator["gemm"].parameter_bytes
    assert parts.total.kv_written_bytes == whole.total.kv_written_bytes
    assert prefill_pass(_LLAMA, variant, 4096, chunk=4096).by_operator == whole.by_operator


def test_a_later_prompt_sees_what_came_before() -> None:
    variant = find_variant("bf16-int4-fused")
    halves = (prefill_pass(_LLAMA, variant, 50).total, prefill_pass(_LLAMA, variant, 50, n_past=50).total)
    assert halves[0] + halves[1] == prefill_pass(_LLAMA, variant, 100, chunk=50).total


@settings(max_examples=30)
@given(st.sampled_from(_DENSE), _VARIANTS, st.integers(1, 4000), st.integers(0, 4000))
def test_every_dense_architecture_has_a_pass(name: str, variant: object, n_prompt: int, n_past: int) -> None:
    architecture = find(name)
    costs = [
        (prefill_pass(architecture, variant, n_prompt).total, prefill_pass(architecture, variant, n_prompt + 1).total),
        (decode_pass(architecture, variant, n_past).total, decode_pass(architecture, variant, n_past + 1).total),
    ]
    for less, more in costs:
        assert all(type(each) is int and each >= 0 for each in astuple(less))
        assert all(a <= b for a, b in zip(astuple(less), astuple(more), strict=True))
        assert less.kv_written_bytes > 0
