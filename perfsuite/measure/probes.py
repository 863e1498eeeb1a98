"""What the desk knows of the native probes: the sizes that they work on, and the sentinels.

The sentinels are two fixed pieces of work beside the cases, one bound by memory and one by arithmetic.

A sentinel that takes longer than it did in a stored session shows that the machine changed, not the engine. Both come
from the probes of the ceilings, by the median repetition: a sentinel says how the machine is, not what it could do.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.native import declare_functions, native_fields
from perfsuite.units import NS_PER_S

CPU_FOLDER = "sys/devices/system/cpu"
_CPU_ROOT = Path("/", CPU_FOLDER)
_KIB = 1024
_MIB = 1024 * _KIB
_SIZE_UNITS = {"": 1, "K": _KIB, "M": _MIB, "G": 1024 * _MIB}

_LEAST_MEMORY_BYTES = 64 * _MIB
_MOST_MEMORY_BYTES = 512 * _MIB

#: The ladder of a survey ends at so many times the last cache, of which little is left in it then.
MEMORY_OVER_CACHE = 16

#: Of ``enum ps_type``, and of ``enum ps_status``.
_FP32, _OK = 0, 0


class ProbeSetup(ctypes.Structure):
    """``ps_probe_setup`` of ``native/include/perfsuite/probe.h``."""

    _fields_ = native_fields((ctypes.c_int32, "n_threads pinned"), (ctypes.c_int64, "budget_ms"))


class ProbeRate(ctypes.Structure):
    """``ps_rate``: bytes or FLOPs per second."""

    _fields_ = native_fields((ctypes.c_double, "best_per_s median_per_s"), (ctypes.c_int64, "repetitions"))


class ProbeBandwidth(ctypes.Structure):
    """``ps_bandwidth``."""

    _fields_ = native_fields((ProbeRate, "read copy triad"))


_FUNCTIONS = (
    ("ps_probe_bandwidth", ctypes.c_int, (ctypes.POINTER(ProbeSetup), ctypes.c_int64, ctypes.POINTER(ProbeBandwidth))),
    ("ps_probe_compute", ctypes.c_int, (ctypes.POINTER(ProbeSetup), ctypes.c_int, ctypes.POINTER(ProbeRate))),
    ("ps_status_text", ctypes.c_char_p, (ctypes.c_int,)),
)


#: What is read of a machine's caches, below its root.
CACHE_FILES = tuple(
    f"{CPU_FOLDER}/cpu[0-9]*/cache/index[0-9]*/{name}" for name in ("level", "type", "size", "shared_cpu_list")
)


def largest_working_set(
    n_threads: int, over_cache: int, cpu_root: Path = _CPU_ROOT, *, physical_bytes: int | None = None
) -> int:
    """Return so many times the last cache, between 64 and 512 MiB and at most an eighth of the machine's memory.

    `physical_bytes` is the memory of another machine, whose files `cpu_root` has.
    """
    memory_bytes = over_cache * max(_cache_sizes(n_threads, cpu_root).values(), default=0)
    most_bytes = (physical_bytes or _physical_memory_bytes()) // 8
    return min(max(memory_bytes, _LEAST_MEMORY_BYTES), _MOST_MEMORY_BYTES, most_bytes)


def thread_counts(n_processors: int) -> tuple[int, ...]:
    """Return the powers of two below the number of processors, and that number."""
    powers = (1 << power for power in range(n_processors.bit_length()))
    return tuple(sorted({n_processors, *(count for count in powers if count <= n_processors)}))


def _cache_sizes(n_threads: int, cpu_root: Path) -> dict[int, int]:
    """Return, per level, the bytes that ``n_threads`` threads have at most, spread over as many caches as there are."""
    instances: dict[int, dict[str, int]] = {}
    for index in sorted(cpu_root.glob("cpu[0-9]*/cache/index[0-9]*")):
        fields = {name: _text_of(index / name) for name in ("level", "type", "size", "shared_cpu_list")}
        size = _parsed_size(fields["size"])
        if size and fields["level"].isdigit() and fields["type"] != "Instruction":
            instances.setdefault(int(fields["level"]), {})[fields["shared_cpu_list"] or str(index.parent)] = size
    return {level: sum(sorted(sizes.values(), reverse=True)[:n_threads]) for level, sizes in instances.items()}


def _parsed_size(text: str) -> int:
    """Return the bytes of a size as sysfs writes it (``1024K``), 0 where it is none."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * _SIZE_UNITS[match[2]] if match else 0


def _text_of(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _physical_memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


#: The names of the sentinels.
SENTINELS = ("memory", "compute")

#: What the sentinels do.
MEMORY_BYTES = 64 * 1024 * 1024
COMPUTE_FLOPS = 100_000_000

#: Time for each, ms; both together stay below 200 ms with the first use of the memory.
_MEMORY_BUDGET_MS = 90
_COMPUTE_BUDGET_MS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentinels:
    """How long the fixed work took in one process."""

    #: Reading 64 MiB.
    memory_ns: int
    #: 100 million multiplications and additions in single precision.
    compute_ns: int

    @property
    def times_ns(self) -> dict[str, int]:
        """Return the times by the sentinels' names."""
        return {"memory": self.memory_ns, "compute": self.compute_ns}

    def to_plain(self) -> dict[str, int]:
        """Return the fields by name."""
        return {"memory_ns": self.memory_ns, "compute_ns": self.compute_ns}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Sentinels:
        """Rebuild from `to_plain`."""
        return cls(memory_ns=plain["memory_ns"], compute_ns=plain["compute_ns"])


def measure_sentinels(library: ctypes.CDLL, n_threads: int) -> Sentinels:
    """Run both sentinels on the threads that the cases have, each of them on one processor where they fill all.

    Raises `MeasurementError` where a probe refused its arguments or could not get its memory or threads.
    """
    declare_functions(library, *_FUNCTIONS)
    pinned = int(n_threads == len(os.sched_getaffinity(0)))
    memory, compute = ProbeBandwidth(), ProbeRate()
    for status, what in (
        (library.ps_probe_bandwidth(ProbeSetup(n_threads, pinned, _MEMORY_BUDGET_MS), MEMORY_BYTES, memory), "memory"),
        (library.ps_probe_compute(ProbeSetup(n_threads, pinned, _COMPUTE_BUDGET_MS), _FP32, compute), "arithmetic"),
    ):
        if status != _OK:
            text = library.ps_status_text(status).decode()
            raise MeasurementError(
                f"sentinel of {what} with {n_threads} threads: {text} (status {status}); try fewer threads"
            )
    return Sentinels(
        memory_ns=max(1, round(MEMORY_BYTES * NS_PER_S / memory.read.median_per_s)),
        compute_ns=max(1, round(COMPUTE_FLOPS * NS_PER_S / compute.median_per_s)),
    )
