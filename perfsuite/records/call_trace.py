"""What an independent tracer saw of one process: calls with entry and exit on a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from perfsuite.records.codec import Plain


class TracedFunction(str, Enum):
    """A function that the driver calls, as the dynamic linker knows it; the values' order is the native one."""

    DECODE = "llama_decode"
    SYNCHRONIZE = "llama_synchronize"
    GET_LOGITS = "llama_get_logits_ith"
    COPY = "ps_phase_copy"
    SOFTMAX = "ps_phase_softmax"
    SAMPLE = "llama_sampler_sample"
    #: Within a graph's computation, on the thread that called it; the first gathers the token embeddings.
    GET_ROWS = "ggml_compute_forward_get_rows"
    #: Within a decode: the computation of one evaluation's graph.
    GRAPH = "ggml_backend_sched_graph_compute_async"


#: What is called within another traced call by nature.
INNER_FUNCTIONS = frozenset({TracedFunction.GET_ROWS, TracedFunction.GRAPH})


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """One call."""

    function: TracedFunction
    entry_ns: int
    exit_ns: int
    #: Tokens of the batch of a decode; None where the tracer cannot see them.
    n_tokens: int | None = None

    @property
    def duration_ns(self) -> int:
        return self.exit_ns - self.entry_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTrace(Plain):
    """All calls of a process, in the order in which they were entered."""

    ROWS: ClassVar = {"calls": TracedCall}

    #: ``interposed`` or ``uprobes``.
    tracer: str
    calls: tuple[TracedCall, ...]
    #: Calls that found the buffer full.
    n_lost: int
    #: What to add to get the monotonic clock of the suite's own spans, at the start of the trace; None where unknown.
    monotonic_offset_ns: int | None = None
