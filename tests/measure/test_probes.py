"""Facts about the probes' Python side: what is asked of the library, and what becomes of its answers."""

from __future__ import annotations

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, cast

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.probes import (
    COMPUTE_FLOPS,
    MEMORY_BYTES,
    SENTINELS,
    ProbeBandwidth,
    ProbeLatency,
    ProbeRate,
    Probes,
    ProbeSetup,
    Sentinels,
    largest_working_set,
    measure_ceilings,
    measure_sentinels,
    standard_working_sets,
)

KIB, MIB = 1024, 1024 * 1024


class FakeLibrary:
    """Stands in for ``libperfsuite_probe``: C functions that give fixed answers and note what they were asked."""

    def __init__(self, *, f16_status: int = 0, failing: str = "", unsupported: int | None = None) -> None:
        self.asked: list[tuple[str, int, int, int, int]] = []
        self._f16_status = f16_status
        self._failing = failing
        self._unsupported = unsupported
        setup = POINTER(ProbeSetup)
        self.ps_probe_bandwidth = CFUNCTYPE(c_int, setup, c_int64, POINTER(ProbeBandwidth))(self._bandwidth)
        self.ps_probe_compute = CFUNCTYPE(c_int, setup, c_int, POINTER(ProbeRate))(self._compute)
        self.ps_probe_dispatch = CFUNCTYPE(c_int, setup, POINTER(ProbeLatency))(self._dispatch)
        self._text = ctypes.create_string_buffer(b"no luck")
        self.ps_status_text = CFUNCTYPE(c_void_p, c_int)(lambda status: ctypes.addressof(self._text))

    @property
    def budgets_ms(self) -> list[int]:
        """The budgets that were given."""
        return [asked[4] for asked in self.asked]

    def _answer(self, name: str, setup: Any, argument: int) -> int:
        plan = setup.contents
        self.asked.append((name, argument, plan.n_threads, plan.pinned, plan.budget_ms))
        return 3 if name == self._failing else 0

    def _bandwidth(self, setup: Any, working_set_bytes: int, out: Any) -> int:
        rates = out.contents
        rates.read.best_per_s, rates.read.median_per_s = 1e15 / working_set_bytes, 64e9
        rates.copy.best_per_s = 2e15 / working_set_bytes
        rates.triad.best_per_s = 3e15 / working_set_bytes
        return self._answer("bandwidth", setup, working_set_bytes)

    def _compute(self, setup: Any, element: int, out: Any) -> int:
        out.contents.best_per_s, out.contents.median_per_s = (4e11, 1.6e12, 8e11)[element], 1e11
        status = 6 if element == self._unsupported else self._answer("compute", setup, element)
        return self._f16_status if element == 2 else status

    def _dispatch(self, setup: Any, out: Any) -> int:
        out.contents.best_ns = 0.2
        out.contents.median_ns = 0.4
        return self._answer("dispatch", setup, 0)


def measured(library: FakeLibrary, **arguments: Any) -> Any:
    """Measure with the fake at two working sets."""
    values = {"n_threads": 3, "budget_ms": 1000, "working_sets_bytes": (1000, 4000), **arguments}
    return measure_ceilings(cast(ctypes.CDLL, library), **values)


def test_answers_become_ceilings() -> None:
    """The best rates become ceilings, and the median latency the dispatch cost, of 1 ns at least."""
    assert measured(FakeLibrary()).to_plain() == {
        "n_threads": 3,
        "bandwidths": [
            {"working_set_bytes": 1000, "read_bytes_per_s": 1e12, "copy_bytes_per_s": 2e12, "triad_bytes_per_s": 3e12},
            {
                "working_set_bytes": 4000,
                "read_bytes_per_s": 2.5e11,
                "copy_bytes_per_s": 5e11,
                "triad_bytes_per_s": 7.5e11,
            },
        ],
        "fp32_flops_per_s": 4e11,
        "int8_flops_per_s": 1.6e12,
        "f16_flops_per_s": 8e11,
        "dispatch_ns": 1,
    }


def test_an_unsupported_f16_is_none() -> None:
    """A processor without 16-bit float arithmetic has no ceiling for it; a failure is not taken for that."""
    library = FakeLibrary(f16_status=6)
    assert measured(library).f16_flops_per_s is None
    assert Probes(cast(ctypes.CDLL, library), n_threads=1, budget_ms=10, pinned=None).compute_rate("f16", 1.0) is None
    with pytest.raises(MeasurementError, match="arithmetic on f16"):
        measured(FakeLibrary(f16_status=2))


@pytest.mark.parametrize("budget_ms", [100, 2500])
def test_shares_of_the_budget_do_not_exceed_it(budget_ms: int) -> None:
    """All probes together are given no more than the budget and most of it, but each a millisecond at least."""
    library, hurried = FakeLibrary(), FakeLibrary()
    measured(library, budget_ms=budget_ms)
    assert 0.9 * budget_ms < sum(library.budgets_ms) <= budget_ms
    measured(hurried, budget_ms=1)
    assert hurried.budgets_ms == [1] * len(library.asked)


@pytest.mark.parametrize(
    ("n_threads", "pinned", "expected"), [(3, None, 1), (2, None, 0), (4, None, 0), (2, True, 1), (3, False, 0)]
)
def test_threads_are_pinned_when_they_fill_the_processors(
    n_threads: int, pinned: bool | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless told, threads are pinned where each processor has exactly one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5})
    library = FakeLibrary()
    measured(library, n_threads=n_threads, pinned=pinned)
    assert {(asked[2], asked[3]) for asked in library.asked} == {(n_threads, expected)}


@pytest.mark.parametrize(
    ("failing", "where"),
    [("bandwidth", "bandwidth of 1000 bytes"), ("compute", "arithmetic on fp32"), ("dispatch", "dispatch")],
)
def test_a_probe_that_fails_is_named(failing: str, where: str) -> None:
    """A failure says which probe failed, on how many threads, and in the library's words why."""
    with pytest.raises(MeasurementError, match=rf"probe of {where} with 3 threads: no luck \(status 3\)"):
        measured(FakeLibrary(failing=failing))


@pytest.mark.parametrize("missing", [0, 1])
def test_what_every_processor_has_cannot_be_missing(missing: int) -> None:
    """A library that denies 32-bit floats or 8-bit integers is refused, for nothing could be forecast without."""
    library = FakeLibrary(unsupported=missing)
    with pytest.raises(MeasurementError, match="the library has none for this processor; build it again"):
        measured(library)


@pytest.mark.parametrize(("kind", "expected"), [("fp32", 4e11), ("int8", 1.6e12), ("f16", 8e11)])
def test_a_type_of_number_is_asked_for_by_its_name(kind: str, expected: float) -> None:
    """Each name reaches the probe as the number of its type, with the whole budget or a share of it."""
    library = FakeLibrary()
    probes = Probes(cast(ctypes.CDLL, library), n_threads=3, budget_ms=1000, pinned=False)
    rate = probes.compute_rate(kind, 0.5)
    assert rate is not None
    assert rate.best_per_s == expected
    assert probes.flops_per_s(kind) == expected
    number = {"fp32": 0, "int8": 1, "f16": 2}[kind]
    assert library.asked == [("compute", number, 3, 0, 500), ("compute", number, 3, 0, 80)]


def cache(root: Path, cpu: int, index: int, **fields: str) -> None:
    """Write one cache of one processor as sysfs does."""
    folder = root / f"cpu{cpu}" / "cache" / f"index{index}"
    folder.mkdir(parents=True)
    for name, text in fields.items():
        (folder / name).write_text(text + "\n")


def write_caches(root: Path, *, n_cpus: int, l3: bool = True) -> None:
    """Write processors with 32 KiB of L1 data and instruction cache, 1 MiB of L2 each, and 8 MiB of L3 per pair."""
    for cpu in range(n_cpus):
        pair = f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"
        cache(root, cpu, 0, level="1", type="Data", size="32K", shared_cpu_list=str(cpu))
        cache(root, cpu, 1, level="1", type="Instruction", size="64K", shared_cpu_list=str(cpu))
        cache(root, cpu, 2, level="2", type="Unified", size="1024K", shared_cpu_list=str(cpu))
        if l3:
            cache(root, cpu, 3, level="3", type="Unified", size="8M", shared_cpu_list=pair)


@pytest.fixture
def large_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the machine 64 GiB."""
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1 << 24, "SC_PAGE_SIZE": 4096}.__getitem__)


@pytest.mark.usefixtures("large_memory")
@pytest.mark.parametrize(
    ("n_threads", "expected"),
    [
        (1, (16 * KIB, 512 * KIB, 4 * MIB, 64 * MIB)),
        (2, (32 * KIB, 1 * MIB, 8 * MIB, 64 * MIB)),
        (8, (64 * KIB, 2 * MIB, 8 * MIB, 64 * MIB)),
    ],
)
def test_working_sets_are_half_of_what_the_threads_have_of_each_cache(
    tmp_path: Path, n_threads: int, expected: tuple[int, ...]
) -> None:
    """Private caches count once a thread, shared ones once, instruction caches and missing levels not at all."""
    write_caches(tmp_path / "four", n_cpus=4)
    assert standard_working_sets(n_threads, tmp_path / "four") == expected
    write_caches(tmp_path / "without", n_cpus=4, l3=False)
    assert standard_working_sets(n_threads, tmp_path / "without") == (*expected[:2], 64 * MIB)


@pytest.mark.usefixtures("large_memory")
def test_memorys_working_set_grows_with_the_last_cache_up_to_a_bound(tmp_path: Path) -> None:
    """It is four times the last cache, 512 MiB at most, and all that is measured where a board lists no caches."""
    write_caches(tmp_path / "some", n_cpus=8)
    write_caches(tmp_path / "many", n_cpus=64)
    cache(tmp_path / "odd", 0, 0, level="1", type="Data", size="unknown", shared_cpu_list="0")
    cache(tmp_path / "odd", 0, 1, level="2", type="Unified")
    assert standard_working_sets(8, tmp_path / "some")[-1] == 4 * 4 * 8 * MIB
    assert standard_working_sets(64, tmp_path / "many")[-1] == 512 * MIB
    assert standard_working_sets(4, tmp_path / "odd") == (64 * MIB,)


@pytest.mark.usefixtures("large_memory")
@pytest.mark.parametrize(("over_cache", "expected"), [(1, 64 * MIB), (8, 64 * MIB), (16, 128 * MIB), (999, 512 * MIB)])
def test_the_largest_working_set_is_so_many_times_the_last_cache(
    tmp_path: Path, over_cache: int, expected: int
) -> None:
    """Of 8 MiB of last cache it is 16 times 128 MiB, at least 64 and at most 512."""
    write_caches(tmp_path, n_cpus=2)
    assert largest_working_set(1, over_cache, tmp_path) == expected


def test_a_small_machine_gives_an_eighth_of_its_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 256 MiB memory is measured over 32 MiB, and caches of that size and more not at all."""
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1 << 16, "SC_PAGE_SIZE": 4096}.__getitem__)
    cache(tmp_path, 0, 0, level="3", type="Unified", size="64M", shared_cpu_list="0")
    assert standard_working_sets(1, tmp_path) == (32 * MIB,)


def test_sentinels_are_times_of_fixed_work() -> None:
    """The median rates of reading and of single-precision arithmetic, both within 200 ms on the cases' threads."""
    library = FakeLibrary()
    found = measure_sentinels(cast(ctypes.CDLL, library), 3)
    assert found == Sentinels(memory_ns=round(MEMORY_BYTES / 64), compute_ns=COMPUTE_FLOPS // 100)
    assert found.times_ns == {"memory": found.memory_ns, "compute": found.compute_ns}
    assert tuple(found.times_ns) == SENTINELS
    assert Sentinels.from_plain(found.to_plain()) == found
    assert [asked[:3] for asked in library.asked] == [("bandwidth", MEMORY_BYTES, 3), ("compute", 0, 3)]
    assert sum(library.budgets_ms) < 200
    for failing in ("bandwidth", "compute"):
        with pytest.raises(MeasurementError, match="no luck"):
            measure_sentinels(cast(ctypes.CDLL, FakeLibrary(failing=failing)), 3)
