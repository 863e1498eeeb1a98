"""What a recorder saw: phases as spans, graphs as nodes, evaluations of a graph as times, experts, splits."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Phase(str, Enum):
    """A part of a run that is timed by itself."""

    LOAD = "load"
    EMBEDDING = "embedding"
    PREFILL = "prefill"
    DECODE = "decode"
    COPY = "copy"
    SOFTMAX = "softmax"
    SAMPLING = "sampling"
    END_TO_END = "end_to_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One phase of one token, or of one batch of tokens."""

    phase: Phase
    repetition: int
    #: Position of the first token of the span in its sequence.
    token: int
    n_tokens: int
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """End minus start."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A tensor as an operator saw it: dimensions innermost first, strides in bytes."""

    name: str
    type: str
    ne: tuple[int, int, int, int]
    nb: tuple[int, int, int, int]
    #: Address of the tensor whose memory it is, its own or that of what it is a view of, when the graph was first seen:
    #: nodes that read or write the same memory share it. None where it is not known.
    root: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operator of a graph, of whichever recorder.

    The suite's own recorders list the engine's graph as it is. In a trace, views, reshapes and others that compute
    nothing are no nodes, and those that are computed in one go are one: what the last of them makes, from what any of
    them reads but for what passes between them.
    """

    tensor: Tensor
    #: As ``ggml_op_desc`` spells it: MUL_MAT, SWIGLU, RMS_NORM, ...
    op: str
    sources: tuple[Tensor, ...]
    #: Whether the CPU backend reports this node's end (empty and fused-away nodes are not reported).
    timed: bool = True
    #: Whether this node is computed together with the one before it.
    fused: bool = False
    #: In a trace: what is computed in the same go, such as the MUL behind an RMS_NORM; None where there is nothing.
    fused_op: str | None = None
    #: Devices that say that they cannot compute it (the ``splits`` recorder, which alone asks them).
    refused_by: tuple[str, ...] = ()

    @property
    def ops(self) -> str:
        """The operator with what is fused into it: ``RMS_NORM+MUL``."""
        return self.op if self.fused_op is None else f"{self.op}+{self.fused_op}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One computation of a graph: when it was launched, and when each timed node ended on thread 0.

    The ``experts`` recorder cuts the engine's graph behind each router: each piece is a graph and an evaluation here.
    Its operators' times hold as in a whole graph; what passes between the last end of a piece and the launch of the
    next is the reading of the ids, and belongs to no operator.
    """

    graph: int
    launch_ns: int
    #: When the first operator was entered; None without the entry hook.
    first_start_ns: int | None
    ends_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStart:
    """One operator on one thread (the ``preload`` recorder)."""

    graph: int
    #: Of a fused pair the first node.
    node: int
    thread: int
    start_ns: int
    #: When the thread had done its part: its last arrival at a barrier before its next operator, without the waiting
    #: for other threads. None where no arrival was seen.
    end_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertChoice:
    """The experts that one layer's router chose for the tokens of one graph (the ``experts`` recorder)."""

    #: When they were read, right behind the router: within the span of the phase.
    ns: int
    layer: int
    #: Place of the first of the tokens in its phase's batch: behind those of the ubatches before, and the last token
    #: in a layer that computes nothing but the output's token.
    first_token: int
    #: Of the layer; None where the tensor does not tell.
    n_experts: int | None
    #: One row a token, the best expert first.
    ids: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A part of the engine's graph that was given to one backend (the ``splits`` recorder)."""

    #: The nodes of the part.
    graph: int
    backend: str
    #: From the call to its return; a device's backend returns before the part is computed.
    launch_ns: int
    return_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord:
    """Everything that one process recorded of llama.cpp."""

    engine_version: str
    spans: tuple[Span, ...]
    graphs: tuple[tuple[Node, ...], ...]
    evaluations: tuple[Evaluation, ...]
    thread_starts: tuple[ThreadStart, ...]
    #: Events that found the ring full.
    n_dropped: int
    experts: tuple[ExpertChoice, ...] = ()
    splits: tuple[Split, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers, strings and bytes only; arrays are little-endian, times int64, ids int32."""
        return {
            "engine_version": self.engine_version,
            "spans": [
                [span.phase.value, span.repetition, span.token, span.n_tokens, span.start_ns, span.end_ns]
                for span in self.spans
            ],
            "graphs": [[_plain_node(node) for node in graph] for graph in self.graphs],
            "evaluations": [
                [each.graph, each.launch_ns, each.first_start_ns, array("q", each.ends_ns).tobytes()]
                for each in self.evaluations
            ],
            "thread_starts": [
                [each.graph, each.node, each.thread, each.start_ns, each.end_ns] for each in self.thread_starts
            ],
            "n_dropped": self.n_dropped,
            "experts": [_plain_choice(each) for each in self.experts],
            "splits": [[each.graph, each.backend, each.launch_ns, each.return_ns] for each in self.splits],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> EngineRecord:
        """Rebuild a record from `to_plain`."""
        return cls(
            engine_version=plain["engine_version"],
            spans=tuple(_span(row) for row in plain["spans"]),
            graphs=tuple(tuple(_node(row) for row in graph) for graph in plain["graphs"]),
            evaluations=tuple(_evaluation(row) for row in plain["evaluations"]),
            thread_starts=tuple(
                ThreadStart(graph=row[0], node=row[1], thread=row[2], start_ns=row[3], end_ns=row[4])
                for row in plain["thread_starts"]
            ),
            n_dropped=plain["n_dropped"],
            experts=tuple(_choice(row) for row in plain["experts"]),
            splits=tuple(
                Split(graph=row[0], backend=row[1], launch_ns=row[2], return_ns=row[3]) for row in plain["splits"]
            ),
        )


def _span(row: Sequence[Any]) -> Span:
    return Span(phase=Phase(row[0]), repetition=row[1], token=row[2], n_tokens=row[3], start_ns=row[4], end_ns=row[5])


def _evaluation(row: Sequence[Any]) -> Evaluation:
    ends = array("q")
    ends.frombytes(row[3])
    return Evaluation(graph=row[0], launch_ns=row[1], first_start_ns=row[2], ends_ns=tuple(ends))


def _plain_choice(choice: ExpertChoice) -> list[Any]:
    ids = array("i", (expert for row in choice.ids for expert in row)).tobytes()
    return [choice.ns, choice.layer, choice.first_token, choice.n_experts, len(choice.ids), ids]


def _choice(row: Sequence[Any]) -> ExpertChoice:
    ids = array("i")
    ids.frombytes(row[5])
    n_used = len(ids) // row[4] if row[4] else 0
    return ExpertChoice(
        ns=row[0],
        layer=row[1],
        first_token=row[2],
        n_experts=row[3],
        ids=tuple(tuple(ids[token * n_used : (token + 1) * n_used]) for token in range(row[4])),
    )


def _plain_tensor(tensor: Tensor) -> list[Any]:
    return [tensor.name, tensor.type, list(tensor.ne), list(tensor.nb), tensor.root]


def _plain_node(node: Node) -> list[Any]:
    sources = [_plain_tensor(source) for source in node.sources]
    return [_plain_tensor(node.tensor), node.op, node.timed, node.fused, sources, list(node.refused_by)]


def _tensor(row: Sequence[Any]) -> Tensor:
    return Tensor(name=row[0], type=row[1], ne=tuple(row[2]), nb=tuple(row[3]), root=row[4])


def _node(row: Sequence[Any]) -> Node:
    sources = tuple(_tensor(source) for source in row[4])
    return Node(
        tensor=_tensor(row[0]), op=row[1], timed=row[2], fused=row[3], sources=sources, refused_by=tuple(row[5])
    )
