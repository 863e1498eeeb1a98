"""What a run measures, how often, and what stays of it when somebody presses Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.stability import sampler
from perfsuite.measure.plan import DevicesPlan, KernelPlan, LlamaPlan, Plan, ProbePlan, TurnsPlan
from perfsuite.records.observation import read_observation
from perfsuite.report.run_file import RunFile, read_run_file
from tests.conftest import DATA, STORED_MODEL
from tests.fake_device import CEILINGS, QUIET, FakeDevice, HostRuns
from tests.sys_trees import plant

#: What each run has besides.
USUAL = ("-o", "perf_session_spread=0.01")

MODEL = f"--model={STORED_MODEL}"

#: Longest to wait for a run in a process of its own, s.
_LIMIT_S = 60.0


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

    monkeypatch.setattr("perfsuite.measure.launch.run_worker", run)
    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", run_in_turns)


def test_each_group_is_measured_once_and_what_needs_an_option_is_not(runs: HostRuns) -> None:
    result = runs("--perf-replicates=4")
    assert {case["kind"] for case in runs.cases().values()} == {"phase", "operator", "kernel"}
    assert "skipped" not in result.parseoutcomes()
    names = [type(plan).__name__ for plan in runs.device.plans]
    assert {name: names.count(name) for name in set(names)} == {
        "ProbePlan": 2,
        "LlamaPlan": 4,
        "DevicesPlan": 1,
        "KernelPlan": 4,
    }


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [(("--perf-replicates=4",), ["llama", "kernels"]), (("--against-args=threads=1",), ["llama"])],
)
def test_every_group_is_sampled_while_it_runs(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], groups: list[str]
) -> None:
    """Replicates of the engine and of kernels, and pairs: each state has clock, heat and throttling from within it."""
    tree, sample = plant("orangepi5", tmp_path / "board"), sampler.sampling
    monkeypatch.setattr(sampler, "sampling", lambda **options: sample(tree, **options))
    runs(*arguments)
    states = read_observation(runs.pytester.path / "run").states
    assert list(dict.fromkeys(each.group for each in states)) == groups
    assert [each.at_s for each in states] == sorted(each.at_s for each in states)
    assert {(each.least_cpu_mhz, each.most_cpu_mhz, each.throttled) for each in states} == {(2064.0, 2064.0, False)}
    assert {each.most_celsius for each in states} == {45.307}


def test_ceilings_that_fell_are_told_and_judge_nothing(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two values have no error: a run between ceilings that fell by a fifth has a note, and its verdicts."""
    runs.device.sentinels = {"memory_ns": 1_000_000, "compute_ns": 1_000_000}
    runs("--perf-replicates=3", "-k", "test_phase", "--baseline=off")
    assert "invalid" not in runs.outcomes()
    answer = runs.device.run

    def run(plan: Plan, **options: object) -> dict[str, Any]:
        payload = answer(plan, **options)
        if isinstance(plan, ProbePlan) and isinstance(runs.device.plans[-2], LlamaPlan):
            payload["ceilings"]["fp32_flops_per_s"] *= 0.8
        return payload

    monkeypatch.setattr("perfsuite.measure.launch.run_worker", run)
    runs.device.plans.clear()
    runs.device.plans.append(DevicesPlan(platform=None))
    result = runs("--perf-replicates=3", "-k", "test_phase")
    assert "invalid" not in runs.outcomes()
    result.stdout.fnmatch_lines(
        ["*llama: at the ceilings the fixed work took 25 % longer after the run than before it*"]
    )


def test_only_what_is_selected_is_measured(runs: HostRuns) -> None:
    assert runs("-k", "test_phase", "--baseline=record").ret == 0
    assert not any(isinstance(plan, KernelPlan) for plan in runs.device.plans)
    assert not runs.file().is_interrupted
    runs.device.slowdown[""] = 3.0
    assert runs("-k", "test_phase").ret == 1
    assert not runs.file().is_interrupted


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
    """Cases whose tests were not reached are judged as they would have been."""
    whole = runs("-k", "test_phase", "--baseline=off")
    assert whole.ret == 0
    expected = {each.case_id for each in runs.file().judgements}
    monkeypatch.setattr("perfsuite.plugin.fixtures.Perf._conclude", _pressed)
    run = _interrupted_run(runs, "-k", "test_phase")
    assert {each.case_id for each in run.judgements} == expected
    assert {each.outcome.value for each in run.judgements} == {"new"}


def _pressed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("real_outputs")
def test_an_interrupted_run_is_no_reference(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _interrupt_at(runs.device, monkeypatch, LlamaPlan, 6)
    _interrupted_run(runs, "--baseline=record", "--perf-report=off")
    assert "the run was interrupted: its samples are no baseline; run again" in capsys.readouterr().out
    assert not (runs.pytester.path / "baselines").exists()
    assert not list(runs.pytester.path.rglob("*.parquet"))


def test_a_real_signal_ends_a_run_with_its_file(tmp_path: Path) -> None:
    """SIGINT while a worker runs: pytest ends at once with its code for it, and what was measured is written."""
    answers = {"ceilings": CEILINGS, "contention": QUIET, "record": str(DATA / f"{STORED_MODEL}-siso.msgpack")}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    (tmp_path / "slow_workers.py").write_text(_SLOW_WORKERS)
    own = ("--device=host", MODEL, "--perf-dir=run", "--baseline=record", "--perf-calibrate=off", "-k", "test_phase")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "slow_workers", "-p", "no:cacheprovider", *own],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(DATA.parents[1])))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        _wait_for((tmp_path / "measuring").exists, process)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=_LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    run = read_run_file(tmp_path / "run")
    assert run.is_interrupted
    assert {each.kind for each in run.judgements} == {"phase"}
    assert {len(each.samples_ns) for each in run.judgements} == {6}
    assert "Traceback" not in output
    assert not (tmp_path / "baselines").exists()


def _wait_for(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until_s = time.monotonic() + _LIMIT_S
    while not holds():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until_s
        time.sleep(0.05)


#: A plugin in whose runs the seventh worker of the engine takes longer than anybody waits.
_SLOW_WORKERS = """
import json
import signal
import time
from pathlib import Path

from perfsuite.measure import launch
from perfsuite.measure.plan import ProbePlan, load_record
from perfsuite.experiments import engine_replicates

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
answers = json.loads(Path("answers.json").read_text())
record = load_record(Path(answers["record"]).read_bytes(), "llama")
plans = []


def run_worker(plan, **options):
    if isinstance(plan, ProbePlan):
        return {"ceilings": answers["ceilings"], "contention": answers["contention"]}
    plans.append(plan)
    if len(plans) == 7:
        Path("measuring").touch()
        time.sleep(600)
    return {"engine": record["engine"], "contention": answers["contention"], "peak_rss_bytes": 1}


launch.run_worker = run_worker
engine_replicates.materialize = lambda weights, cache_dir: Path("weights.gguf")
"""
