"""What the suite's own recorders saw of one process: phases as spans, graphs as nodes, operators as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypedDict, TypeVar

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import Count, Whole, from_plain, to_plain

#: What an error calls a record that a worker sent, and what is to be done about it.
RECORD, TODO = "the worker's record of the engine", "install the same version of the suite on both sides"

#: The role of the token table's gather, which is a phase of its own where a prompt is read.
EMBEDDING_ROLE = "embd"


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
    DRAFT_PREFILL = "draft_prefill"
    DRAFT = "draft"
    EMBED = "embed"
    ENCODE_IMAGE = "encode_image"


#: Phases that evaluate a graph, and so hold operators; a step of decoding is the last of them.
GRAPH_PHASES = (Phase.PREFILL, Phase.EMBED, Phase.ENCODE_IMAGE, Phase.DECODE)

#: Of these, what reads a prompt of tokens: for a model that generates, and for one that gives embeddings.
PROMPT_PHASES = (Phase.PREFILL, Phase.EMBED)

#: What follows each evaluation of a model that generates, on the processor.
TOKEN_PHASES = (Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING)


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
        return self.end_ns - self.start_ns

    @property
    def window_ns(self) -> tuple[int, int]:
        return self.start_ns, self.end_ns


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
    them reads except what passes between them.
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
class TickClock:
    """Two readings of the time stamp counter and of the monotonic clock; between them both ran on steadily."""

    first_ticks: int
    first_ns: int
    last_ticks: int
    last_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord:
    """Everything that one process recorded of llama.cpp.

    What was recorded once for each operator stays as the native side has it; `engine_columns` says what it is.
    """

    engine_version: str
    spans: tuple[Span, ...]
    graphs: tuple[tuple[Node, ...], ...]
    #: Events that found the ring full.
    n_dropped: int
    #: Of a CPU backend's operators: launches of graphs, and their ends on thread 0; and with the ``preload`` recorder
    #: all operators on each thread.
    events: bytes = b""
    thread_events: bytes = b""
    #: The experts that routers chose (the ``experts`` recorder, which cuts the engine's graph behind each router: each
    #: piece is a graph here, and what passes between two of them is the reading of the ids).
    expert_choices: bytes = b""
    expert_ids: bytes = b""
    #: Parts of graphs that were given to backends (the ``splits`` recorder).
    splits: bytes = b""
    #: What prompts and last decode steps came to, and the tokens that greedy sampling chose (`verdict.outputs`).
    outputs: bytes = b""
    chosen_tokens: bytes = b""
    backends: tuple[str, ...] = ()
    #: None where the ticks of all these are nanoseconds of the monotonic clock.
    clock: TickClock | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers, strings and bytes only."""
        return {
            "engine_version": self.engine_version,
            "spans": [list(to_plain(span).values()) for span in self.spans],
            "graphs": [[_plain_node(node) for node in graph] for graph in self.graphs],
            "n_dropped": self.n_dropped,
            **{name: getattr(self, name) for name in _ARRAYS},
            "backends": list(self.backends),
            "clock": self.clock and list(to_plain(self.clock).values()),
        }

    @classmethod
    def from_plain(cls, plain: object) -> EngineRecord:
        """Rebuild a record from `to_plain`; raises MeasurementError, which names the field, for anything else."""
        made = from_plain(plain, _PlainRecord, RECORD, MeasurementError, TODO)
        nested: dict[str, Any] = {
            "spans": tuple(_record(Span, row) for row in made["spans"]),
            "graphs": tuple(tuple(map(_node, graph)) for graph in made["graphs"]),
            "clock": made["clock"] and _record(TickClock, made["clock"]),
        }
        return cls(**{**made, **nested})


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutputs:
    """What a process came to, kept so that later ones with the same prompts are compared with it."""

    prompts: str
    outputs: bytes
    chosen_tokens: bytes


_ARRAYS = ("events", "thread_events", "expert_choices", "expert_ids", "splits", "outputs", "chosen_tokens")

_Sizes = tuple[Whole, Whole, Whole, Whole]
_PlainSpan = tuple[Phase, Whole, Whole, Count, Whole, Whole]
_PlainTensor = tuple[str, str, _Sizes, _Sizes, int | None]
_PlainNode = tuple[_PlainTensor, str, bool, bool, tuple[_PlainTensor, ...], tuple[str, ...]]
_PlainGraph = tuple[_PlainNode, ...]


_Built = TypeVar("_Built")


class _PlainOutputs(TypedDict, total=False):
    outputs: bytes
    chosen_tokens: bytes


class _PlainRecord(_PlainOutputs):
    engine_version: str
    spans: tuple[_PlainSpan, ...]
    graphs: tuple[_PlainGraph, ...]
    n_dropped: Count
    events: bytes
    thread_events: bytes
    expert_choices: bytes
    expert_ids: bytes
    splits: bytes
    backends: tuple[str, ...]
    clock: _Sizes | None


def _record(kind: type[_Built], row: Sequence[Any]) -> _Built:
    return kind(**dict(zip(kind.__slots__, row, strict=True)))  # type: ignore[attr-defined]


def _plain_tensor(tensor: Tensor) -> list[Any]:
    return [tensor.name, tensor.type, list(tensor.ne), list(tensor.nb), tensor.root]


def _plain_node(node: Node) -> list[Any]:
    sources = list(map(_plain_tensor, node.sources))
    return [_plain_tensor(node.tensor), node.op, node.timed, node.fused, sources, list(node.refused_by)]


def graph_from_plain(plain: object) -> tuple[Node, ...]:
    """Rebuild a graph from the rows of `EngineRecord.to_plain`; raises MeasurementError for anything else."""
    return tuple(map(_node, from_plain(plain, _PlainGraph, "the worker's graph", MeasurementError, TODO)))


def _node(row: _PlainNode) -> Node:
    tensor, op, timed, fused, sources, refused_by = row
    return Node(
        tensor=_record(Tensor, tensor),
        op=op,
        timed=timed,
        fused=fused,
        sources=tuple(_record(Tensor, source) for source in sources),
        refused_by=refused_by,
    )
