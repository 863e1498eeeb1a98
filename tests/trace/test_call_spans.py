"""Phases out of calls, and sequences of calls that are no run of the driver's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.call_trace import CallTrace, TracedCall, TracedFunction
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.trace.call_spans import CallPattern, call_spans, embedding_ns, graph_ns

from ..synthetic_fidelity import STORED_PATTERN, trace_of

Calls = tuple[TracedCall, ...]


def own_spans(record: EngineRecord) -> list[Span]:
    return [span for span in record.spans if span.phase is not Phase.LOAD]


def test_the_spans_of_a_run_are_found_again(stored_record: EngineRecord) -> None:
    spans = call_spans(trace_of(stored_record), STORED_PATTERN)
    own = own_spans(stored_record)
    assert spans[:-1] == tuple(own[:-1])
    assert spans[-1].phase is own[-1].phase is Phase.END_TO_END
    assert (spans[-1].start_ns, spans[-1].end_ns) == (own[0].start_ns, own[-2].end_ns)


def run_of(pattern: CallPattern, n_gen: int, begin_ns: int) -> Calls:
    batches = [min(pattern.n_batch, pattern.n_depth - at) for at in range(0, pattern.n_depth, pattern.n_batch)]
    choice = (TracedFunction.GET_LOGITS, TracedFunction.COPY, TracedFunction.SOFTMAX, TracedFunction.SAMPLE)
    evaluation = (TracedFunction.DECODE, TracedFunction.SYNCHRONIZE)
    functions = [(function, n) for n in batches for function in evaluation]
    for n in [pattern.n_prompt] * bool(pattern.n_prompt) + [1] * n_gen:
        functions += [(function, n) for function in (*evaluation, *choice)]
    return tuple(
        TracedCall(
            function=function,
            entry_ns=begin_ns + 1000 * place,
            exit_ns=begin_ns + 1000 * place + 900,
            n_tokens=n if function is TracedFunction.DECODE else None,
        )
        for place, (function, n) in enumerate(functions)
    )


@pytest.mark.parametrize(
    "pattern",
    [
        CallPattern(n_prompt=5, n_gen=3, n_batch=8, n_repetitions=2),
        CallPattern(n_prompt=0, n_gen=2, n_batch=8, n_repetitions=1),
        CallPattern(n_prompt=5, n_gen=0, n_batch=8, n_repetitions=3),
        CallPattern(n_prompt=5, n_gen=2, n_depth=19, n_batch=8, n_repetitions=2),
    ],
    ids=["both", "decode", "prefill", "depth"],
)
def test_warm_up_and_depth_leave_no_spans(pattern: CallPattern) -> None:
    warm_up = run_of(pattern, min(pattern.n_gen, 1), 0)
    repeated = [run_of(pattern, pattern.n_gen, 10**6 * (number + 1)) for number in range(pattern.n_repetitions)]
    trace = CallTrace(tracer="interposed", calls=sum(repeated, warm_up), n_lost=0)
    spans = call_spans(trace, pattern)
    wholes = [span for span in spans if span.phase is Phase.END_TO_END]
    n_depth_calls = 2 * -(-pattern.n_depth // pattern.n_batch)
    assert [span.repetition for span in wholes] == list(range(pattern.n_repetitions))
    assert [span.start_ns for span in wholes] == [calls[n_depth_calls].entry_ns for calls in repeated]
    assert [span.end_ns for span in wholes] == [calls[-1].exit_ns for calls in repeated]
    assert {(span.token, span.n_tokens) for span in wholes} == {(pattern.n_depth, pattern.n_prompt + pattern.n_gen)}
    decodes = [span.token for span in spans if span.phase is Phase.DECODE and span.repetition == 0]
    assert decodes == [pattern.n_depth + pattern.n_prompt + step for step in range(pattern.n_gen)]
    assert len(spans) == pattern.n_repetitions * (4 * (bool(pattern.n_prompt) + pattern.n_gen) + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda calls: calls[:-1], r"^call 12 of 11 .* is missing, expected llama_sampler_sample$"),
        (
            lambda calls: (replace(calls[0], n_tokens=6), *calls[1:]),
            r"^call 1 of 12 .* is llama_decode of 6 tokens, expected llama_decode of 5 tokens$",
        ),
    ],
    ids=["one is missing", "another batch"],
)
def test_other_calls_are_refused(change: Callable[[Calls], Calls], message: str) -> None:
    pattern = CallPattern(n_prompt=5, n_gen=1, n_batch=8, n_repetitions=1, with_warm_up=False)
    trace = CallTrace(tracer="uprobes", calls=change(run_of(pattern, 1, 0)), n_lost=0)
    with pytest.raises(MeasurementError, match=message):
        call_spans(trace, pattern)


def test_a_batch_that_the_tracer_cannot_see_is_taken(stored_record: EngineRecord) -> None:
    """Kernel probes know no arguments; with calls missing nothing can be matched."""
    trace = trace_of(stored_record)
    blind = replace(trace, calls=tuple(replace(each, n_tokens=None) for each in trace.calls))
    assert call_spans(blind, STORED_PATTERN) == call_spans(trace, STORED_PATTERN)
    with pytest.raises(MeasurementError, match="the interposed tracer lost 2 calls; run fewer"):
        call_spans(replace(trace_of(stored_record), n_lost=2), STORED_PATTERN)


def test_a_span_has_its_own_graph_and_gather(stored_record: EngineRecord) -> None:
    trace = trace_of(stored_record)
    spans = [span for span in call_spans(trace, STORED_PATTERN) if span.phase in (Phase.PREFILL, Phase.DECODE)]
    assert [graph_ns(trace, span) for span in spans] == [span.duration_ns - 40 for span in spans]
    assert {embedding_ns(trace, span) for span in spans} == {1000}
    trace, prefill = trace_of(stored_record), own_spans(stored_record)[0]
    ungathered = tuple(each for each in trace.calls if each.function is not TracedFunction.GET_ROWS)
    bare = tuple(each for each in ungathered if each.function is not TracedFunction.GRAPH)
    assert embedding_ns(replace(trace, calls=ungathered), prefill) is None
    assert embedding_ns(replace(trace, calls=bare), prefill) is None
    assert graph_ns(replace(trace, calls=bare), prefill) is None
