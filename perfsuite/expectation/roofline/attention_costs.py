"""What six kinds of attention store and compute, by formula: whole layers, every position attending to every other.

These are the published formulas. They are not the engine's graph, and agree with it only in part:

* Products with weights of MHA and GQA agree exactly where ``n_heads * head_size == n_embd``. With heads of another
  width, as Qwen3's, the formulas count ``n_embd`` where the engine has ``n_heads * head_size``. Those of MLA agree with
  ``plm`` where values are as wide as the part without position, fill the width, and the latent value is the rank.
* Scores and mix of N tokens over N positions agree exactly where N is all of the cache that the engine sees, which it
  pads to a multiple of 256. Masked positions are computed, and counted by both; a causal count is half of it. Softmax,
  RoPE and norms are in no formula.
* The cache of MHA and GQA agrees. MLA's formula keeps the latent vector; ``plm`` decompresses it first and keeps all
  heads, as MHA does.

*Source*: arXiv 2506.17286, Table 4, which counts MACs without feed-forward and output matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum

from perfsuite.errors import PerfsuiteError

#: FLOPs of a multiply-accumulate.
FLOPS_PER_MAC = 2


class AttentionKind(str, Enum):
    """The kinds of attention that have a formula."""

    MHA = "mha"
    GQA = "gqa"
    MLA = "mla"
    GVA = "gva"
    GHA = "gha"
    GTA = "gta"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionDimensions:
    """The sizes that the formulas take; None where a kind has none of it, which only the formulas that need it refuse.

    Raises PerfsuiteError for a size that is no integer above 0.
    """

    #: H, the width of the embedding.
    n_embd: int
    #: nh, which is nq too: heads of the queries.
    n_heads: int
    #: nk, heads of the keys.
    n_key_heads: int | None = None
    #: nv, heads of the values.
    n_value_heads: int | None = None
    #: nc, groups of latent values.
    n_latent_groups: int | None = None
    #: dh.
    head_size: int | None = None
    #: dk of GTA.
    key_size: int | None = None
    #: dl, of a latent value.
    latent_value_size: int | None = None
    #: dc, MLA's rank of keys and values.
    kv_rank: int | None = None
    #: dr and dn, the parts of MLA's heads with and without position.
    rope_size: int | None = None
    nope_size: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is no size."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.name in ("n_embd", "n_heads"):
                check_count(f"attention dimensions: {field.name}", value)

    def needed(self, kind: AttentionKind, *names: str) -> tuple[int, ...]:
        """Return sizes by name, or raise PerfsuiteError that names the first one that is missing."""
        for name in names:
            if getattr(self, name) is None:
                raise PerfsuiteError(
                    f"attention dimensions: {name} is None, expected an integer above 0 for {kind.value.upper()}"
                )
        return tuple(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCost:
    """What one layer of attention stores and computes for N tokens."""

    #: Elements of the cache.
    kv_elements: int
    #: Multiply-accumulates of scores and mix, all positions against all.
    attention_macs: int
    #: Multiply-accumulates of the products with weights.
    linear_macs: int

    def flops(self, *, is_causal: bool) -> int:
        """Return 2 (linear + attention), the latter halved where positions ahead are not computed."""
        attention_macs = self.attention_macs
        return FLOPS_PER_MAC * self.linear_macs + (attention_macs if is_causal else FLOPS_PER_MAC * attention_macs)


#: The sizes that each kind needs, and its KV elements, attention MACs and linear MACs by N, H, nh and those sizes.
#: *Source*: arXiv 2506.17286, Table 4.
_FORMULAS: Mapping[AttentionKind, tuple[tuple[str, ...], Callable[..., tuple[int, int, int]]]] = {
    AttentionKind.MHA: (
        ("head_size",),
        lambda n, h, nh, dh: (2 * nh * dh * n, 2 * nh * dh * n**2, 4 * n * h**2),
    ),
    AttentionKind.GQA: (
        ("head_size", "n_key_heads"),
        lambda n, h, nh, dh, nk: (2 * nk * dh * n, 2 * nh * dh * n**2, 2 * n * h**2 + 2 * nk * dh * n * h),
    ),
    AttentionKind.MLA: (
        ("kv_rank", "rope_size", "nope_size", "latent_value_size"),
        lambda n, h, nh, dc, dr, dn, dl: (
            (dc + dr) * n,
            nh * (dr + 2 * dn) * n**2,
            ((dc + dr) * h + nh * (dr + dn) * h + 2 * nh * dl * dn + h**2) * n,
        ),
    ),
    AttentionKind.GVA: (
        ("head_size", "n_key_heads"),
        lambda n, h, nh, dh, nk: ((h + nk * dh) * n, 2 * nh * dh * n**2, 2 * n * h**2 + 2 * nk * dh * n * h),
    ),
    AttentionKind.GHA: (
        ("head_size", "n_key_heads", "n_value_heads"),
        lambda n, h, nh, dh, nk, nv: (
            (nk * dh + nv * dh) * n,
            2 * nh * dh * n**2,
            n * h**2 + (nh + nk + nv) * dh * n * h,
        ),
    ),
    AttentionKind.GTA: (
        ("head_size", "n_key_heads", "n_latent_groups", "key_size", "latent_value_size"),
        lambda n, h, nh, dh, nk, nc, dk, dl: (
            (nk * dh + nc * dl) * n,
            nh * (dk + dl) * n**2,
            2 * n * h**2 + (nh * dh + nk * dh + nc * dl + dl) * n * h,
        ),
    ),
}


def attention_cost(kind: AttentionKind, dimensions: AttentionDimensions, n_tokens: int) -> AttentionCost:
    """Cost one layer for `n_tokens`, exactly, in integers.

    Raises PerfsuiteError for a dimension that the kind needs and has not.
    """
    check_count("attention cost: n_tokens", n_tokens)
    names, formula = _FORMULAS[kind]
    sizes = dimensions.needed(kind, *names)
    kv_elements, attention_macs, linear_macs = formula(n_tokens, dimensions.n_embd, dimensions.n_heads, *sizes)
    return AttentionCost(kv_elements=kv_elements, attention_macs=attention_macs, linear_macs=linear_macs)


def check_count(where: str, value: object) -> None:
    """Raise PerfsuiteError that says where, unless the value is an integer above 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise PerfsuiteError(f"{where} is {value!r}, expected an integer above 0")


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
