"""What a run measures, how often, and what stays of it when somebody presses Ctrl-C."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.measure.plan import DevicesPlan, KernelPlan, LlamaPlan, Plan, ProbePlan, TurnsPlan
from perfsuite.records.observation import read_observation
from perfsuite.records.run_file import RunFile
from perfsuite.testing.workers import replace_turns, replace_workers
from tests.fake_device import FakeDevice, HostRuns, watch_on
from tests.sys_trees import plant

#: What each run has besides.
USUAL = ("-o", "perf_session_spread=0.01")


def _interrupted_run(runs: HostRuns, *arguments: str) -> RunFile:
    """Run until the interruption, which runs.pytester passes on, and read what was written."""
    with pytest.raises(KeyboardInterrupt):
        runs(*arguments)
    run = runs.file()
    assert run.is_interrupted
    return run


def _interrupt_at(device: FakeDevice, monkeypatch: pytest.MonkeyPatch, kind: type[Plan], n_before: int) -> None:
    """Press Ctrl-C in the worker of a kind before which so many of that kind have run."""
    answer, in_turns = device.run, device.run_in_turns

    def press(plan: Plan) -> None:
        if isinstance(plan, kind) and sum(isinstance(each, kind) for each in device.plans) >= n_before:
            raise KeyboardInterrupt

    def run(plan: Plan, **options: object) -> dict[str, Any]:
        press(plan)
        return answer(plan, **options)

    def run_in_turns(plans: tuple[TurnsPlan, TurnsPlan], **options: object) -> tuple[dict[str, Any], dict[str, Any]]:
        press(plans[0])
        return in_turns(plans, **options)

    replace_workers(monkeypatch, run)
    replace_turns(monkeypatch, run_in_turns)


def test_each_group_is_measured_once_and_what_needs_an_option_is_not(runs: HostRuns) -> None:
    result = runs("--perf-replicates=4")
    assert {case["kind"] for case in runs.cases().values()} == {"phase", "operator", "kernel"}
    assert "skipped" not in result.parseoutcomes()
    kinds = Counter(type(plan) for plan in runs.device.plans)
    assert kinds == {ProbePlan: 2, LlamaPlan: 4, DevicesPlan: 1, KernelPlan: 4}


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [(("--perf-replicates=4",), ["llama", "kernels"]), (("--against-args=threads=1",), ["llama"])],
)
def test_every_group_is_sampled_while_it_runs(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], groups: list[str]
) -> None:
    """Replicates of the engine and of kernels, and pairs: each state has clock, heat and throttling from within it."""
    watch_on(plant("orangepi5", tmp_path / "board"), monkeypatch)
    runs(*arguments)
    states = read_observation(runs.pytester.path / "run").states
    assert list(dict.fromkeys(each.group for each in states)) == groups
    assert [each.at_s for each in states] == sorted(each.at_s for each in states)
    assert {(each.least_cpu_mhz, each.most_cpu_mhz, each.throttled) for each in states} == {(2064.0, 2064.0, False)}
    assert {each.most_celsius for each in states} == {45.307}


def test_ceilings_that_fell_are_told_and_judge_nothing(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values have no error: a run between ceilings that fell by a fifth has a note, and its verdicts."""
    runs.device.sentinels = {"memory_ns": 1_000_000, "compute_ns": 1_000_000}
    answer = runs.device.run

    def run(plan: Plan, **options: object) -> dict[str, Any]:
        payload = answer(plan, **options)
        if isinstance(plan, ProbePlan) and any(isinstance(each, LlamaPlan) for each in runs.device.plans):
            payload["ceilings"]["fp32_flops_per_s"] *= 0.8
        return payload

    replace_workers(monkeypatch, run)
    result = runs("--perf-replicates=3", "-k", "test_phase")
    assert "invalid" not in runs.outcomes()
    told = "llama: at the ceilings the fixed work took 25 % longer after the run than before it"
    result.stdout.fnmatch_lines([f"*{told}*"])


def test_replicates_before_an_interruption_are_judged(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where they are enough, as in a whole run; the group that was not begun has no cases, and no test ran."""
    runs("--baseline=record", "--perf-replicates=5")
    shutil.rmtree(tmp_path / "cache" / "engines")
    runs.device.plans.clear()
    _interrupt_at(runs.device, monkeypatch, LlamaPlan, 6)
    run = _interrupted_run(runs)
    assert {each.kind for each in run.judgements} == {"phase", "operator"}
    assert {each.outcome.value for each in run.judgements} == {"pass"}
    assert {len(each.samples_ns) for each in run.judgements} == {6}
    assert set(run.durations_s) == {"ceilings", "llama"}
    seen = read_observation(runs.pytester.path / "run")
    assert [len(each.samples_ns) for each in seen.tokens] == [6] * 24
    assert len(seen.states) == 6


@pytest.mark.parametrize(
    ("kind", "n_before", "arguments", "told", "n_samples"),
    [
        (LlamaPlan, 1, (), "1 of 10 replicates", (1, 0)),
        (TurnsPlan, 6, ("--against-args=threads=1", "-k", "decode"), "3 pairs", (3, 3)),
    ],
)
def test_too_little_before_an_interruption_decides_nothing(
    runs: HostRuns,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Plan],
    n_before: int,
    arguments: tuple[str, ...],
    told: str,
    n_samples: tuple[int, int],
) -> None:
    """Each case has its samples, those of both sides in pairs, and is INVALID with the interruption as the reason."""
    _interrupt_at(runs.device, monkeypatch, kind, n_before)
    found = _interrupted_run(runs, *arguments).judgements
    assert {each.outcome.value for each in found} == {"invalid"}
    assert {each.reason for each in found} == {f"interrupted after {told}; run again"}
    assert {(len(each.samples_ns), len(each.baseline_samples_ns)) for each in found} == {n_samples}


def test_only_what_was_selected_is_judged(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt_at(runs.device, monkeypatch, KernelPlan, 6)
    run = _interrupted_run(runs, "-k", "gemm or (test_operator and ffn_up)")
    assert {each.kind for each in run.judgements} == {"kernel", "operator"}
    assert all("gemm" in each.case_id or each.case_id.endswith("/ffn_up") for each in run.judgements)
    assert {len(each.samples_ns) for each in run.judgements if each.kind == "kernel"} == {6}


def test_an_interruption_before_anything_was_measured_leaves_nothing(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ceilings alone are no run."""
    _interrupt_at(runs.device, monkeypatch, ProbePlan, 0)
    with pytest.raises(KeyboardInterrupt):
        runs()
    assert not (runs.pytester.path / "run" / "run.json").exists()


def test_an_interruption_during_the_tests_leaves_all_that_was_measured(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runs("-k", "test_phase", "--baseline=off").ret == 0
    expected = {(each.case_id, "new") for each in runs.file().judgements}
    monkeypatch.setattr("perfsuite.plugin.fixtures.Perf._conclude", Mock(side_effect=KeyboardInterrupt))
    run = _interrupted_run(runs, "-k", "test_phase")
    assert {(each.case_id, each.outcome.value) for each in run.judgements} == expected


@pytest.mark.usefixtures("real_outputs")
def test_an_interrupted_run_is_no_reference(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _interrupt_at(runs.device, monkeypatch, LlamaPlan, 6)
    _interrupted_run(runs, "--baseline=record", "--perf-report=off")
    assert "the run was interrupted: its samples are no baseline; run again" in capsys.readouterr().out
    assert not (runs.pytester.path / "baselines").exists()
    assert not list(runs.pytester.path.rglob("*.parquet"))
