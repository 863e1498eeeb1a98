"""Counters by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.counters import ARM_COUNTERS, CounterDefinition, find_counters, known_counters

HEADER = Path("/usr/include/linux/perf_event.h")
#: ``PERF_COUNT_SW_MAX`` and what perf_event_attr calls types.
HARDWARE, SOFTWARE, RAW = 0, 1, 4


def test_arm_has_counters_of_its_own() -> None:
    """The events that ProfInfer reads are known on Arm by the numbers of Arm's manual, and on no other machine."""
    refill, written = find_counters(["l3d_cache_refill", "mem_access_wr"], "aarch64")
    assert (refill.type, refill.config) == (RAW, 0x2A)
    assert (written.type, written.config) == (RAW, 0x67)
    with pytest.raises(MeasurementError, match="counter 'l3d_cache_refill' is not known here; known are page-faults"):
        find_counters(["l3d_cache_refill"], "x86_64")
    assert not set(ARM_COUNTERS) & set(known_counters("x86_64"))


def test_numbers_are_the_kernels() -> None:
    if not HEADER.exists():
        pytest.skip(f"{HEADER} is not there")
    values = dict(re.findall(r"(PERF_COUNT_\w+)\s*=\s*(\d+),", HEADER.read_text()))
    expected = {
        "cycles": (HARDWARE, "PERF_COUNT_HW_CPU_CYCLES"),
        "instructions": (HARDWARE, "PERF_COUNT_HW_INSTRUCTIONS"),
        "cache-references": (HARDWARE, "PERF_COUNT_HW_CACHE_REFERENCES"),
        "cache-misses": (HARDWARE, "PERF_COUNT_HW_CACHE_MISSES"),
        "stalled-cycles-frontend": (HARDWARE, "PERF_COUNT_HW_STALLED_CYCLES_FRONTEND"),
        "stalled-cycles-backend": (HARDWARE, "PERF_COUNT_HW_STALLED_CYCLES_BACKEND"),
        "page-faults-major": (SOFTWARE, "PERF_COUNT_SW_PAGE_FAULTS_MAJ"),
        "page-faults-minor": (SOFTWARE, "PERF_COUNT_SW_PAGE_FAULTS_MIN"),
        "context-switches": (SOFTWARE, "PERF_COUNT_SW_CONTEXT_SWITCHES"),
        "migrations": (SOFTWARE, "PERF_COUNT_SW_CPU_MIGRATIONS"),
    }
    own = {counter.name: counter for counter in known_counters("x86_64")}
    for name, (kind, constant) in expected.items():
        assert isinstance(own[name], CounterDefinition)
        assert (own[name].type, own[name].config) == (kind, int(values[constant]))
