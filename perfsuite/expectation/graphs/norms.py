"""Norms over the embedding or over heads.

*Source*: ``build_norm`` in ``src/llama-graph.cpp`` of llama-cpp-python 0.3.36; ``ggml_cpu_try_fuse_ops`` in
``ggml/src/ggml-cpu/ggml-cpu.c`` for RMS_NORM and the product after it, which the CPU computes as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.operator import Operator
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
