"""Variants: the optimisations under which an architecture runs, by LIFE's names."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError, meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is quantised, cached, fused and adapted. *Source*: LIFE, section 4, its variants of Llama2-7B."""

    name: str
    #: Format of the weights: ``bf16``, ``fp16``, ``int8`` or ``int4``.
    weights: str
    #: Format of the activations that enter a linear operator: ``bf16``, ``fp16`` or ``int8``.
    activations: str
    #: Format of the KV cache: ``bf16``, ``fp16``, ``int8`` or ``int4``.
    kv: str
    #: Whether attention (scores, softmax, mix) and the feed-forward block are one operator each.
    fused: bool = False
    #: Whether attention goes through a latent key-value vector.
    mla: bool = False
    #: Whether low-rank adapters run beside every linear operator of a layer.
    lora: bool = False


def _variant(name: str, weights: str, kv: str, activations: str = "bf16", **flags: bool) -> Variant:
    return Variant(name=name, weights=weights, activations=activations, kv=kv, **flags)


_VARIANTS = {
    variant.name: variant
    for variant in (
        _variant("bf16-bf16", "bf16", "bf16"),
        _variant("bf16-int4", "int4", "bf16"),
        _variant("bf16-int4-fused", "int4", "bf16", fused=True),
        _variant("bf16-int4-kv4", "int4", "int4", fused=True),
        _variant("bf16-int4-mla", "int4", "bf16", fused=True, mla=True),
        _variant("bf16-int4-lora", "int4", "bf16", fused=True, lora=True),
        _variant("QuaRot-w4a4kv4", "int4", "int4", "int8", fused=True),
        _variant("fp16-fp16", "fp16", "fp16", "fp16"),
    )
}


def variant_names() -> tuple[str, ...]:
    """List the variants in the paper's order."""
    return tuple(_VARIANTS)


def find_variant(name: str) -> Variant:
    """Return a variant by its name; any other raises PerfsuiteError with what is accepted."""
    variant = _VARIANTS.get(name)
    if variant is None:
        raise PerfsuiteError(
            f"variant {name!r} is unknown; accepted are {', '.join(_VARIANTS)}{meant(name, _VARIANTS)}"
        )
    return variant
