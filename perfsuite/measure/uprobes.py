"""Kernel probes on the functions of this very process: a tracer of phases that shares no code with what it checks.

For a worker. Every entry and return traps into the kernel, which reads its own clock; a trap takes a microsecond or
two, so short phases are better left to the interposed tracer. Needs root or CAP_PERFMON.

*Source*: Linux, perf_event_open(2), and Documentation/trace/uprobetracer.rst for the PMU ``uprobe``.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

#: ``PERF_EVENT_IOC_ENABLE`` and ``PERF_EVENT_IOC_DISABLE``.
_ENABLE, _DISABLE = 0x2400, 0x2401
#: Where the kernel says how far it has written, in the first page of a ring.
_DATA_HEAD_AT = 1024
_RING_PAGES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlace:
    """A function's place in the file that it was mapped from."""

    path: str
    offset: int


class Uprobes:
    """Probes at entry and return of functions that the calling thread makes; a context manager that closes them."""

    def __init__(self, library: ctypes.CDLL, functions: Sequence[TracedFunction] = tuple(TracedFunction)) -> None:
        """Attach to functions as `library` and what it depends on have them, not counting yet.

        Raises `MeasurementError` where this kernel has no such probes, this user may not set them, or a function is
        not there.
        """
        self._rings: dict[tuple[TracedFunction, bool], _Ring] = {}
        pmu = _pmu_type()
        maps = Path("/proc/self/maps").read_text()
        try:
            for function in functions:
                place = place_of(_address(library, function), maps)
                for at_return in (False, True):
                    descriptor = _open(library, pmu, function, place, at_return)
                    self._rings[function, at_return] = _Ring(descriptor)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Uprobes:
        """Begin to count."""
        for ring in self._rings.values():
            ring.control(_ENABLE)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop counting; the rings stay readable."""
        for ring in self._rings.values():
            ring.control(_DISABLE)

    def trace(self) -> CallTrace:
        """Pair entries with returns and leave out calls from within another, but for `INNER_FUNCTIONS`."""
        n_lost = sum(ring.read()[1] for ring in self._rings.values())
        calls: list[TracedCall] = []
        for function in dict.fromkeys(function for function, _ in self._rings):
            entries, returns = (self._rings[function, at_return].read()[0] for at_return in (False, True))
            calls += paired_calls(function, entries, returns)
        return CallTrace(tracer="uprobes", calls=outermost(calls), n_lost=n_lost)

    def close(self) -> None:
        """Take the probes away."""
        for ring in self._rings.values():
            ring.close()
        self._rings.clear()


def place_of(address: int, maps: str) -> ProbePlace:
    """Find which file, and where in it, an address of this process is mapped from; `MeasurementError` where none is."""
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        begin, end = (int(each, 16) for each in fields[0].split("-"))
        if begin <= address < end and len(fields) > 5 and fields[5].startswith("/"):
            return ProbePlace(path=fields[5], offset=address - begin + int(fields[2], 16))
    raise MeasurementError(f"uprobes: address {address:#x} is mapped from no file, so that no probe can be set there")


class _Ring:
    """One event with the memory that the kernel writes its samples to."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        try:
            self._memory = mmap.mmap(descriptor, (1 + _RING_PAGES) * mmap.PAGESIZE)
        except OSError as error:
            os.close(descriptor)
            raise MeasurementError(
                f"uprobes: no memory for a ring ({error.strerror}); raise perf_event_mlock_kb"
            ) from None

    def control(self, request: int) -> None:
        fcntl.ioctl(self._descriptor, request, 0)

    def read(self) -> tuple[list[int], int]:
        """Read from the beginning: nothing is ever taken out, so a ring that is full loses what comes then."""
        (head,) = struct.unpack_from("<Q", self._memory, _DATA_HEAD_AT)
        return ring_times(self._memory[mmap.PAGESIZE : mmap.PAGESIZE + head])

    def close(self) -> None:
        self._memory.close()
        os.close(self._descriptor)


def _pmu_type() -> int:
    try:
        return int(PMU_TYPE.read_text())
    except (OSError, ValueError):
        raise MeasurementError(f"uprobes: {PMU_TYPE} is not there; the kernel needs CONFIG_UPROBE_EVENTS") from None


def _address(library: ctypes.CDLL, function: TracedFunction) -> int:
    try:
        address = ctypes.cast(getattr(library, function.value), ctypes.c_void_p).value
    except AttributeError:
        address = None
    if not address:
        raise MeasurementError(f"uprobes: no library of this engine has {function.value}")
    return address


def _open(library: ctypes.CDLL, pmu: int, function: TracedFunction, place: ProbePlace, at_return: bool) -> int:
    path, offset = ctypes.c_char_p(os.fsencode(place.path)), ctypes.c_uint64(place.offset)
    descriptor: int = library.ps_uprobe_open(ctypes.c_uint32(pmu), path, offset, ctypes.c_int(at_return))
    if descriptor < 0:
        raise MeasurementError(
            f"uprobes: no probe at the {'return' if at_return else 'entry'} of {function.value} in {place.path} "
            f"({os.strerror(-descriptor)}); it takes root or CAP_PERFMON"
        )
    return descriptor
