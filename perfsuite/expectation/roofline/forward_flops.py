"""The FLOPs of a whole architecture by formula, from what one layer of its attention costs."""

from __future__ import annotations

from perfsuite.expectation.roofline.attention_costs import (
    FLOPS_PER_MAC,
    AttentionCost,
    AttentionDimensions,
    AttentionKind,
    check_count,
)


def forward_flops(
    attention: AttentionCost,
    *,
    n_layers: int,
    n_embd: int,
    n_ff: int,
    n_vocab: int,
    n_tokens: int,
    n_logits: int,
    is_causal: bool,
) -> int:
    """Return the FLOPs of N tokens through L layers of gated feed-forward blocks, and the output matrix.

    ``2 (linear + attention) L + 6 N H F L + 2 H V n_logits``, attention halved where `is_causal`. Norms, RoPE, softmax
    and activations are not in it. The engine computes less: in its last layer the feed-forward block of those tokens
    alone that give logits. *Source*: RooflineBench, corrected: 1 MAC is 2 FLOPs, SwiGLU has three matrices.
    """
    values = {"n_layers": n_layers, "n_embd": n_embd, "n_ff": n_ff, "n_vocab": n_vocab, "n_tokens": n_tokens}
    for name, value in values.items():
        check_count(f"forward FLOPs: {name}", value)
    if n_logits != 0:
        check_count("forward FLOPs: n_logits", n_logits)
    feed_forward_flops = 3 * FLOPS_PER_MAC * n_tokens * n_embd * n_ff
    layer_flops = attention.flops(is_causal=is_causal) + feed_forward_flops
    return n_layers * layer_flops + FLOPS_PER_MAC * n_embd * n_vocab * n_logits


def decode_attention_flops(dimensions: AttentionDimensions, n_ctx: int) -> int:
    """Return 4 nq dh ctx, the scores and the mix of one token over `n_ctx` positions in one layer.

    Of MHA and GQA alike: shared keys are read once and multiplied for each head. *Source*: RooflineBench, corrected.
    """
    check_count("decode attention: n_ctx", n_ctx)
    (head_size,) = dimensions.needed(AttentionKind.GQA, "head_size")
    return 2 * FLOPS_PER_MAC * dimensions.n_heads * head_size * n_ctx
