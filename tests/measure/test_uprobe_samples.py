"""What the rings of kernel probes hold."""

from __future__ import annotations

import struct

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.uprobe_samples import outermost, paired_calls, ring_times
from perfsuite.records.call_trace import TracedCall, TracedFunction


def call(function: TracedFunction, entry_ns: int, exit_ns: int) -> TracedCall:
    """Return a call of a batch that nobody knows."""
    return TracedCall(function=function, entry_ns=entry_ns, exit_ns=exit_ns)


def test_entries_and_returns_are_paired_in_order() -> None:
    """The first return belongs to the first entry."""
    calls = paired_calls(TracedFunction.SOFTMAX, [1, 10], [4, 15])
    assert calls == [call(TracedFunction.SOFTMAX, 1, 4), call(TracedFunction.SOFTMAX, 10, 15)]


@pytest.mark.parametrize(("entries", "returns"), [([1, 2], [3]), ([1], [2, 3]), ([5], [4])])
def test_a_missing_return_is_refused(entries: list[int], returns: list[int]) -> None:
    """More of one than of the other, or a return before its entry, cannot be paired."""
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
    """A record of a hit."""
    return struct.pack("<IHHQQ", 9, 2, 24, 77, time_ns)


def test_a_ring_holds_times_and_losses() -> None:
    """Samples are taken in order, losses are summed up, other records are passed over."""
    lost, throttled = struct.pack("<IHHQQ", 2, 0, 24, 77, 5), struct.pack("<IHHQQQ", 5, 0, 32, 1, 77, 77)
    other = struct.pack("<IHHQQ", 3, 0, 24, 0, 0)
    assert ring_times(sample(11) + other + lost + sample(13) + throttled + sample(17)) == ([11, 13, 17], 6)
    assert ring_times(b"") == ([], 0)
    assert ring_times(sample(11) + bytes(16)) == ([11], 0)
