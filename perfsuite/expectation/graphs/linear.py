"""Products with weight matrices, and the LoRA adapter beside them.

With an adapter of rank r the engine computes ``W x + s B (A x)``: a product with A (r rows), one with B, a scale and an
addition. The adapted product then has no name of its own and is called by its weight; the sum takes the name.

*Source*: ``build_lora_mm`` and ``build_lora_mm_id`` in ``src/llama-graph.cpp`` of llama-cpp-python 0.3.36.

Norms over the embedding or over heads.

*Source*: ``build_norm`` in ``src/llama-graph.cpp`` of llama-cpp-python 0.3.36; ``ggml_cpu_try_fuse_ops`` in
``ggml/src/ggml-cpu/ggml-cpu.c`` for RMS_NORM and the product after it, which the CPU computes as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.operator import Operator, shape
from perfsuite.expectation.graphs.place import Place


def norm(place: Place, role: str, tensor: str) -> Iterator[Operator]:
    """Write the architecture's norm over the embedding."""
    if place.architecture.family.layer_norm_with_bias:
        yield from _layer_norm(place, role, tensor)
    else:
        yield rms_norm(place, role, tensor, place.architecture.n_embd)


def rms_norm(place: Place, role: str, tensor: str, *ne: int) -> Operator:
    """Write an RMS norm over the first of the dimensions `ne`, with its weight."""
    x = place.activation(*ne)
    return place.operator(role, "RMS_NORM+MUL", x, (x, place.weight(f"{tensor}.weight", ne[0])), is_weight=True)


def _layer_norm(place: Place, role: str, tensor: str) -> Iterator[Operator]:
    width = place.architecture.n_embd
    x = place.activation(width)
    yield place.unary("norm", "NORM", x)
    yield place.operator("norm_w", "MUL", x, (x, place.weight(f"{tensor}.weight", width)), is_weight=True)
    yield place.bias(role, f"{tensor}.bias", width)


#: What an unnamed product with a weight is called where that is not the weight's own name.
_ROLES_OF_WEIGHTS = {"attn_output": "attn_out", "output": "result_output", "token_embd": "result_output"}


def role_of_weight(weight: str) -> str:
    """Return the role of a product that the engine leaves unnamed, from its weight's name without ``.weight``."""
    return _ROLES_OF_WEIGHTS.get(weight, weight)


def product(place: Place, role: str, weight: str, n_in: int, n_out: int) -> Operator:
    """Write a product with a matrix that is never adapted."""
    sources = (place.weight(f"{weight}.weight", n_in, n_out), place.activation(n_in))
    return place.operator(role, "MUL_MAT", place.activation(n_out), sources, is_weight=True)


def linear(place: Place, role: str, weight: str, n_in: int, n_out: int) -> Iterator[Operator]:
    """Write a product with a matrix of a layer, and its adapter where there is one."""
    rank, kind = place.settings.lora_rank, place.settings.lora_type
    if rank is None:
        yield product(place, role, weight, n_in, n_out)
        return
    base = role_of_weight(weight)
    x, low, y = place.activation(n_in), place.activation(rank), place.activation(n_out)
    yield product(place, base, weight, n_in, n_out)
    yield place.operator(f"{base}_lora_a", "MUL_MAT", low, (shape(kind, n_in, rank), x), is_weight=True)
    yield place.operator(f"{base}_lora_b", "MUL_MAT", y, (shape(kind, rank, n_out), low), is_weight=True)
    yield place.unary(f"{base}_lora_b", "SCALE", y)
    yield place.operator(role, "ADD", y, (y, y))


def expert_linear(
    place: Place, role: str, weight: str, n_in: int, n_out: int, *, is_routed: bool
) -> Iterator[Operator]:
    """Write a product with the matrices of each token's experts, and their adapters where there are any.

    `is_routed` says whether each expert has an input of its own (the way down) or all read the same (gate and up).
    """
    moe, rank, kind = place.architecture.moe, place.settings.lora_rank, place.settings.lora_type
    assert moe is not None
    chosen = shape("i32", moe.n_experts_used, place.n)
    x = place.activation(n_in, moe.n_experts_used if is_routed else 1)
    y = place.activation(n_out, moe.n_experts_used)
    matrices = place.weight(f"{weight}.weight", n_in, n_out, moe.n_experts)
    if rank is None:
        yield place.operator(role, "MUL_MAT_ID", y, (matrices, x, chosen), is_weight=True)
        return
    low = place.activation(rank, moe.n_experts_used)
    down, up = shape(kind, n_in, rank, moe.n_experts), shape(kind, rank, n_out, moe.n_experts)
    yield place.operator(weight, "MUL_MAT_ID", y, (matrices, x, chosen), is_weight=True)
    yield place.operator(f"{weight}_lora_a", "MUL_MAT_ID", low, (down, x, chosen), is_weight=True)
    yield place.operator(f"{weight}_lora_b", "MUL_MAT_ID", y, (up, low, chosen), is_weight=True)
    yield place.unary(f"{weight}_lora_b", "SCALE", y)
    yield place.operator(role, "ADD", y, (y, y))
