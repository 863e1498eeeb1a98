"""The survey of a processor's ceilings: what is asked of the probes, in which order, and what becomes of it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, CPU, Ceiling, Resource
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.measure.ceiling_survey import N_ROUNDS, survey_cpu, thread_counts
from perfsuite.measure.launch import run_worker
from perfsuite.measure.native import load_probe_library
from perfsuite.measure.plan import SurveyPlan
from perfsuite.measure.probes import ProbeBandwidth, ProbeRate

KIB, MIB = 1024, 1024 * 1024


class Asked(NamedTuple):
    """One call of a probe."""

    n_threads: int
    what: int | str
    budget_ms: int


class FakeProbes:
    """Stands in for the probes: rates that grow by the round, and a note of what was asked."""

    asked: tuple[Asked, ...] = ()
    lacking: tuple[str, ...] = ()
    failing: str = ""

    def __init__(self, library: ctypes.CDLL, *, n_threads: int, budget_ms: int, pinned: bool | None) -> None:
        assert pinned is None
        self._n_threads = n_threads
        self._budget_ms = budget_ms

    def bandwidth_rates(self, working_set_bytes: int, share: float) -> ProbeBandwidth:
        """Return reading, copying and adding one to three times as fast."""
        per_s = self._rate(working_set_bytes, share)
        return ProbeBandwidth(*(ProbeRate(best_per_s=per_s * factor) for factor in (1, 2, 3)))

    def compute_rate(self, kind: str, share: float) -> ProbeRate | None:
        """Return a rate, or None for what the processor lacks."""
        if kind == self.failing:
            raise MeasurementError("no luck")
        per_s = self._rate(kind, share)
        return None if kind in self.lacking else ProbeRate(best_per_s=per_s)

    def _rate(self, what: int | str, share: float) -> float:
        assert share == 1.0
        type(self).asked += (Asked(self._n_threads, what, self._budget_ms),)
        turn = sum((each.n_threads, each.what) == (self._n_threads, what) for each in self.asked)
        return 10.0 * self._n_threads + (1.0, 5.0, 2.0, 3.0, 4.0)[(turn - 1) % N_ROUNDS]


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> type[FakeProbes]:
    """Replace the probes, and give the machine a memory of 4 MiB."""
    monkeypatch.setattr(FakeProbes, "asked", ())
    monkeypatch.setattr("perfsuite.measure.ceiling_survey.Probes", FakeProbes)
    monkeypatch.setattr("perfsuite.measure.ceiling_survey.largest_working_set", lambda n_threads, over: 4 * MIB)
    return FakeProbes


def surveyed(n_threads: int = 2, others: tuple[int, ...] = (), budget_ms: int = 10_000) -> list[Ceiling]:
    """Survey with whatever stands in for the probes."""
    return survey_cpu(cast(ctypes.CDLL, None), n_threads=n_threads, thread_counts=others, budget_ms=budget_ms)


def working_sets(found: list[Ceiling], n_threads: int) -> list[int]:
    """Return the working sets of one number of threads in turn, each once."""
    sets = [each.working_set_bytes for each in found if each.n_threads == n_threads and each.working_set_bytes]
    return list(dict.fromkeys(sets))


@pytest.mark.usefixtures("probes")
def test_the_ladder_is_fine_for_the_runs_own_threads_and_coarse_for_others() -> None:
    """From 32 KiB a thread it doubles or quadruples up to memory, which is measured in any case."""
    found = surveyed(2, (1, 2, 4))
    assert working_sets(found, 2) == [64 * KIB << power for power in range(7)]
    assert working_sets(found, 1) == [32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB, 4 * MIB]
    assert working_sets(found, 4) == [128 * KIB, 512 * KIB, 2 * MIB, 4 * MIB]


@pytest.mark.usefixtures("probes")
def test_every_use_and_every_type_is_a_ceiling_once() -> None:
    """Each working set has its read, copy and triad, and each number of threads its three types of number."""
    found = surveyed(2, (1,))
    keys = [(each.n_threads, each.resource, each.kind, each.working_set_bytes) for each in found]
    expected = [
        *(
            (n, Resource.BANDWIDTH, kind, held)
            for n in (2, 1)
            for held in working_sets(found, n)
            for kind in BANDWIDTH_KINDS
        ),
        *((n, Resource.COMPUTE, kind, None) for n in (2, 1) for kind in COMPUTE_KINDS),
    ]
    assert sorted(map(str, keys)) == sorted(map(str, expected))
    assert {each.processor for each in found} == {CPU}


@pytest.mark.usefixtures("probes")
def test_rounds_become_a_best_and_a_median() -> None:
    """Of rounds of 21, 25, 22, 23 and 24 the best is 25 and the median 23; copying is twice that."""
    found = {(each.kind, each.working_set_bytes): each.rate for each in surveyed(2)}
    for key, factor in ((("fp32", None), 1), (("read", 4 * MIB), 1), (("copy", 4 * MIB), 2), (("triad", 64 * KIB), 3)):
        rate = found[key]
        assert rate is not None
        assert (rate.best_per_s, rate.median_per_s, rate.n_rounds) == (25.0 * factor, 23.0 * factor, N_ROUNDS)


def test_rounds_go_over_everything(probes: type[FakeProbes]) -> None:
    """Nothing is measured twice before everything was measured once, so that a slow second hits all."""
    surveyed(2, (1,))
    whats = [(each.n_threads, each.what) for each in probes.asked]
    n_slots = len(set(whats))
    rounds = [whats[start : start + n_slots] for start in range(0, len(whats), n_slots)]
    assert len(rounds) == N_ROUNDS
    assert all(each == rounds[0] for each in rounds)
    assert len(set(rounds[0])) == n_slots


def test_the_budget_is_shared_and_memory_has_most(probes: type[FakeProbes], monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls together take about the budget; memory has six parts, arithmetic two and a rung of the ladder one.

    However small it is, no probe is asked for less than 3 ms; one that fails is not taken for something missing.
    """
    surveyed(2, (1,), budget_ms=20_000)
    assert sum(each.budget_ms for each in probes.asked) == pytest.approx(20_000, rel=0.02)
    of = {each.what: each.budget_ms for each in probes.asked if each.n_threads == 2}
    assert of[4 * MIB] / of[64 * KIB] == pytest.approx(6, rel=0.02)
    assert of["int8"] / of[64 * KIB] == pytest.approx(2, rel=0.02)
    monkeypatch.setattr(probes, "asked", ())
    surveyed(2, budget_ms=1)
    assert {each.budget_ms for each in probes.asked} == {3}
    monkeypatch.setattr(probes, "failing", "fp32")
    with pytest.raises(MeasurementError, match="no luck"):
        surveyed(2)


def test_what_the_processor_lacks_is_told(probes: type[FakeProbes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A type of number without an instruction is a ceiling without a rate that says of which type."""
    monkeypatch.setattr(probes, "lacking", ("f16", "int8"))
    found = {each.kind: each for each in surveyed(2) if each.resource is Resource.COMPUTE}
    for kind in ("f16", "int8"):
        assert found[kind].rate is None
        assert found[kind].missing == f"this processor has no multiply-add of {kind} that the probe knows"
    assert found["fp32"].rate is not None
    assert Survey(ceilings=tuple(surveyed(2))).of(CPU, 2).f16_flops_per_s is None


@pytest.mark.usefixtures("probes")
def test_a_survey_can_be_stored_and_read() -> None:
    """What is surveyed comes back from JSON, and has a roof for each number of threads."""
    found = surveyed(2, (1, 2))
    assert [Ceiling.from_plain(each.to_plain()) for each in found] == found
    survey = Survey(ceilings=tuple(found))
    assert survey.processors() == ((CPU, 2), (CPU, 1))
    assert survey.of(CPU, 1).levels[-1] == (4 * MIB, 45.0)


@given(st.integers(1, 2000))
def test_threads_double_up_to_all_processors(n_processors: int) -> None:
    """Powers of two as far as there are processors, and all of them."""
    powers = {2**power for power in range(11) if 2**power <= n_processors}
    assert thread_counts(n_processors) == tuple(sorted(powers | {n_processors}))


def test_the_real_probes_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine every bandwidth and the arithmetic on floats and integers has a rate, best above median."""
    monkeypatch.setattr("perfsuite.measure.ceiling_survey.largest_working_set", lambda n_threads, over: 256 * KIB)
    library = load_probe_library(tmp_path)
    found = survey_cpu(library, n_threads=1, thread_counts=(1,), budget_ms=100)
    assert {each.kind for each in found if each.rate is None} <= {"f16"}
    ceilings = Survey(ceilings=tuple(found)).of(CPU, 1)
    assert [held for held, _ in ceilings.levels] == [32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB]
    assert all(Ceiling.from_plain(each.to_plain()) == each for each in found)


def test_a_worker_surveys(tmp_path: Path) -> None:
    """A fresh process sends ceilings that can be read, up to memory, and the competition that it had."""
    plan = SurveyPlan(cache_dir=str(tmp_path), n_threads=1, thread_counts=(1,), budget_ms=300)
    payload = run_worker(plan)
    found = Survey(ceilings=tuple(Ceiling.from_plain(each) for each in payload["ceilings"]))
    ceilings = found.of(CPU, 1)
    assert ceilings.levels[-1][0] >= 32 * MIB
    assert ceilings.memory_roof.ridge_point > 0
    assert payload["contention"]["wall_ns"] > 0
