"""Kernel probes: where they are set, and a real run where this user may set them."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import run_worker
from perfsuite.measure.phase_tracer import PMU_TYPE, outermost, paired_calls, traced_calls
from perfsuite.measure.plan import LlamaPlan, UprobePlan
from perfsuite.records.call_trace import TracedCall, TracedFunction
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.call_spans import CallPattern, call_spans


def call(function: TracedFunction, entry_ns: int, exit_ns: int) -> TracedCall:
    return TracedCall(function=function, entry_ns=entry_ns, exit_ns=exit_ns)


def test_entries_and_returns_are_paired_in_order() -> None:
    """The first return belongs to the first entry; without one for each entry, after it, there are no pairs."""
    calls = paired_calls(TracedFunction.SOFTMAX, [1, 10], [4, 15])
    assert calls == [call(TracedFunction.SOFTMAX, 1, 4), call(TracedFunction.SOFTMAX, 10, 15)]
    for entries, returns in (([1, 2], [3]), ([1], [2, 3]), ([5], [4])):
        with pytest.raises(MeasurementError, match=r"ps_phase_softmax was entered . times and returned from . times"):
            paired_calls(TracedFunction.SOFTMAX, entries, returns)


def test_calls_from_within_others_are_left_out() -> None:
    """A sampler fetches logits itself, which is no copy; graphs and gathers lie within a decode by nature."""
    decode, graph = call(TracedFunction.DECODE, 0, 100), call(TracedFunction.GRAPH, 5, 90)
    gather, sync = call(TracedFunction.GET_ROWS, 10, 20), call(TracedFunction.SYNCHRONIZE, 101, 102)
    sample, within = call(TracedFunction.SAMPLE, 200, 300), call(TracedFunction.GET_LOGITS, 210, 220)
    after = call(TracedFunction.GET_LOGITS, 300, 310)
    shuffled = [within, after, gather, sync, sample, graph, decode]
    assert outermost(shuffled) == (decode, graph, gather, sync, sample, after)


def sample(time_ns: int) -> bytes:
    return struct.pack("<IHHQQ", 9, 2, 24, 77, time_ns)


def test_rings_become_calls() -> None:
    lost = struct.pack("<IHHQQ", 2, 0, 24, 77, 5)
    rings = {
        "llama_decode": [sample(1) + sample(50), sample(40) + sample(90)],
        "ps_phase_softmax": [sample(95), sample(99) + lost],
    }
    trace = traced_calls(rings)
    times = [(each.function.value, each.entry_ns, each.exit_ns) for each in trace.calls]
    assert times == [("llama_decode", 1, 40), ("llama_decode", 50, 90), ("ps_phase_softmax", 95, 99)]
    assert (trace.tracer, trace.n_lost) == ("uprobes", 5)


def test_probes_see_the_phases_that_the_driver_times(small_plan: LlamaPlan) -> None:
    """Same phases in the same order, none longer by a millisecond; skipped where probes are not allowed."""
    if not PMU_TYPE.exists():
        pytest.skip("this kernel has no PMU for uprobes")
    plan = replace(small_plan, n_repetitions=2)
    try:
        payload = run_worker(UprobePlan(llama=plan))
    except MeasurementError as error:
        if "CAP_PERFMON" not in str(error):
            raise
        pytest.skip(str(error))
    record = EngineRecord.from_plain(payload["engine"])
    trace = traced_calls(payload["rings"])
    pattern = CallPattern(
        n_prompt=plan.n_prompt, n_gen=plan.n_gen, n_batch=plan.n_batch, n_repetitions=2, with_warm_up=False
    )
    own = [span for span in record.spans if span.phase is not Phase.LOAD]
    seen = call_spans(trace, pattern)
    assert [(span.phase, span.token) for span in seen] == [(span.phase, span.token) for span in own]
    assert all(mine.duration_ns + 10**6 > other.duration_ns > 0 for mine, other in zip(own, seen, strict=True))
