"""Facts about the probes' Python side: what is asked of the library, and what becomes of its answers."""

from __future__ import annotations

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import Ceiling, Survey
from perfsuite.expectation.roofline.point import memory_roof
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import ProbePlan
from perfsuite.measure.probes import (
    COMPUTE_FLOPS,
    MEMORY_BYTES,
    MEMORY_OVER_CACHE,
    SENTINELS,
    ProbeBandwidth,
    ProbeRate,
    ProbeSetup,
    Sentinels,
    largest_working_set,
    measure_sentinels,
    thread_counts,
)
from perfsuite.records.ceilings import Ceilings

KIB, MIB = 1024, 1024 * 1024


class FakeLibrary:
    """Stands in for ``libperfsuite_probe``: C functions that give fixed answers and note what they were asked."""

    def __init__(self, *, failing: str = "") -> None:
        self.asked: list[tuple[str, int, int, int, int]] = []
        self._failing = failing
        setup = POINTER(ProbeSetup)
        self.ps_probe_bandwidth = CFUNCTYPE(c_int, setup, c_int64, POINTER(ProbeBandwidth))(self._bandwidth)
        self.ps_probe_compute = CFUNCTYPE(c_int, setup, c_int, POINTER(ProbeRate))(self._compute)
        self._text = ctypes.create_string_buffer(b"no luck")
        self.ps_status_text = CFUNCTYPE(c_void_p, c_int)(lambda status: ctypes.addressof(self._text))

    def _answer(self, name: str, setup: Any, argument: int) -> int:
        plan = setup.contents
        self.asked.append((name, argument, plan.n_threads, plan.pinned, plan.budget_ms))
        return 3 if name == self._failing else 0

    def _bandwidth(self, setup: Any, working_set_bytes: int, out: Any) -> int:
        out.contents.read.median_per_s = 64e9
        return self._answer("bandwidth", setup, working_set_bytes)

    def _compute(self, setup: Any, element: int, out: Any) -> int:
        out.contents.median_per_s = 1e11
        return self._answer("compute", setup, element)


def cache(root: Path, cpu: int, index: int, **fields: str) -> None:
    folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in fields.items():
        (folder / name).write_text(text + "\n")


@pytest.fixture
def large_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1 << 24, "SC_PAGE_SIZE": 4096}.__getitem__)


@pytest.mark.usefixtures("large_memory")
@pytest.mark.parametrize(("over_cache", "expected"), [(1, 64 * MIB), (8, 64 * MIB), (16, 128 * MIB), (999, 512 * MIB)])
def test_the_largest_working_set_is_so_many_times_the_last_cache(
    tmp_path: Path, over_cache: int, expected: int
) -> None:
    for cpu in ("0", "1"):
        cache(tmp_path, int(cpu), 0, level="1", type="Data", size="32K", shared_cpu_list=cpu)
        cache(tmp_path, int(cpu), 1, level="2", type="Unified", size="1024K", shared_cpu_list=cpu)
        cache(tmp_path, int(cpu), 2, level="3", type="Unified", size="8M", shared_cpu_list="0-1")
    assert largest_working_set(1, over_cache, tmp_path) == expected


def test_a_small_machine_gives_an_eighth_of_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 256 MiB memory is measured over 32 MiB; where no caches are listed, or none that can be read, over 64."""
    cache(tmp_path, 0, 0, level="1", type="Data", size="unknown", shared_cpu_list="0")
    cache(tmp_path, 0, 1, level="2", type="Unified")
    assert largest_working_set(1, 4, tmp_path) == 64 * MIB
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1 << 16, "SC_PAGE_SIZE": 4096}.__getitem__)
    cache(tmp_path, 0, 2, level="3", type="Unified", size="64M", shared_cpu_list="0")
    assert largest_working_set(1, 4, tmp_path) == 32 * MIB


@given(st.integers(1, 2000))
def test_threads_double_up_to_all_processors(n_processors: int) -> None:
    powers = {2**power for power in range(11) if 2**power <= n_processors}
    assert thread_counts(n_processors) == tuple(sorted(powers | {n_processors}))


def test_a_worker_measures_ceilings(tmp_path: Path) -> None:
    payload = run_worker(ProbePlan(cache_dir=str(tmp_path), n_threads=1, budget_ms=100))
    ceilings = Ceilings.from_plain(payload["ceilings"])
    sizes = [level.working_set_bytes for level in ceilings.bandwidths]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == largest_working_set(1, 4)
    rates = [(each.read_bytes_per_s, each.copy_bytes_per_s, each.triad_bytes_per_s) for each in ceilings.bandwidths]
    assert min(*map(min, rates), ceilings.fp32_flops_per_s, ceilings.int8_flops_per_s, ceilings.dispatch_ns) > 0
    assert payload["contention"]["wall_ns"] > 0


@pytest.mark.long
def test_a_worker_surveys(tmp_path: Path) -> None:
    payload = run_worker(ProbePlan(cache_dir=str(tmp_path), n_threads=1, thread_counts=(1,), budget_ms=300))
    found = Survey(ceilings=tuple(Ceiling.from_plain(each) for each in payload["ceilings"]))
    assert {each.kind for each in found.ceilings if each.rate is None} <= {"f16"}
    ceilings = found.of(1)
    assert ceilings.levels[0][0] == 32 * KIB
    assert ceilings.levels[-1][0] == largest_working_set(1, MEMORY_OVER_CACHE)
    assert memory_roof(ceilings).ridge_point > 0
    assert payload["contention"]["wall_ns"] > 0


@pytest.mark.parametrize(("n_threads", "is_pinned"), [(3, True), (2, False), (4, False)])
def test_sentinels_are_times_of_fixed_work(n_threads: int, is_pinned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The median rates of reading and of single-precision arithmetic, both within 200 ms on the cases' threads.

    Threads are pinned when they fill the processors.
    """
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5})
    library = FakeLibrary()
    found = measure_sentinels(cast(ctypes.CDLL, library), n_threads)
    assert found == Sentinels(memory_ns=round(MEMORY_BYTES / 64), compute_ns=COMPUTE_FLOPS // 100)
    assert found.times_ns == {"memory": found.memory_ns, "compute": found.compute_ns}
    assert tuple(found.times_ns) == SENTINELS
    settings = (n_threads, is_pinned)
    assert [asked[:4] for asked in library.asked] == [("bandwidth", MEMORY_BYTES, *settings), ("compute", 0, *settings)]
    assert sum(asked[4] for asked in library.asked) < 200
    for failing in ("bandwidth", "compute"):
        with pytest.raises(MeasurementError, match="no luck"):
            measure_sentinels(cast(ctypes.CDLL, FakeLibrary(failing=failing)), n_threads)
