"""The shape of a language model: every dimension from which tensors, operators and costs follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from perfsuite.errors import ArchitectureError
from perfsuite.workload.families import Family, family_of
from perfsuite.workload.tensors import parameters_of, tensor_specs


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """The routed feed-forward blocks of an architecture."""

    n_experts: int
    #: Experts that each token is routed to.
    n_experts_used: int
    #: Width of one expert.
    n_ff_expert: int
    #: Width of the expert that every token passes.
    n_ff_shared: int
    #: Leading layers with a dense block of width ``n_ff`` instead.
    n_dense_layers: int = 0
    #: Whether the weights of the chosen experts are scaled to sum to 1.
    normalize_weights: bool = False
    #: Factor on the experts' weights; 1 adds no operator.
    weights_scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Attention through a latent key-value vector (MLA)."""

    #: Rank of the query projection, ``None`` where queries are projected directly.
    q_lora_rank: int | None
    kv_lora_rank: int
    #: Size of a head's part without and with position.
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    #: Whether the decompression is absorbed into queries and outputs (``attn_k_b``, ``attn_v_b``), so that
    #: the cache holds one latent head; otherwise ``attn_kv_b`` decompresses K and V into all heads.
    absorbed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A decoder-only model's dimensions in llama.cpp's words.

    Two architectures are equal when everything is, name included. Any field that no engine could run raises
    :class:`~perfsuite.errors.ArchitectureError` on construction.
    """

    name: str
    #: ``general.architecture`` of its GGUF.
    gguf_architecture: str
    n_layers: int
    n_embd: int
    n_heads: int
    #: Heads of the KV cache: 1 where latent attention is absorbed.
    n_kv_heads: int
    #: Size of a query and key head before any absorption, and of a value head.
    head_dim: int
    v_head_dim: int
    #: Width of a dense feed-forward block.
    n_ff: int
    n_vocab: int
    n_ctx_train: int
    #: Whether the output matrix is the token embedding.
    tied_embeddings: bool
    qkv_bias: bool = False
    qk_norm: bool = False
    #: Whether Q, K and V are one matrix.
    fused_qkv: bool = False
    #: Components of a head that RoPE turns.
    n_rot: int
    norm_eps: float
    rope_freq_base: float
    #: Whether the file holds frequency factors for RoPE (``rope_freqs``, or Phi's long and short ones).
    rope_freq_factors: bool = False
    #: Context length before long-context extension, where the engine needs it.
    n_ctx_orig: int | None = None
    #: Whether attention and feed-forward read the same input (GPT-NeoX).
    parallel_residual: bool = False
    #: Tokens that every second layer looks back (Gemma 2).
    sliding_window: int | None = None
    attn_logit_softcap: float | None = None
    final_logit_softcap: float | None = None
    moe: MixtureOfExperts | None = None
    mla: LatentAttention | None = None

    def __post_init__(self) -> None:
        for field, value, expected in _contradictions(self):
            raise ArchitectureError(f"architecture {self.name!r}: {field} is {value!r}, expected {expected}")

    @property
    def family(self) -> Family:
        return family_of(self.gguf_architecture)

    @property
    def n_parameters(self) -> int:
        """The exact number of trained weights, tied embeddings counted once."""
        return parameters_of(tensor_specs(self))

    def with_layers(self, n_layers: int) -> Architecture:
        """Return the same architecture at another depth, its name ending in ``-l<depth>``."""
        moe = self.moe
        if moe is not None:
            moe = replace(moe, n_dense_layers=min(moe.n_dense_layers, n_layers))
        return replace(self, name=f"{self.name}-l{n_layers}", n_layers=n_layers, moe=moe)


#: *Source*: ``LLAMA_MAX_LAYERS`` in ``src/llama-hparams.h`` of llama-cpp-python 0.3.36.
MOST_LAYERS = 512
#: *Source*: ``llama_pos`` in ``include/llama.h``, the position of a token, has 32 bits with a sign.
MOST_POSITIONS = 2**31 - 1

_COUNTS = (
    *("n_layers", "n_embd", "n_heads", "n_kv_heads", "head_dim", "v_head_dim", "n_ff", "n_vocab", "n_ctx_train"),
    *("n_rot", "n_ctx_orig", "sliding_window"),
)
_EXPERT_COUNTS = ("n_experts", "n_experts_used", "n_ff_expert", "n_ff_shared")
_LATENT_COUNTS = ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
_POSITIVE = ("norm_eps", "rope_freq_base", "attn_logit_softcap", "final_logit_softcap")


def _contradictions(architecture: Architecture) -> Iterator[tuple[str, object, str]]:
    """Yield what no engine could run: a field, its value, and what is expected."""
    moe, mla = architecture.moe, architecture.mla
    for prefix, part, names in (
        ("", architecture, _COUNTS),
        ("moe.", moe, _EXPERT_COUNTS),
        ("mla.", mla, _LATENT_COUNTS),
    ):
        for name in names if part is not None else ():
            if (count := getattr(part, name)) is not None and count < 1:
                yield f"{prefix}{name}", count, "a positive integer"
    for name in _POSITIVE:
        if (value := getattr(architecture, name)) is not None and not 0 < value < float("inf"):
            yield name, value, "a positive number"
    n_layers, n_heads, head_dim = architecture.n_layers, architecture.n_heads, architecture.head_dim
    if n_layers > MOST_LAYERS:
        yield "n_layers", n_layers, f"at most {MOST_LAYERS}, which is what llama.cpp runs"
    if n_heads % architecture.n_kv_heads:
        yield "n_kv_heads", architecture.n_kv_heads, f"a divisor of n_heads ({n_heads})"
    if architecture.n_rot % 2 or architecture.n_rot > head_dim:
        yield "n_rot", architecture.n_rot, f"an even number up to head_dim ({head_dim})"
    yield from _of_family(architecture, architecture.family)
    if moe is not None:
        if moe.n_experts_used > moe.n_experts:
            yield "moe.n_experts_used", moe.n_experts_used, f"at most n_experts ({moe.n_experts})"
        if not 0 <= moe.n_dense_layers <= n_layers:
            yield "moe.n_dense_layers", moe.n_dense_layers, f"0 to n_layers ({n_layers})"
        if moe.n_ff_shared % moe.n_ff_expert and architecture.gguf_architecture == "deepseek2":
            yield "moe.n_ff_shared", moe.n_ff_shared, f"a multiple of n_ff_expert ({moe.n_ff_expert})"
    if mla is not None:
        consistent = {
            "head_dim": mla.qk_nope_head_dim + mla.qk_rope_head_dim,
            "v_head_dim": mla.v_head_dim,
            "n_rot": mla.qk_rope_head_dim,
            "n_kv_heads": 1 if mla.absorbed else n_heads,
        }
        for name, expected in consistent.items():
            if getattr(architecture, name) != expected:
                yield name, getattr(architecture, name), f"{expected} from the latent attention"


def _of_family(architecture: Architecture, family: Family) -> Iterator[tuple[str, object, str]]:
    head_dim, within = architecture.head_dim, f"in {family.gguf_architecture!r}"
    if family.full_rotary and architecture.n_rot != head_dim:
        yield "n_rot", architecture.n_rot, f"head_dim ({head_dim}) {within}"
    if family.square_attention and architecture.n_heads * head_dim != architecture.n_embd:
        yield "head_dim", head_dim, f"n_embd / n_heads {within}"
    demands = {
        "tied_embeddings": family.tied_embeddings,
        "fused_qkv": family.fused_qkv,
        "qk_norm": family.qk_norm,
        "qkv_bias": True if family.layer_norm_with_bias else False if family.latent_attention else None,
    }
    for name, demanded in demands.items():
        if demanded is not None and getattr(architecture, name) is not demanded:
            yield name, not demanded, f"{demanded} {within}"
    for name, needed in (("moe", family.experts), ("mla", family.latent_attention)):
        if (getattr(architecture, name) is not None) is not needed:
            yield name, getattr(architecture, name), f"{'one' if needed else 'none'} {within}"
