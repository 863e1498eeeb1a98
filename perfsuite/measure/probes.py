"""Run the native probes of bandwidth, arithmetic and dispatch, and return a device's ceilings.

The sentinels: two fixed pieces of work beside the cases, one bound by memory and one by arithmetic.

A sentinel that takes longer than it did in a stored session shows that the machine changed, not the engine. Both come
from the probes of the ceilings, by the median repetition: a sentinel says how the machine is, not what it could do.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.measure.native import declare_functions, native_fields
from perfsuite.units import NS_PER_S

_CPU_ROOT = Path("/sys/devices/system/cpu")
_KIB = 1024
_MIB = 1024 * _KIB
_SIZE_UNITS = {"": 1, "K": _KIB, "M": _MIB, "G": 1024 * _MIB}

#: Memory's working set: enough times the last cache that little of it survives a pass, and bounded.
_MEMORY_OVER_CACHE = 4
_LEAST_MEMORY_BYTES = 64 * _MIB
_MOST_MEMORY_BYTES = 512 * _MIB

#: Shares of the budget. Memory has the largest: its passes are long, and first use of its pages counts too.
_MEMORY_SHARE, _CACHES_SHARE, _COMPUTE_SHARE, _DISPATCH_SHARE = 0.4, 0.3, 0.08, 0.06

#: ``enum ps_type``, by the name of a type of number.
_TYPES = {"fp32": 0, "int8": 1, "f16": 2}
_OK, _UNSUPPORTED = 0, 6


class ProbeSetup(ctypes.Structure):
    """``ps_probe_setup`` of ``native/include/perfsuite/probe.h``."""

    _fields_ = native_fields((ctypes.c_int32, "n_threads pinned"), (ctypes.c_int64, "budget_ms"))


class ProbeRate(ctypes.Structure):
    """``ps_rate``: bytes or FLOPs per second."""

    _fields_ = native_fields((ctypes.c_double, "best_per_s median_per_s"), (ctypes.c_int64, "repetitions"))


class ProbeBandwidth(ctypes.Structure):
    """``ps_bandwidth``."""

    _fields_ = native_fields((ProbeRate, "read copy triad"))


class ProbeLatency(ctypes.Structure):
    """``ps_latency``."""

    _fields_ = native_fields((ctypes.c_double, "best_ns median_ns"), (ctypes.c_int64, "repetitions"))


_FUNCTIONS = (
    ("ps_probe_bandwidth", ctypes.c_int, (ctypes.POINTER(ProbeSetup), ctypes.c_int64, ctypes.POINTER(ProbeBandwidth))),
    ("ps_probe_compute", ctypes.c_int, (ctypes.POINTER(ProbeSetup), ctypes.c_int, ctypes.POINTER(ProbeRate))),
    ("ps_probe_dispatch", ctypes.c_int, (ctypes.POINTER(ProbeSetup), ctypes.POINTER(ProbeLatency))),
    ("ps_status_text", ctypes.c_char_p, (ctypes.c_int,)),
)


def measure_ceilings(
    library: ctypes.CDLL,
    *,
    n_threads: int,
    budget_ms: int,
    working_sets_bytes: Sequence[int] | None = None,
    pinned: bool | None = None,
) -> Ceilings:
    """Measure the standard set of ceilings in about ``budget_ms``.

    A budget of 2500 ms gives repetitions enough on a laptop. Bandwidth is measured at `working_sets_bytes`, ascending:
    by default one for each cache level and one for memory. `pinned` gives each thread one processor of those that this
    process may use, by default where there are as many threads as processors: a scheduler that leaves two spinning
    threads on one of them would halve the ceilings. With fewer threads it chooses better than we: which processors are
    the fast ones.

    Raises `MeasurementError` where a probe refused its arguments or could not get its memory or threads.
    """
    probes = Probes(library, n_threads=n_threads, budget_ms=budget_ms, pinned=pinned)
    sets = tuple(working_sets_bytes or standard_working_sets(n_threads))
    return Ceilings(
        n_threads=n_threads,
        bandwidths=probes.bandwidths(sets),
        fp32_flops_per_s=_present(probes.flops_per_s("fp32")),
        int8_flops_per_s=_present(probes.flops_per_s("int8")),
        f16_flops_per_s=probes.flops_per_s("f16"),
        dispatch_ns=probes.dispatch_ns(),
    )


def median_read_bytes_per_s(library: ctypes.CDLL, *, n_threads: int, budget_ms: int, working_set_bytes: int) -> float:
    """Measure how fast a working set is read in the median repetition, within about ``budget_ms``."""
    probes = Probes(library, n_threads=n_threads, budget_ms=budget_ms, pinned=None)
    return float(probes.bandwidth_rates(working_set_bytes, 1.0).read.median_per_s)


def median_fp32_flops_per_s(library: ctypes.CDLL, *, n_threads: int, budget_ms: int) -> float:
    """Measure single-precision arithmetic in the median repetition, within about ``budget_ms``."""
    probes = Probes(library, n_threads=n_threads, budget_ms=budget_ms, pinned=None)
    rate = probes.compute_rate("fp32", 1.0)
    return _present(None if rate is None else float(rate.median_per_s))


def _present(rate: float | None) -> float:
    """Return what every processor has; a MeasurementError where the library denies it."""
    if rate is None:
        raise MeasurementError("probe of arithmetic: the library has none for this processor; build it again")
    return rate


def standard_working_sets(n_threads: int, cpu_root: Path = _CPU_ROOT) -> tuple[int, ...]:
    """Return one working set for each cache level, half of what ``n_threads`` threads have of it, and one for memory.

    Memory's is four times all of the last level, between 64 and 512 MiB and at most an eighth of the machine's.
    """
    memory_bytes = largest_working_set(n_threads, _MEMORY_OVER_CACHE, cpu_root)
    smaller = {size // 2 for size in _cache_sizes(n_threads, cpu_root).values() if size // 2 < memory_bytes}
    return (*sorted(smaller), memory_bytes)


def largest_working_set(n_threads: int, over_cache: int, cpu_root: Path = _CPU_ROOT) -> int:
    """Return so many times the last cache, between 64 and 512 MiB and at most an eighth of the machine's memory."""
    memory_bytes = over_cache * max(_cache_sizes(n_threads, cpu_root).values(), default=0)
    return min(max(memory_bytes, _LEAST_MEMORY_BYTES), _MOST_MEMORY_BYTES, _physical_memory_bytes() // 8)


class Probes:
    """The library's functions with their types, and one setup for all of them."""

    def __init__(self, library: ctypes.CDLL, *, n_threads: int, budget_ms: int, pinned: bool | None) -> None:
        self._library = library
        self._n_threads = n_threads
        self._budget_ms = budget_ms
        self._pinned = n_threads == len(os.sched_getaffinity(0)) if pinned is None else pinned
        declare_functions(library, *_FUNCTIONS)

    def bandwidths(self, working_sets_bytes: Sequence[int]) -> tuple[Bandwidth, ...]:
        """Measure each of the ascending working sets, the last as memory."""
        *caches, memory = working_sets_bytes
        share = _CACHES_SHARE / max(1, len(caches))
        return (*(self._bandwidth(size, share) for size in caches), self._bandwidth(memory, _MEMORY_SHARE))

    def _bandwidth(self, working_set_bytes: int, share: float) -> Bandwidth:
        out = self.bandwidth_rates(working_set_bytes, share)
        return Bandwidth(
            working_set_bytes=working_set_bytes,
            read_bytes_per_s=out.read.best_per_s,
            copy_bytes_per_s=out.copy.best_per_s,
            triad_bytes_per_s=out.triad.best_per_s,
        )

    def bandwidth_rates(self, working_set_bytes: int, share: float) -> ProbeBandwidth:
        """Measure a working set with a share of the budget."""
        out = ProbeBandwidth()
        status = self._library.ps_probe_bandwidth(self._setup(share), working_set_bytes, ctypes.byref(out))
        self._check(status, f"bandwidth of {working_set_bytes} bytes")
        return out

    def compute_rate(self, kind: str, share: float) -> ProbeRate | None:
        """Measure arithmetic on a type of number with a share of the budget; None where the processor has none."""
        out = ProbeRate()
        status = self._library.ps_probe_compute(self._setup(share), _TYPES[kind], ctypes.byref(out))
        if status == _UNSUPPORTED:
            return None
        self._check(status, f"arithmetic on {kind}")
        return out

    def flops_per_s(self, kind: str) -> float | None:
        """Measure the arithmetic peak on a type of number; None where the processor has no instruction for it."""
        rate = self.compute_rate(kind, _COMPUTE_SHARE)
        return None if rate is None else float(rate.best_per_s)

    def dispatch_ns(self) -> int:
        """Measure the median cost of an empty operator, at least 1 ns."""
        out = ProbeLatency()
        status = self._library.ps_probe_dispatch(self._setup(_DISPATCH_SHARE), ctypes.byref(out))
        self._check(status, "dispatch")
        return max(1, round(float(out.median_ns)))

    def _setup(self, share: float) -> ProbeSetup:
        budget_ms = max(1, int(self._budget_ms * share))
        return ProbeSetup(n_threads=self._n_threads, pinned=int(self._pinned), budget_ms=budget_ms)

    def _check(self, status: int, what: str) -> None:
        if status != _OK:
            text = self._library.ps_status_text(status).decode()
            raise MeasurementError(
                f"probe of {what} with {self._n_threads} threads: {text} (status {status}); try fewer threads"
            )


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


def measure_sentinels(probe_library: ctypes.CDLL, n_threads: int) -> Sentinels:
    """Run both sentinels on the threads that the cases have.

    Raises `MeasurementError` where a probe refused its arguments or could not get its memory or threads.
    """
    bytes_per_s = median_read_bytes_per_s(
        probe_library, n_threads=n_threads, budget_ms=_MEMORY_BUDGET_MS, working_set_bytes=MEMORY_BYTES
    )
    flops_per_s = median_fp32_flops_per_s(probe_library, n_threads=n_threads, budget_ms=_COMPUTE_BUDGET_MS)
    return Sentinels(
        memory_ns=max(1, round(MEMORY_BYTES * NS_PER_S / bytes_per_s)),
        compute_ns=max(1, round(COMPUTE_FLOPS * NS_PER_S / flops_per_s)),
    )
