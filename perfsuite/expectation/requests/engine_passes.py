"""Whole passes as llama.cpp computes them: prompts in micro-batches, and decode steps over a padded cache."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfsuite.expectation.graph import KV_PADDING, Batch, Operator, engine_graph
from perfsuite.expectation.llama_workload import N_UBATCH
from perfsuite.expectation.op_rules import PRODUCTS, rule_of
from perfsuite.expectation.operators.tiling import padded
from perfsuite.expectation.requests.analytic import Counts, StepCosts, expanded
from perfsuite.expectation.requests.subject import EngineRequest
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import COST_FIELDS, NO_COST, OpCost, PassCost
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPattern:
    """Two depths of an architecture, and how often what lies between them repeats.

    cost(all layers) = cost(first depth) + n_repeats (cost(second depth) - cost(first depth)), exactly.
    """

    depths: tuple[int, int]
    n_repeats: int


def layer_pattern(architecture: Architecture, tensor_types: Mapping[str, str]) -> LayerPattern | None:
    """Return the pattern of the layers, or None where they do not repeat, or are too few for it to be worthwhile.

    Leading dense layers stand before the pattern. With a sliding window the layers repeat in pairs. Layers are alike
    when all of their tensors have the same types; the last one, which alone gathers rows, is the last of either depth.
    """
    n_layers, n_leading = architecture.n_layers, _n_leading(architecture)
    period = 1 if architecture.sliding_window is None else 2
    shallow = n_leading + 1 + (n_layers - n_leading - 1) % period
    if shallow + period >= n_layers or not _repeat(tensor_types, range(n_leading, n_layers), period):
        return None
    return LayerPattern(depths=(shallow, shallow + period), n_repeats=(n_layers - shallow) // period)


def _n_leading(architecture: Architecture) -> int:
    moe = architecture.moe
    if moe is None or moe.n_dense_layers >= architecture.n_layers:
        return 0
    return moe.n_dense_layers


def _repeat(tensor_types: Mapping[str, str], layers: range, period: int) -> bool:
    """Whether every layer has the types of the one a period before it."""
    by_layer: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for name, type_name in tensor_types.items():
        if name.startswith("blk."):
            _, layer, tensor = name.split(".", 2)
            by_layer[int(layer)].add((tensor, type_name))
    return all(by_layer[layer] == by_layer[layer + period] for layer in layers[:-period])


def operator_kind(operator: Operator) -> str:
    """Return the kind of an operator, by its row in the table and its role.

    Products with a parameter are ``gemm`` (``lora`` where it is an adapter's), others ``bmm``; the gather of the
    embeddings is ``embedding``, any other ``gather``; flash attention, which holds its products and its softmax, is
    ``attention``.
    """
    if operator.op in PRODUCTS:
        if operator.role.endswith(("_lora_a", "_lora_b")):
            return "lora"
        return "gemm" if operator.cost.parameter_bytes else "bmm"
    return "embedding" if operator.role == "embd" else rule_of(operator.op).kind


def step_batches(n_past: int, n_steps: int, n_tokens: int, *, tile: int) -> tuple[list[Batch], Counts]:
    """Return the different evaluations among decode steps, and which of them each step is."""
    n_seen = n_past + n_tokens + np.arange(n_steps, dtype=np.int64)
    n_seen = -(-n_seen // tile) * tile
    blocks, which = np.unique(-(-n_seen // KV_PADDING), return_inverse=True)
    visible = [int(block) * KV_PADDING for block in blocks]
    batches = [Batch(n_tokens=n_tokens, n_outputs=n_tokens, n_used=n_kv, n_ctx=n_kv) for n_kv in visible]
    return batches, which.reshape(-1)


def graph_cost(graph: Iterable[Operator]) -> PassCost:
    """Add up a graph by the kinds of its operators."""
    return _by_kind((operator_kind(each), each.cost) for each in graph)


class EnginePasses:
    """The passes of one request to the engine.

    Evaluations that cost the same are counted once: those of as many tokens that see as many positions, which the
    engine pads to 256. Layers that are alike are counted once too, and exactly.

    With several sequences each prompt is evaluated by itself, one after the other. A decode step takes one token of
    each: parameters are read once, and the attention of each sequence reads the cache of its own.
    """

    def __init__(
        self, request: EngineRequest, *, chunk: int | None = None, n_sequences: int = 1, tile: int = 1
    ) -> None:
        self._request = request
        self._chunk = chunk or N_UBATCH
        self._n_sequences = n_sequences
        self._tile = tile
        self._pattern = layer_pattern(request.architecture, request.tensor_types)
        self._counted: dict[tuple[int, int, int, int], PassCost] = {}

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost a prompt, all its micro-batches in turn; the last one gives logits, for its last token alone."""
        passes = [self._pass(batch) for batch in self._batches(padded(n_prompt, self._tile))]
        return added([cost for cost in passes for _ in range(self._n_sequences)])

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost `n_steps` steps, the first of which sees `n_past` positions and the `n_tokens` of the step.

        Every one of a step's tokens gives logits.
        """
        batches, which = step_batches(n_past, n_steps, n_tokens, tile=self._tile)
        return expanded([self._pass(batch, self._n_sequences) for batch in batches], which)

    def _batches(self, n_prompt: int) -> tuple[Batch, ...]:
        request = self._request
        scenario = Scenario(name="forecast", n_prompt=n_prompt, n_gen=0, source="the forecast's own")
        workload = request.workload(scenario, n_ctx=padded(n_prompt, KV_PADDING), n_ubatch=self._chunk)
        return workload.batches(Phase.PREFILL)

    def _pass(self, batch: Batch, n_sequences: int = 1) -> PassCost:
        key = (batch.n_tokens, batch.n_outputs, batch.n_kv, n_sequences)
        if key not in self._counted:
            visible = Batch(n_tokens=batch.n_tokens, n_outputs=batch.n_outputs, n_used=batch.n_kv, n_ctx=batch.n_kv)
            self._counted[key] = self._count(visible, n_sequences)
        return self._counted[key]

    def _count(self, batch: Batch, n_sequences: int) -> PassCost:
        pattern = self._pattern
        if pattern is None:
            return self._graph_cost(None, batch, n_sequences)
        few, more = (self._graph_cost(depth, batch, n_sequences) for depth in pattern.depths)
        return _extended(few, more, pattern)

    def _graph_cost(self, n_layers: int | None, batch: Batch, n_sequences: int) -> PassCost:
        request = self._request
        architecture = request.architecture if n_layers is None else request.architecture.with_layers(n_layers)
        graph = engine_graph(architecture, request.tensor_types, batch, request.settings)
        if n_sequences == 1:
            return graph_cost(graph)
        # Of several tokens the engine may copy what of one lies in one piece, so the graphs are joined by role.
        alone = {(each.layer, each.role): each for each in graph}
        n_tokens, n_outputs = n_sequences * batch.n_tokens, n_sequences * batch.n_outputs
        together = replace(batch, n_tokens=n_tokens, n_outputs=n_outputs)
        shared = engine_graph(architecture, request.tensor_types, together, request.settings)
        return _by_kind(
            (operator_kind(each), _of_sequences(alone.get((each.layer, each.role)), each, n_sequences))
            for each in shared
        )


def _of_sequences(one: Operator | None, together: Operator, n_sequences: int) -> OpCost:
    """Take an operator on all tokens, or, where it reads the cache, as many times as there are caches."""
    if one is None or not (one.cost.kv_read_bytes > 0 or one.op == "FLASH_ATTN_EXT" or one.role == "kqv"):
        return together.cost
    return replace(one.cost * n_sequences, n_dispatches=one.cost.n_dispatches)


def _by_kind(costs: Iterable[tuple[str, OpCost]]) -> PassCost:
    """Add costs up by their kind; in one list of integers a kind, which is what makes sweeps quick."""
    sums: dict[str, list[int]] = {}
    for kind, cost in costs:
        so_far = sums.setdefault(kind, [0] * len(COST_FIELDS))
        for at, name in enumerate(COST_FIELDS):
            so_far[at] += getattr(cost, name)
    return PassCost(
        by_operator={kind: OpCost(**dict(zip(COST_FIELDS, so_far, strict=True))) for kind, so_far in sums.items()}
    )


def added(passes: Iterable[PassCost]) -> PassCost:
    """Add passes up, each kind of operator for itself."""
    return _by_kind(item for each in passes for item in each.by_operator.items())


def _extended(few: PassCost, more: PassCost, pattern: LayerPattern) -> PassCost:
    """Add the layers that `more` has beyond `few` as often as the pattern repeats."""
    bases = {kind: few.by_operator.get(kind, NO_COST) for kind in more.by_operator}
    added = {kind: (cost + bases[kind] * -1) * pattern.n_repeats for kind, cost in more.by_operator.items()}
    return PassCost(by_operator={kind: base + added[kind] for kind, base in bases.items()})
