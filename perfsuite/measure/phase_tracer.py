"""Tracers of phases that share no code with what they check: calls of a worker's functions, interposed or by probes.

The interposed one is a library that wraps llama.cpp's functions and the driver's own two
(``native/src/tracer/phase_tracer.c``); the loader of the worker brings it in. Kernel probes the worker sets on itself
(``native/src/worker/uprobes.h``), and hands over what the kernel has written.

*Source*: Linux, perf_event_open(2).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.records.call_trace import INNER_FUNCTIONS, CallTrace, TracedCall, TracedFunction

#: The header and the calls of the file are as native/include/perfsuite/call_trace.h has them.
_TIMES = ("first_raw_ns", "first_monotonic_ns", "last_raw_ns", "last_monotonic_ns")
HEADER_DTYPE = np.dtype([("magic", "S8"), ("n_calls", "<u8"), ("n_lost", "<u8"), *((name, "<i8") for name in _TIMES)])
_PLACES = ("function", "count", "thread", "reserved")
CALL_DTYPE = np.dtype([("entry_ns", "<i8"), ("exit_ns", "<i8"), *((name, "<i4") for name in _PLACES)])
MAGIC = b"pscalls"

_FUNCTIONS = tuple(TracedFunction)


def tracer_environment(library: Path, path: Path) -> Mapping[str, str]:
    """Return the variables with which a worker is traced by the tracer of its engine; its calls go to `path`.

    Raises `MeasurementError` where the loader cannot bring the library in. *Source*: ld.so(8), ``LD_PRELOAD``: spaces
    and colons part the libraries of the list, and nothing escapes them.
    """
    if any(each.isspace() or each == ":" for each in str(library)):
        raise MeasurementError(
            f"{library}: cannot be preloaded, LD_PRELOAD takes no path with a space or a colon; "
            "set XDG_CACHE_HOME there to a folder without either"
        )
    return {"LD_PRELOAD": str(library), "PERFSUITE_PHASE_TRACE": str(path)}


def read_trace(path: Path) -> CallTrace:
    """Read what the tracer wrote, in the order of entry; `MeasurementError` where there is no whole trace."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeasurementError(f"{path}: the phase tracer left no trace ({error.strerror})") from None
    if len(content) < HEADER_DTYPE.itemsize:
        raise MeasurementError(f"{path}: {len(content)} bytes are no phase trace; expected {HEADER_DTYPE.itemsize}")
    header = np.frombuffer(content, HEADER_DTYPE, count=1)[0]
    body = content[HEADER_DTYPE.itemsize :]
    expected_bytes = int(header["n_calls"]) * CALL_DTYPE.itemsize
    if header["magic"] != MAGIC or len(body) != expected_bytes:
        raise MeasurementError(
            f"{path}: no whole phase trace: begins {bytes(header['magic'])!r}, "
            f"holds {len(body)} bytes of {expected_bytes}"
        )
    rows = np.sort(np.frombuffer(body, CALL_DTYPE), order=("entry_ns", "exit_ns"))
    if unknown := set(rows["function"].tolist()) - set(range(len(_FUNCTIONS))):
        raise MeasurementError(f"{path}: no phase trace: function {min(unknown)}, expected 0 to {len(_FUNCTIONS) - 1}")
    return CallTrace(
        tracer="interposed",
        calls=tuple(_call(row) for row in rows),
        n_lost=int(header["n_lost"]),
        monotonic_offset_ns=int(header["first_monotonic_ns"] - header["first_raw_ns"]),
    )


def _call(row: np.void) -> TracedCall:
    function = _FUNCTIONS[int(row["function"])]
    return TracedCall(
        function=function,
        entry_ns=int(row["entry_ns"]),
        exit_ns=int(row["exit_ns"]),
        n_tokens=int(row["count"]) if function is TracedFunction.DECODE else None,
    )


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
