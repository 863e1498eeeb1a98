"""The analytical graph: every operator that llama.cpp computes for a batch, from the architecture alone.

Roles are ggml's tensor names with the layer number dropped (``ffn_gate``, ``Qcur``); where one name serves two
operators of a layer, the later one carries its operator (``Qcur_rope``). A tensor that the engine leaves unnamed is
called by its weight (``attn_out``), by the rows that it gathers, or by the tensor that it is made from, and then too
carries its operator (``Qcur_scale``); a rotation for a quantised cache is ``Qcur_rot``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graphs.layers import layer_operators
from perfsuite.expectation.graphs.linear import product
from perfsuite.expectation.graphs.norms import norm
from perfsuite.expectation.graphs.operator import Operator, shape, total_cost, with_distinct_roles
from perfsuite.expectation.graphs.place import Place
from perfsuite.expectation.graphs.request import KV_PADDING, Batch, Settings, refusal
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.families import FAMILIES

__all__ = ["KNOWN_GRAPHS", "KV_PADDING", "Batch", "Operator", "Settings", "engine_graph", "refusal", "total_cost"]

#: GGUF architectures whose graph is known here; others would be measured by phase.
KNOWN_GRAPHS = frozenset(FAMILIES)


def engine_graph(
    architecture: Architecture, tensor_types: Mapping[str, str], batch: Batch, settings: Settings
) -> tuple[Operator, ...]:
    """List every operator that llama.cpp computes for `batch`, in its order, fused pairs as one.

    Raises ArchitectureError: the engine refuses the settings for this architecture.
    """
    if reason := refusal(architecture, settings):
        raise ArchitectureError(f"{architecture.name}: {reason}")
    place = Place(
        architecture=architecture, tensor_types=tensor_types, batch=batch, settings=settings, n=batch.n_tokens
    )
    return tuple(with_distinct_roles(_operators(place)))


def _operators(place: Place) -> Iterator[Operator]:
    a = place.architecture
    yield from _embedding(place)
    for layer in range(a.n_layers):
        yield from layer_operators(place.at_layer(layer))
    yield from _logits(place)


def _embedding(place: Place) -> Iterator[Operator]:
    a = place.architecture
    x, table = place.activation(a.n_embd), place.weight("token_embd.weight", a.n_embd, a.n_vocab)
    yield place.operator("embd", "GET_ROWS", x, (table, shape("i32", place.n)), is_weight=True)
    if a.family.scales_embeddings:
        yield place.unary("inp_scaled", "SCALE", x)


def _logits(place: Place) -> Iterator[Operator]:
    a = place.architecture
    place = replace(place, n=place.batch.n_outputs)
    yield from norm(place, "result_norm", "output_norm")
    weight = "token_embd" if a.tied_embeddings else "output"
    yield product(place, "result_output", weight, a.n_embd, a.n_vocab)
    if a.family.soft_caps:  # a file that says no caps has the engine's
        for op in ("SCALE", "TANH", "SCALE"):
            yield place.unary("result_output", op, place.activation(a.n_vocab))
