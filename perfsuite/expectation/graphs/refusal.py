"""Which settings llama.cpp refuses for an architecture, and so have no graph.

*Source*: ``llama_init_from_model`` in ``src/llama-context.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.request import Settings
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.ggml_types import GGML_TYPES


def refusal(architecture: Architecture, settings: Settings) -> str | None:
    """Return why the engine makes no context with these settings, or None where it makes one."""
    return next(_refusals(architecture, settings), None)


def _refusals(architecture: Architecture, settings: Settings) -> Iterator[str]:
    for field in ("type_k", "type_v", "lora_type"):
        if getattr(settings, field).upper() not in GGML_TYPES:
            yield f"{field} is {getattr(settings, field)!r}, which is no ggml type"
    if settings.lora_rank is not None and settings.lora_rank < 1:
        yield f"lora_rank is {settings.lora_rank}, expected a positive integer or None"
    absorbed = architecture.mla is not None and architecture.mla.absorbed
    if absorbed and settings.type_k != settings.type_v:
        yield f"absorbed latent attention keeps keys and values in one tensor, not {settings.type_k}, {settings.type_v}"
    if settings.flash_attn and not architecture.family.flash_attention:
        yield f"'{architecture.gguf_architecture}' cannot run with flash attention"
    if not settings.flash_attn and _block_values(settings.type_v) > 1:
        yield f"a quantised cache of values (type_v is {settings.type_v}) needs flash attention"
    for field, size in (("type_k", architecture.head_dim), ("type_v", architecture.v_head_dim)):
        if size % _block_values(getattr(settings, field)):
            yield f"{field} is {getattr(settings, field)}, whose block does not divide heads of {size}"


def _block_values(type_name: str) -> int:
    return GGML_TYPES[type_name.upper()].block_values
