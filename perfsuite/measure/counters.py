"""Performance counters by name: what the kernel's perf_event_open takes for each, on x86-64 and on 64-bit Arm."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.errors import MeasurementError, meant

#: ``PERF_TYPE_*`` of linux/perf_event.h.
_HARDWARE, _SOFTWARE, _CACHE, _RAW = 0, 1, 3, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterDefinition:
    """One counter: its name, and type and configuration as ``perf_event_attr`` has them."""

    name: str
    type: int
    config: int
    #: What it counts, for people.
    meaning: str


def _defined(type_: int, *rows: tuple[str, int, str]) -> tuple[CounterDefinition, ...]:
    return tuple(
        CounterDefinition(name=name, type=type_, config=config, meaning=meaning) for name, config, meaning in rows
    )


#: Counted by the kernel itself, on every machine. *Source*: Linux, include/uapi/linux/perf_event.h (perf_sw_ids).
SOFTWARE_COUNTERS = _defined(
    _SOFTWARE,
    ("page-faults-major", 6, "page faults that wait for storage"),
    ("page-faults-minor", 5, "page faults that find the page in memory"),
    ("context-switches", 3, "switches from one thread to another"),
    ("migrations", 4, "moves of a thread to another processor"),
)

#: The kernel's own names for what most processors count; stalled cycles are left out by many.
#: *Source*: as above (perf_hw_id, perf_hw_cache_id).
HARDWARE_COUNTERS = _defined(
    _HARDWARE,
    ("cycles", 0, "cycles of the processor's own clock"),
    ("instructions", 1, "instructions retired"),
    ("cache-references", 2, "accesses to the last level of cache"),
    ("cache-misses", 3, "accesses that miss the last level of cache"),
    ("stalled-cycles-frontend", 7, "cycles that wait for instructions"),
    ("stalled-cycles-backend", 8, "cycles that wait for operands or memory"),
) + _defined(
    _CACHE,
    ("llc-loads", 0x2, "loads that reach the last level of cache"),
    ("llc-load-misses", 0x10002, "loads that miss the last level of cache"),
)

#: Numbers of events of 64-bit Arm processors; which of them one has is its own affair.
#: *Source*: Arm Architecture Reference Manual for A-profile (DDI 0487), PMU events and event numbers; as in Linux,
#: include/linux/perf/arm_pmuv3.h.
ARM_COUNTERS = _defined(
    _RAW,
    ("l2d_cache_refill", 0x17, "lines of 64 bytes that come into the second level of cache"),
    ("l3d_cache_refill", 0x2A, "lines of 64 bytes that come into the third level of cache"),
    ("ll_cache_miss_rd", 0x37, "reads that miss the last level of cache"),
    ("bus_access", 0x19, "accesses to the bus"),
    ("mem_access", 0x13, "accesses to memory by instructions"),
    ("mem_access_rd", 0x66, "reads of memory by instructions"),
    ("mem_access_wr", 0x67, "writes to memory by instructions"),
    ("stall_frontend", 0x23, "cycles that wait for instructions"),
    ("stall_backend", 0x24, "cycles that wait for operands or memory"),
)

#: What is counted unless somebody asks for other counters: a machine leaves out what it lacks.
USUAL_COUNTERS = ("cycles", "instructions", "cache-misses", "stalled-cycles-backend", "page-faults-major")
USUAL_ARM_COUNTERS = ("cycles", "l3d_cache_refill", "mem_access_wr", "stall_backend", "page-faults-major")


def known_counters(machine: str | None = None) -> tuple[CounterDefinition, ...]:
    """Return the counters that have a name on a machine (as ``platform.machine()`` says; this one unless told)."""
    is_arm = (machine or platform.machine()) in ("aarch64", "arm64")
    return SOFTWARE_COUNTERS + HARDWARE_COUNTERS + (ARM_COUNTERS if is_arm else ())


def usual_counters(machine: str | None = None) -> tuple[str, ...]:
    """Return the names of what is counted unless somebody asks for others."""
    return USUAL_ARM_COUNTERS if (machine or platform.machine()) in ("aarch64", "arm64") else USUAL_COUNTERS


def find_counters(names: Sequence[str], machine: str | None = None) -> tuple[CounterDefinition, ...]:
    """Return counters by their names.

    Raises `MeasurementError` where a name is not known on this machine; the text lists those that are.
    """
    known = {counter.name: counter for counter in known_counters(machine)}
    for name in names:
        if name not in known:
            told = f"known are {', '.join(known)}{meant(name, known)}"
            raise MeasurementError(f"counter {name!r} is not known here; {told}")
    return tuple(known[name] for name in dict.fromkeys(names))
