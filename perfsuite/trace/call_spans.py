"""From an independent tracer's calls to phases, one for each that the driver timed itself."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfsuite.errors import MeasurementError
from perfsuite.records.call_trace import INNER_FUNCTIONS, CallTrace, TracedCall, TracedFunction
from perfsuite.records.events import Phase, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPattern:
    """What a process was asked to run, from which the order of its calls follows."""

    n_prompt: int
    n_gen: int
    n_depth: int = 0
    n_batch: int
    n_repetitions: int
    #: Whether the trace begins with the warm-up, a repetition with one generated token at most.
    with_warm_up: bool = True


def call_spans(trace: CallTrace, pattern: CallPattern) -> tuple[Span, ...]:
    """Return the phases of all repetitions, in the order in which the driver records its own.

    A prefill or decode lasts from the entry of ``llama_decode`` to the exit of the ``llama_synchronize`` after it, a
    copy from the entry of ``llama_get_logits_ith`` to the exit of ``ps_phase_copy``, an end to end from the first
    entry to the last exit of its repetition, filling the cache left out.

    Raises MeasurementError: the calls are not those of the pattern, one by one, or some were lost.
    """
    if trace.n_lost:
        raise MeasurementError(f"the {trace.tracer} tracer lost {trace.n_lost} calls; run fewer tokens or repetitions")
    reader = _Reader(trace)
    if pattern.with_warm_up:
        tuple(_repetition(reader, pattern, 0, min(pattern.n_gen, 1)))
    spans = tuple(each for n in range(pattern.n_repetitions) for each in _repetition(reader, pattern, n, pattern.n_gen))
    reader.expect_end()
    return spans


def graph_ns(trace: CallTrace, span: Span) -> int | None:
    """Return the time that a span spent on computing graphs; None where the tracer has seen none."""
    graphs = _within(trace, span, TracedFunction.GRAPH)
    return sum(each.duration_ns for each in graphs) if graphs else None


def embedding_ns(trace: CallTrace, span: Span) -> int | None:
    """Return the time that a span spent on gathering token embeddings: the first gather of each graph's computation.

    None where the tracer has seen no graph, or one without a gather.
    """
    gathers = _within(trace, span, TracedFunction.GET_ROWS)
    firsts = [
        next((each for each in gathers if graph.entry_ns <= each.entry_ns < graph.exit_ns), None)
        for graph in _within(trace, span, TracedFunction.GRAPH)
    ]
    durations = [each.duration_ns for each in firsts if each is not None]
    return sum(durations) if durations and len(durations) == len(firsts) else None


def _within(trace: CallTrace, span: Span, function: TracedFunction) -> list[TracedCall]:
    calls = trace.calls[bisect_left(trace.calls, span.start_ns, key=lambda each: each.entry_ns) :]
    found = itertools.takewhile(lambda each: each.entry_ns < span.end_ns, calls)
    return [each for each in found if each.function is function]


class _Reader:
    """Takes calls one after the other, each of the function that must come."""

    def __init__(self, trace: CallTrace) -> None:
        self._tracer = trace.tracer
        self._calls = [each for each in trace.calls if each.function not in INNER_FUNCTIONS]
        self._place = 0

    def take(self, function: TracedFunction, n_tokens: int | None = None) -> TracedCall:
        found = self._calls[self._place] if self._place < len(self._calls) else None
        is_other = found is None or found.function is not function
        if found is None or is_other or (n_tokens and found.n_tokens and found.n_tokens != n_tokens):
            wanted = function.value + (f" of {n_tokens} tokens" if n_tokens else "")
            raise MeasurementError(f"{self._here()} is {_shown(found)}, expected {wanted}")
        self._place += 1
        return found

    def expect_end(self) -> None:
        if self._place < len(self._calls):
            raise MeasurementError(f"{self._here()} is {_shown(self._calls[self._place])}, expected no call more")

    def _here(self) -> str:
        return f"call {self._place + 1} of {len(self._calls)} that the {self._tracer} tracer saw"


def _shown(call: TracedCall | None) -> str:
    if call is None:
        return "missing"
    return call.function.value + (f" of {call.n_tokens} tokens" if call.n_tokens else "")


def _repetition(reader: _Reader, pattern: CallPattern, number: int, n_gen: int) -> Iterator[Span]:
    for done in range(0, pattern.n_depth, pattern.n_batch):
        _evaluation(reader, min(pattern.n_batch, pattern.n_depth - done))
    spans: list[Span] = []
    at = pattern.n_depth
    batches = ((Phase.PREFILL, pattern.n_prompt),) * bool(pattern.n_prompt) + ((Phase.DECODE, 1),) * n_gen
    for phase, n_tokens in batches:
        start_ns, end_ns = _evaluation(reader, n_tokens)
        spans.append(_span(phase, number, at, n_tokens, start_ns, end_ns))
        at += n_tokens
        spans += _choice(reader, number, at - 1)
    yield from spans
    start_ns, end_ns = spans[0].start_ns, spans[-1].end_ns
    yield _span(Phase.END_TO_END, number, pattern.n_depth, pattern.n_prompt + n_gen, start_ns, end_ns)


def _evaluation(reader: _Reader, n_tokens: int) -> tuple[int, int]:
    decode = reader.take(TracedFunction.DECODE, n_tokens)
    return decode.entry_ns, reader.take(TracedFunction.SYNCHRONIZE).exit_ns


def _choice(reader: _Reader, number: int, token: int) -> Sequence[Span]:
    """Read what follows an evaluation: the logits are copied, made into probabilities, and a token is drawn."""
    fetch, copy = reader.take(TracedFunction.GET_LOGITS), reader.take(TracedFunction.COPY)
    softmax, sample = reader.take(TracedFunction.SOFTMAX), reader.take(TracedFunction.SAMPLE)
    return (
        _span(Phase.COPY, number, token, 1, fetch.entry_ns, copy.exit_ns),
        _span(Phase.SOFTMAX, number, token, 1, softmax.entry_ns, softmax.exit_ns),
        _span(Phase.SAMPLING, number, token, 1, sample.entry_ns, sample.exit_ns),
    )


def _span(phase: Phase, repetition: int, token: int, n_tokens: int, start_ns: int, end_ns: int) -> Span:
    return Span(phase=phase, repetition=repetition, token=token, n_tokens=n_tokens, start_ns=start_ns, end_ns=end_ns)
