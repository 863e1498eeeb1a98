"""The sentinels: two fixed pieces of work beside the cases, one bound by memory and one by arithmetic.

A sentinel that takes longer than it did in a stored session shows that the machine changed, not the engine. Both come
from the probes of the ceilings, by the median repetition: a sentinel says how the machine is, not what it could do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfsuite.measure.probes import median_fp32_flops_per_s, median_read_bytes_per_s
from perfsuite.units import NS_PER_S

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
