"""The phases that the suite's own driver timed, as events, and which call of llama_decode a moment falls into."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING, EventKind, Events, Times, new_events
from perfsuite.records.events import EngineRecord, Phase, Span

#: The phases that are a call of llama_decode each.
DECODING = (Phase.PREFILL, Phase.DECODE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpanEvents:
    """The spans of a record."""

    #: The phases that occur; a PHASE event's value is the position here.
    phases: tuple[str, ...]
    #: PHASE and TOKEN events, both on thread 0.
    events: Events
    #: The spans that are iterations, in the order of time.
    iterations: tuple[Span, ...]

    def iteration_of(self, ns: Times) -> npt.NDArray[np.int64]:
        """Return the iteration that each moment falls into, NOTHING where there is none."""
        starts_ns = np.array([span.start_ns for span in self.iterations], np.int64)
        ends_ns = np.array([*(span.end_ns for span in self.iterations), NOTHING], np.int64)
        before = np.searchsorted(starts_ns, ns, side="right") - 1
        return np.where((before >= 0) & (ns <= ends_ns[before]), before, NOTHING)


def span_events(record: EngineRecord) -> SpanEvents:
    """Turn the spans of a record into PHASE events, and those of prefill and decode into TOKEN events too."""
    phases = tuple(dict.fromkeys(span.phase.value for span in record.spans))
    iterations = tuple(
        sorted((span for span in record.spans if span.phase in DECODING), key=lambda span: span.start_ns)
    )
    number = {id(span): place for place, span in enumerate(iterations)}
    of_phases = _events(EventKind.PHASE, record.spans)
    of_phases["value"] = [phases.index(span.phase.value) for span in record.spans]
    of_phases["iteration"] = [number.get(id(span), NOTHING) for span in record.spans]
    tokens = _events(EventKind.TOKEN, iterations)
    tokens["value"] = [span.n_tokens for span in iterations]
    tokens["iteration"] = np.arange(len(iterations))
    return SpanEvents(phases=phases, events=np.concatenate([of_phases, tokens]), iterations=iterations)


def _events(kind: EventKind, spans: tuple[Span, ...]) -> Events:
    times = {name: [getattr(span, name) for span in spans] for name in ("start_ns", "end_ns")}
    return new_events(kind, len(spans), thread=0, **times)
