"""Cases of sweeps in whole runs of the plugin, with workers replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.roofline_run import RooflineRun, read_roofline
from perfsuite.experiments.roofline.checks import BOUNDED
from perfsuite.measure.plan import LlamaPlan, ProbePlan
from perfsuite.verdict.baseline import read_baselines
from tests.fake_device import FakeDevice, HostRuns

#: What each run has besides.
USUAL = ("--threads=2", "-o", "perf_session_spread=0.01")

MODEL = "smollm2-135m-l2-q8_0"
STORE = Path("baselines/host/roofline.json")


def _roofline(runs: HostRuns) -> RooflineRun:
    return read_roofline(runs.pytester.path / "run" / "roofline.json")


def _sweep_plans(device: FakeDevice) -> list[LlamaPlan]:
    return [plan for plan in device.plans if isinstance(plan, LlamaPlan) and plan.recorder == "none"]


def _n_plans(device: FakeDevice, name: str) -> int:
    return sum(type(plan).__name__ == name for plan in device.plans)


def _n_surveys(device: FakeDevice) -> int:
    return sum(isinstance(plan, ProbePlan) and bool(plan.thread_counts) for plan in device.plans)


def _collected(result: pytest.RunResult) -> list[str]:
    return [line.partition("[")[2].rstrip("]") for line in result.outlines if "::test_roofline_" in line]


def test_cases_are_listed_and_nothing_is_run(runs: HostRuns) -> None:
    """Each workload has its prompt, its steps and both together, with their statements, before anything is measured."""
    result = runs("--perf-sweep=precision,depth", "--collect-only", "-q", "-k", "test_roofline")
    ids = _collected(result)
    silo = "roofline/precision/smollm2-135m-l2-{}/silo/t2"
    kinds = ("prefill", "decode", "whole_run")
    cases = [f"{silo.format(each)}/{kind}" for each in ("f16", "q8_0", "q4_k_m") for kind in kinds]
    cases += [
        f"roofline/depth/smollm2-135m-l{n}-q8_0/p128-g24/t2/{kind}" for n in (2, 4, 8, 16, 32, 64) for kind in kinds
    ]
    assert [each for each in ids if each.rpartition("/")[2] in kinds] == cases
    assert [each for each in ids if each.endswith("/decode/regime")] == [
        f"{each}/regime" for each in cases if each.endswith("/decode")
    ]
    assert [each for each in ids if "/" not in each] == ["precision-order", "depth-rises"]
    assert [each for each in ids if each.startswith("bound/")] == [*BOUNDED]
    assert runs.device.plans == runs.device.remembered == []
    assert not (runs.pytester.path / "run" / "run.json").exists()


def test_a_sweep_is_measured_and_kept(runs: HostRuns) -> None:
    """All cases are new, all statements hold or are undecided, and the run is stored beside the others' file."""
    result = runs("--perf-sweep=precision", "-k", "test_roofline", "-rs")
    assert result.ret == 0
    outcomes = runs.cases()
    assert len(outcomes) == 9
    assert runs.outcomes() == {"new"}
    run = _roofline(runs)
    assert [row.case for row in run.rows] == [*outcomes]
    assert {len(row.samples_ns) for row in run.rows} == {5}
    assert {rate.n_threads for rate in run.bounds} == {1, 2}
    assert runs.plain()["fingerprint"]["roofline"]["backend"] == "cpu"
    result.stdout.fnmatch_lines(["*undecided: no other program is faster than the ceiling*: no independent program*"])


def test_what_is_not_selected_is_not_measured(runs: HostRuns) -> None:
    """Of two sweeps the one that -k names is measured; without any case of a sweep no ceiling is surveyed."""
    runs("--perf-sweep=precision,scenario", "-k", "precision")
    assert {plan.gguf_path.rpartition("-")[2] for plan in _sweep_plans(runs.device)} == {
        *("f16.gguf", "q8_0.gguf", "q4_k_m.gguf")
    }
    assert {row.sweep for row in _roofline(runs).rows} == {"precision"}
    assert runs.device.remembered == []
    assert _n_surveys(runs.device) == 2
    runs.device.plans.clear()
    runs("--perf-sweep=precision", "-k", "test_phase")
    assert _sweep_plans(runs.device) == []
    assert _n_surveys(runs.device) == 0


def test_a_statement_needs_its_workloads_alone(runs: HostRuns) -> None:
    """All precisions for their order, one depth for its regime; ceilings need no workload: the first is enough."""
    result = runs("--perf-sweep=precision,depth", "-k", "precision-order")
    assert result.ret == 0
    assert _n_plans(runs.device, "IndependentPlan") == 0
    result.assert_outcomes(passed=1, deselected=result.parseoutcomes()["deselected"])
    assert {row.setting for row in _roofline(runs).rows} == {"f16", "q8_0", "q4_k_m"}
    runs("--perf-sweep=depth", "-k", "l4-q8_0 and decode and regime")
    assert {row.setting for row in _roofline(runs).rows} == {"4"}
    result = runs("--perf-sweep=depth,precision", "-k", "bound")
    assert result.ret == 0
    assert {(row.sweep, row.setting) for row in _roofline(runs).rows} == {("depth", "2")}
    assert result.parseoutcomes()["passed"] == 1
    assert result.parseoutcomes()["skipped"] == len(BOUNDED) - 1


def test_a_ceiling_below_another_program_fails(runs: HostRuns) -> None:
    runs.device.numpy_bytes_per_s = 6e10
    result = runs("--perf-sweep=precision", "-k", "test_roofline")
    assert (result.ret, result.parseoutcomes()["failed"]) == (1, 1)
    told = "*not so: no other program is faster than the ceiling*: 50.0 GB/s against numpy's 60*"
    result.stdout.fnmatch_lines([told])


def test_points_above_their_ceiling_are_impossible_and_two_processes_too_few(runs: HostRuns) -> None:
    """Fewer than three samples say nothing of their spread: the cases are invalid."""
    narrow = ("--perf-sweep=precision", "-k", "test_roofline_point")
    runs(*narrow, "--perf-replicates=2")
    assert runs.outcomes() == {"invalid"}
    runs.device.slowdown[""] = 0.001
    result = runs(*narrow)
    assert (result.ret, result.parseoutcomes()["failed"]) == (1, 9)
    assert runs.outcomes() == {"impossible"}
    result.stdout.fnmatch_lines(["*is below the floor of*"])


@pytest.mark.parametrize(("memory_ratio", "n_failed"), [(1.04, 0), (1.2, 4)])
def test_memory_beyond_the_prediction_fails(
    runs: HostRuns, memory_ratio: float, n_failed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perfsuite.experiments.roofline.checks.MEMORY_TOLERANCE_BYTES", 0)
    runs.device.memory_ratio = memory_ratio
    result = runs("--perf-sweep=scenario", "-k", "memory")
    assert result.parseoutcomes().get("failed", 0) == n_failed
    assert runs.device.remembered == [f"{MODEL}/{name}" for name in ("siso", "liso", "silo", "lilo")]


def test_a_sweep_has_baselines(runs: HostRuns) -> None:
    """Recorded, measured alike, and measured slower: baselines are in a file of their own beside the others."""
    narrow = ("--perf-sweep=precision", "-k", "test_roofline_point")
    assert runs(*narrow, "--baseline=record").ret == 0
    (entry,) = read_baselines(STORE).entries
    assert set(entry.anchor.cases_ns) == set(runs.cases())
    assert runs(*narrow).ret == 0
    assert runs.outcomes() == {"pass"}
    runs.device.slowdown[""] = 1.5
    assert runs(*narrow).ret == 1
    assert runs.outcomes() == {"regressed"}


def test_statements_alone_record_nothing(runs: HostRuns) -> None:
    """A statement is no time: with --baseline=record no empty session is written, and the run says so and fails."""
    result = runs("--perf-sweep=precision", "-k", "precision-order", "--baseline=record")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*nothing was recorded: no case that has baselines was measured"])
    assert not STORE.exists() or not read_baselines(STORE).entries


def test_ceilings_that_fail_end_the_sweeps_alone(runs: HostRuns) -> None:
    """Cases are invalid, statements are skipped with the reason, other groups are measured, and the run fails."""
    runs.device.survey_error = MeasurementError("probe: no memory")
    result = runs("--perf-sweep=precision", "-k", "test_phase or test_roofline", "-rs")
    assert result.ret == 1
    for group, outcome in (("roofline/", "invalid"), ("phase/", "new")):
        assert {each["outcome"] for name, each in runs.cases().items() if name.startswith(group)} == {outcome}
    result.stdout.fnmatch_lines(["*undecided: the sweeps are measured: probe: no memory*"])
    result.stdout.fnmatch_lines(["perfsuite: error: probe: no memory"])


@pytest.mark.long
def test_all_sweeps_are_measured(runs: HostRuns) -> None:
    """Every case of every sweep has its row and its samples, and each statement holds but those on absent programs."""
    result = runs("--perf-sweep=depth,all,depth", "-k", "test_roofline", "--perf-replicates=3")
    assert result.ret == 0
    assert runs.outcomes() == {"new"}
    assert [row.case for row in _roofline(runs).rows] == list(runs.cases())
    assert list(dict.fromkeys(each.split("/")[1] for each in runs.cases())) == [
        *("scenario", "length", "depth", "precision", "moe", "attention", "kv", "flash", "threads")
    ]
    assert result.parseoutcomes()["skipped"] == len(BOUNDED) - 1
