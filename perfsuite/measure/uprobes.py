"""What kernel probes on a worker's functions have seen: a tracer of phases that shares no code with what it checks.

The worker sets them on itself (``native/src/worker/uprobes.h``) and hands over what the kernel has written.

*Source*: Linux, perf_event_open(2).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.records.call_trace import INNER_FUNCTIONS, CallTrace, TracedCall, TracedFunction

#: Kinds of record in a ring, *Source*: perf_event_open(2).
_RECORD_LOST, _RECORD_THROTTLE, _RECORD_SAMPLE = 2, 5, 9
_HEADER = struct.Struct("<IHH")
#: Where a sample has its time.
_TIME_AT = 16


def paired_calls(function: TracedFunction, entries: Sequence[int], returns: Sequence[int]) -> list[TracedCall]:
    """Pair the times of entries with those of returns; a function does not call itself, so their order is the same.

    Raises `MeasurementError` where there is not one return for each entry, after it.
    """
    if len(entries) != len(returns) or any(end < begin for begin, end in zip(entries, returns, strict=True)):
        raise MeasurementError(
            f"uprobes: {function.value} was entered {len(entries)} times and returned from {len(returns)} times, "
            "or out of order"
        )
    return [
        TracedCall(function=function, entry_ns=begin, exit_ns=end) for begin, end in zip(entries, returns, strict=True)
    ]


def outermost(calls: Sequence[TracedCall]) -> tuple[TracedCall, ...]:
    """Return the calls in order of entry, without those from within another but `INNER_FUNCTIONS`."""
    found: list[TracedCall] = []
    last_exit_ns = -1
    for call in sorted(calls, key=lambda each: (each.entry_ns, -each.exit_ns)):
        is_within = call.entry_ns < last_exit_ns
        if call.function in INNER_FUNCTIONS or not is_within:
            found.append(call)
        if call.function not in INNER_FUNCTIONS and not is_within:
            last_exit_ns = call.exit_ns
    return tuple(found)


def ring_times(content: bytes) -> tuple[list[int], int]:
    """Return the times of the samples in a ring, and how many samples were lost; a throttled ring has lost some.

    A sample is a header of 8 bytes, an identifier and a time; a record of losses has the count where that has the time.
    """
    times: list[int] = []
    n_lost = 0
    for kind, at in _records(content):
        (value,) = struct.unpack_from("<Q", content, at + _TIME_AT) if kind != _RECORD_THROTTLE else (1,)
        if kind == _RECORD_SAMPLE:
            times.append(value)
        elif kind in (_RECORD_LOST, _RECORD_THROTTLE):
            n_lost += value
    return times, n_lost


def _records(content: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at + _HEADER.size <= len(content):
        kind, _, size = _HEADER.unpack_from(content, at)
        if size < _HEADER.size:
            return
        yield kind, at
        at += size


PMU_TYPE = Path("/sys/bus/event_source/devices/uprobe/type")


def traced_calls(rings: Mapping[str, Sequence[bytes]]) -> CallTrace:
    """Pair entries with returns and leave out calls from within another, except `INNER_FUNCTIONS`.

    Each function has two rings: for its entries, and for its returns.

    Raises `MeasurementError` where there is not one return for each entry, after it.
    """
    calls: list[TracedCall] = []
    n_lost = 0
    for name, (entered, returned) in rings.items():
        (entries, n_lost_entries), (returns, n_lost_returns) = ring_times(entered), ring_times(returned)
        calls += paired_calls(TracedFunction(name), entries, returns)
        n_lost += n_lost_entries + n_lost_returns
    return CallTrace(tracer="uprobes", calls=outermost(calls), n_lost=n_lost)
