"""The analytical graph as the allocator needs it: every tensor with the tensors that it is made from.

An input stands where the engine first meets it when it walks the graph, for in that order inputs are laid out.

*Source*: ``ggml_visit_parents_graph`` in ``ggml/src/ggml.c``, ``ggml_op_can_inplace`` in ``ggml/src/ggml-alloc.c`` and
the inputs of ``src/llama-graph.cpp`` of llama.cpp, as shipped with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import Batch
from perfsuite.expectation.graphs.kv_cache import cache_of, window_of
from perfsuite.expectation.graphs.operator import Operator
from perfsuite.expectation.graphs.place import Place
from perfsuite.expectation.memory.allocator import GraphTensor
from perfsuite.expectation.memory.flow import PART, Flow, flow_of
from perfsuite.expectation.op_rules import rule_of
from perfsuite.expectation.tensor_shape import TensorShape

#: Inputs that each cache has for itself, where layers with a sliding window have one of their own.
_OF_CACHE = ("mask", "k_rows", "v_rows", "rotation_")

_I32_BYTES, _I64_BYTES, _F32_BYTES = 4, 8, 4


def linked_graph(workload: LlamaWorkload, batch: Batch) -> tuple[GraphTensor, ...]:
    """Return the graph of a batch with what each tensor is made of."""
    builder = _Builder(workload, batch)
    for operator in workload.operators(batch):
        builder.add(operator)
    return builder.tensors()


class _Builder:
    """Writes the tensors of a graph in order, the inputs where they are first read."""

    def __init__(self, workload: LlamaWorkload, batch: Batch) -> None:
        self._workload, self._batch = workload, batch
        self._architecture = workload.weights.architecture
        self._tensors: list[GraphTensor] = []
        #: Shapes of the operators' outputs; another view of one is not worked on in place.
        self._shapes: dict[int, TensorShape] = {}
        self._live: dict[str, int] = {}
        self._inputs: dict[str, int] = {}
        self._layer: int | None = None
        self._input("tokens", _I32_BYTES * batch.n_tokens)
        # Embeddings may be given instead of tokens; their tensor is made in any case, and nothing reads it.
        self._input("embeddings", _F32_BYTES * batch.n_tokens * self._architecture.n_embd)

    def add(self, operator: Operator) -> None:
        """Add an operator's output."""
        if operator.layer != self._layer and operator.layer is not None:
            self._layer = operator.layer
            self._live = {"x": self._live["x"]}
        flow = flow_of(operator, self._live, self._architecture)
        sources = tuple(self._source(name, operator) for name in flow.reads)
        self._tensors.append(
            GraphTensor(
                n_bytes=None if flow.writes is None else operator.output.n_bytes,
                sources=sources,
                in_place_of=self._lenders(operator, flow, sources),
                is_output=operator.role == "result_norm",
            )
        )
        self._shapes[len(self._tensors) - 1] = operator.output
        if flow.writes is not None:
            self._live[flow.writes] = len(self._tensors) - 1

    def tensors(self) -> tuple[GraphTensor, ...]:
        """Return the graph, whose last tensor is the logits."""
        return (*self._tensors[:-1], replace(self._tensors[-1], is_output=True))

    def _lenders(self, operator: Operator, flow: Flow, sources: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sources that lend their memory if nothing else reads them: none in another view than their own."""
        if not rule_of(operator.op).in_place:
            return ()
        whole = (at for name, at in zip(flow.reads, sources, strict=True) if not name.startswith(PART))
        return tuple(at for at in whole if self._shapes.get(at) == operator.output)

    def _source(self, name: str, operator: Operator) -> int:
        name = name.removeprefix(PART)
        if name in self._live:
            return self._live[name]
        if name == "positions":
            self._rotation_before_positions()
        return self._input(name, self._input_bytes(name, operator))

    def _rotation_before_positions(self) -> None:
        """Write the rotation of queries first: it is the first operand of the product that takes what RoPE turned."""
        size = cache_of(self._place()).rotation_k
        if size is not None:
            self._input("rotation_k", _F32_BYTES * size * size)

    def _input(self, name: str, n_bytes: int) -> int:
        key = f"{name}@{self._window()}" if name.startswith(_OF_CACHE) else name
        if key not in self._inputs:
            self._inputs[key] = len(self._tensors)
            self._tensors.append(GraphTensor(n_bytes=n_bytes, is_leaf=True))
        return self._inputs[key]

    def _window(self) -> int | None:
        return window_of(self._place()) if self._layer is not None else None

    def _place(self) -> Place:
        return replace(self._workload.place(self._batch), layer=self._layer)

    def _input_bytes(self, name: str, operator: Operator) -> int:
        """Size an input by what reads it."""
        if name == "mask":
            return operator.sources[-1].n_bytes
        if name in ("k_rows", "v_rows"):
            return _I64_BYTES * prod(operator.sources[1].ne)
        if name.startswith("rotation_"):
            return operator.sources[0].n_bytes
        return _I32_BYTES * (self._batch.n_tokens if name == "positions" else self._batch.n_outputs)
