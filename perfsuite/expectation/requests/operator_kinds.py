"""The kinds by which the engine's operators are told: what `PassCost.by_operator` is keyed with."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from perfsuite.expectation.graph import Operator

_KINDS: Mapping[str, tuple[str, ...]] = {
    "attention": ("FLASH_ATTN_EXT",),
    "softmax": ("SOFT_MAX",),
    "norm": ("NORM", "RMS_NORM", "RMS_NORM+MUL"),
    "rope": ("ROPE",),
    "activation": ("SWIGLU", "GEGLU", "SILU", "GELU", "RELU", "SQR"),
    "elementwise": ("ADD", "MUL", "DIV", "SCALE", "TANH", "CLAMP", "SUM_ROWS"),
    "kv_store": ("SET_ROWS",),
    "rotation": ("FWHT",),
    "routing": ("ARGSORT",),
    "copy": ("CONT", "CPY", "CONCAT", "REPEAT"),
}

_KIND_OF_OP = MappingProxyType({op: kind for kind, ops in _KINDS.items() for op in ops})

_PRODUCTS = ("MUL_MAT", "MUL_MAT_ID")


def operator_kind(operator: Operator) -> str:
    """Return the kind of an operator.

    Products with a parameter are ``gemm`` (``lora`` where it is an adapter's), others ``bmm``; the gather of the
    embeddings is ``embedding``, any other ``gather``; flash attention, which holds its products and its softmax, is
    ``attention``. An operator without a kind is called by its own name in lower case.
    """
    if operator.op in _PRODUCTS:
        if operator.role.endswith(("_lora_a", "_lora_b")):
            return "lora"
        return "gemm" if operator.cost.parameter_bytes else "bmm"
    if operator.op == "GET_ROWS":
        return "embedding" if operator.role == "embd" else "gather"
    return _KIND_OF_OP.get(operator.op, operator.op.lower())
