"""Cases of sweeps in whole runs of the plugin, with workers replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.expectation.roofline.roofline_run import RooflineRun
from perfsuite.measure.plan import LlamaPlan
from perfsuite.verdict.baseline import read_baselines
from perfsuite.verdict.roofline.bounds import BOUNDED
from perfsuite.verdict.roofline.stored_run import read_roofline

from .conftest import FakeDevice

MODEL = "smollm2-135m-l2-q8_0"
STORE = Path("baselines/host/roofline.json")
BOUNDS = "bound/cpu/read"


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    own = ("--perf-dir=run", "--threads=2", "-p", "no:cacheprovider", "-o", "perf_session_spread=0.01")
    return pytester.runpytest_inprocess("--device=host", f"--model={MODEL}", *own, *arguments)


def _plain(pytester: pytest.Pytester) -> dict[str, Any]:
    run: dict[str, Any] = json.loads((pytester.path / "run" / "run.json").read_text())
    return run


def _outcomes(pytester: pytest.Pytester) -> dict[str, str]:
    return {case["id"]: case["outcome"] for case in _plain(pytester)["cases"]}


def _roofline(pytester: pytest.Pytester) -> RooflineRun:
    return read_roofline(pytester.path / "run" / "roofline.json")


def _sweep_plans(device: FakeDevice) -> list[LlamaPlan]:
    return [plan for plan in device.plans if isinstance(plan, LlamaPlan) and plan.recorder == "none"]


def _counted(device: FakeDevice) -> dict[str, int]:
    names = [type(plan).__name__ for plan in device.plans]
    return {name: names.count(name) for name in set(names)}


def _collected(result: pytest.RunResult) -> list[str]:
    return [line.partition("[")[2].rstrip("]") for line in result.outlines if "test_roofline.py::" in line]


def test_cases_are_listed_and_nothing_is_run(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Each workload has its prompt, its steps and both together, with their statements, before anything is measured."""
    result = _run(pytester, "--perf-sweep=precision,depth", "--collect-only", "-q", "-k", "test_roofline")
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
    assert [each for each in ids if each.endswith("/prefill/regime")] == [
        f"{each}/regime" for each in cases if each.endswith("/prefill") and "/depth/" in each
    ]
    assert not [each for each in ids if each.endswith("/whole_run/regime")]
    assert [each for each in ids if "/" not in each] == ["precision-order", "depth-rises"]
    assert [each for each in ids if each.startswith("bound/")] == [*BOUNDED]
    assert fake_device.plans == fake_device.remembered == []
    assert not (pytester.path / "run" / "run.json").exists()


def test_experts_have_no_regime_of_prompts(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A routed prompt of 256 tokens may be limited by either; its steps are limited by memory."""
    ids = _collected(_run(pytester, "--perf-sweep=moe", "--collect-only", "-q", "-k", "test_roofline"))
    assert any(each.endswith("/p256-g16/t2/prefill") for each in ids)
    assert {each.split("/")[-2] for each in ids if each.endswith("/regime")} == {"decode"}


def test_a_run_without_sweeps_has_none_of_it(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Nothing is surveyed, no case of the kind is there, and none is skipped."""
    result = _run(pytester)
    assert result.ret == 0
    assert not any(case_id.startswith("roofline/") for case_id in _outcomes(pytester))
    assert not {"SurveyPlan", "IndependentPlan", "OpenClCeilingsPlan"} & set(_counted(fake_device))
    assert "skipped" not in result.parseoutcomes()
    assert not (pytester.path / "run" / "roofline.json").exists()


def test_a_sweep_is_measured_and_kept(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """All cases are new, all statements hold or are undecided, and the run is stored beside the others' file."""
    result = _run(pytester, "--perf-sweep=precision", "-k", "test_roofline", "-rs")
    assert result.ret == 0
    outcomes = _outcomes(pytester)
    assert len(outcomes) == 9
    assert set(outcomes.values()) == {"new"}
    run = _roofline(pytester)
    assert [row.case for row in run.rows] == [*outcomes]
    assert {len(row.samples_ns) for row in run.rows} == {5}
    assert {rate.n_threads for rate in run.bounds} == {1, 2}
    assert _plain(pytester)["fingerprint"]["roofline"]["backend"] == "cpu"
    result.stdout.fnmatch_lines(["*undecided: no other program is faster than the ceiling*: no independent program*"])


def test_what_is_not_selected_is_not_measured(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Of two sweeps the one that -k names is measured; memory is that of no scenario."""
    _run(pytester, "--perf-sweep=precision,scenario", "-k", "precision")
    assert {plan.gguf_path.rpartition("-")[2] for plan in _sweep_plans(fake_device)} == {
        *("f16.gguf", "q8_0.gguf", "q4_k_m.gguf")
    }
    assert {row.sweep for row in _roofline(pytester).rows} == {"precision"}
    assert fake_device.remembered == []
    assert _counted(fake_device)["SurveyPlan"] == 2


def test_other_groups_alone_measure_no_sweep(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Where -k leaves no case of a sweep, no ceiling of it is surveyed."""
    _run(pytester, "--perf-sweep=precision", "-k", "test_phase")
    assert _sweep_plans(fake_device) == []
    assert "SurveyPlan" not in _counted(fake_device)


def test_one_statement_needs_its_series(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """The order of precisions alone measures all three of them, and nothing else."""
    result = _run(pytester, "--perf-sweep=precision,depth", "-k", "precision-order")
    assert result.ret == 0
    assert "IndependentPlan" not in _counted(fake_device)
    result.assert_outcomes(passed=1, deselected=result.parseoutcomes()["deselected"])
    assert {row.setting for row in _roofline(pytester).rows} == {"f16", "q8_0", "q4_k_m"}


def test_one_regime_needs_its_workload(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """The regime of one depth measures that depth."""
    _run(pytester, "--perf-sweep=depth", "-k", "l4-q8_0 and decode and regime")
    assert {row.setting for row in _roofline(pytester).rows} == {"4"}


def test_bounds_alone_measure_the_first_workload(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Ceilings need no workload, so that one is enough."""
    result = _run(pytester, "--perf-sweep=depth,precision", "-k", "bound")
    assert result.ret == 0
    assert {(row.sweep, row.setting) for row in _roofline(pytester).rows} == {("depth", "2")}
    assert result.parseoutcomes()["passed"] == 1
    assert result.parseoutcomes()["skipped"] == len(BOUNDED) - 1


def test_a_ceiling_below_another_program_fails(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """NumPy reads more than the ceiling: the bound fails with both figures, and the rest does not."""
    fake_device.numpy_bytes_per_s = 6e10
    result = _run(pytester, "--perf-sweep=precision", "-k", "test_roofline")
    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(
        ["*not so: no other program is faster than the ceiling*: 50.0 GB/s against numpy's 60*"]
    )


def test_points_above_their_ceiling_are_impossible(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Times that the ceilings forbid fail their cases as impossible, prompt, steps and whole."""
    fake_device.slowdown[""] = 0.001
    result = _run(pytester, "--perf-sweep=precision", "-k", "test_roofline and test_point")
    assert result.ret == 1
    assert set(_outcomes(pytester).values()) == {"impossible"}
    assert result.parseoutcomes()["failed"] == 9
    result.stdout.fnmatch_lines(["*is below the floor of*"])


@pytest.mark.parametrize(("memory_ratio", "n_failed"), [(1.04, 0), (1.2, 4)])
def test_memory_beyond_the_prediction_fails(
    pytester: pytest.Pytester,
    fake_device: FakeDevice,
    memory_ratio: float,
    n_failed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scenarios' memory is measured in one process each, and is held to what was predicted."""
    monkeypatch.setattr("perfsuite.verdict.roofline.checks.MEMORY_TOLERANCE_BYTES", 0)
    fake_device.memory_ratio = memory_ratio
    result = _run(pytester, "--perf-sweep=scenario", "-k", "memory")
    assert result.parseoutcomes().get("failed", 0) == n_failed
    assert fake_device.remembered == [f"{MODEL}/{name}" for name in ("siso", "liso", "silo", "lilo")]


def test_a_sweep_has_baselines(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Recorded, measured alike, and measured slower: baselines lie in a file of their own beside the others."""
    narrow = ("--perf-sweep=precision", "-k", "test_roofline and test_point")
    assert _run(pytester, *narrow, "--baseline=record").ret == 0
    (entry,) = read_baselines(STORE).entries
    assert set(entry.anchor.cases_ns) == set(_outcomes(pytester))
    assert _run(pytester, *narrow).ret == 0
    assert set(_outcomes(pytester).values()) == {"pass"}
    fake_device.slowdown[""] = 1.5
    assert _run(pytester, *narrow).ret == 1
    assert set(_outcomes(pytester).values()) == {"regressed"}


def test_statements_alone_record_nothing(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A statement is no time: with --baseline=record no empty session is written, and the run says so and fails."""
    result = _run(pytester, "--perf-sweep=precision", "-k", "precision-order", "--baseline=record")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*nothing was recorded: no case that has baselines was measured"])
    assert not STORE.exists() or not read_baselines(STORE).entries


def test_a_device_without_opencl_has_its_roofline(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """No OpenCL takes nothing from the processor's points; the ceilings that are missing say why."""
    fake_device.opencl_error = OpenClError("no platform has a device")
    assert _run(pytester, "--perf-sweep=precision", "-k", "test_roofline").ret == 0
    missing = {each.missing for each in _roofline(pytester).survey.ceilings if each.processor == "opencl"}
    assert missing == {"no platform has a device"}


def test_ceilings_that_fail_end_the_sweeps_alone(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Cases are invalid, statements are skipped with the reason, other groups are measured, and the run fails."""
    fake_device.survey_error = MeasurementError("probe: no memory")
    result = _run(pytester, "--perf-sweep=precision", "-k", "test_phase or test_roofline", "-rs")
    assert result.ret == 1
    outcomes = _outcomes(pytester)
    assert {each for case_id, each in outcomes.items() if case_id.startswith("roofline/")} == {"invalid"}
    assert {each for case_id, each in outcomes.items() if case_id.startswith("phase/")} == {"new"}
    result.stdout.fnmatch_lines(["*undecided: the sweeps are measured: probe: no memory*"])
    result.stdout.fnmatch_lines(["perfsuite: error: probe: no memory"])


def test_a_busy_machine_ends_the_sweeps(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Where no process had the processors for itself, the workload and the reason are told."""
    fake_device.contended = True
    result = _run(pytester, "--perf-sweep=precision", "-k", "test_roofline", "--perf-replicates=3")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["perfsuite: error: sweep precision, f16: 0 undisturbed processes of 6*"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--perf-sweep=nonsense"], "'nonsense' is unknown; accepted are scenario, *, threads, all"),
        (["--perf-sweep=depth,,kv"], "'' is unknown; accepted are*"),
        (["--perf-sweep=all,nonsense"], "'nonsense' is unknown*"),
        (["--perf-sweep=depth", "--against-args=threads=1"], "sweeps have no old side*"),
    ],
)
def test_a_sweep_that_is_none_is_refused(
    pytester: pytest.Pytester, fake_device: FakeDevice, arguments: list[str], told: str
) -> None:
    """One line with the option and what is accepted, before anything is run."""
    result = _run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {arguments[0]}: {told}"])
    assert fake_device.plans == []


def test_all_sweeps_are_all_of_them(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Each sweep is there once, however it was asked for."""
    result = _run(pytester, "--perf-sweep=depth,all,depth", "--collect-only", "-q", "-k", "test_point")
    ids = _collected(result)
    assert len(ids) == len(set(ids))
    assert list(dict.fromkeys(each.split("/")[1] for each in ids)) == [
        *("scenario", "length", "depth", "precision", "moe", "attention", "kv", "flash", "threads")
    ]


def test_all_sweeps_are_measured(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Every case of every sweep has its row and its samples, and each statement holds but those on absent programs."""
    result = _run(pytester, "--perf-sweep=all", "-k", "test_roofline", "--perf-replicates=3")
    assert result.ret == 0
    outcomes = _outcomes(pytester)
    assert set(outcomes.values()) == {"new"}
    assert {row.case for row in _roofline(pytester).rows} == set(outcomes)
    assert result.parseoutcomes()["skipped"] == len(BOUNDED) - 1


def test_two_processes_are_too_few(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Fewer than three samples say nothing of their spread: the cases are invalid."""
    _run(pytester, "--perf-sweep=precision", "-k", "test_roofline and test_point", "--perf-replicates=2")
    assert set(_outcomes(pytester).values()) == {"invalid"}


def test_long_sweeps_have_other_lengths(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Scenarios of real use are listed where they were asked for, and only then."""
    arguments = ("--perf-sweep=scenario", "--collect-only", "-q", "-k", "test_point")
    short = {each.split("/")[3] for each in _collected(_run(pytester, *arguments))}
    long = {each.split("/")[3] for each in _collected(_run(pytester, *arguments, "--perf-long"))}
    assert short == {"siso", "liso", "silo", "lilo"}
    assert long == {f"{each}-long" for each in short}
