"""Stored baselines in whole runs of the plugin, with stored records in place of measurements."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.plan import TurnsPlan
from perfsuite.plugin import hooks
from perfsuite.records.run_origin import BoardName
from perfsuite.testing.workers import replace_turns, replace_workers
from perfsuite.verdict.baseline import read_baselines
from tests.fake_device import HostRuns
from tests.fake_opencl import SCENARIO, FakeOpenCl
from tests.unknown_weights import write_unknown

#: What each run has besides.
USUAL = ("-k", "test_phase", "-o", "perf_session_spread=0.01")

OPENCL = ("--backend=opencl", f"--scenario={SCENARIO}", "--perf-replicates=5")
MODEL = "smollm2-135m-l2-q8_0"
DECODE, PREFILL = f"phase/{MODEL}/siso/decode", f"phase/{MODEL}/siso/prefill"
STORE = Path("baselines/host") / f"{MODEL}.json"

QUIET = {"memory_ns": 1_000_000, "compute_ns": 1_000_000}


def test_recording_adds_a_session(runs: HostRuns) -> None:
    """Each run that records is a session more, in a file that it names, with its sentinels and the machine's state."""
    runs.device.sentinels = QUIET
    for _ in range(2):
        result = runs("--baseline=record", "--perf-replicates=3")
        assert result.ret == 0
        result.stdout.fnmatch_lines([f"*cases recorded in *{STORE}*"])
    (entry,) = read_baselines(STORE).entries
    assert len(entry.sessions) == 2
    assert entry.sessions[0].sentinels_ns == {"memory": (1_000_000,) * 3, "compute": (1_000_000,) * 3}
    assert entry.sessions[0].covariates["waiting_ratio"] == pytest.approx(0.0005, rel=0.01)
    assert set(entry.sessions[0].covariates) == {
        *("load_average", "cpu_mhz", "temperature_celsius", "waiting_ratio", "steal_ratio"),
        *("throttled", "battery_ratio", "power_watts"),
    }
    assert entry.anchor.cases_ns[DECODE] == entry.sessions[0].median_ns(DECODE)


@pytest.mark.usefixtures("without_engines")
def test_the_basis_of_the_comparison_is_told(runs: HostRuns) -> None:
    for _ in range(5):
        runs("--baseline=record")
    runs()
    assert runs.cases()[DECODE]["outcome"] == "pass"
    assert runs.cases()[DECODE]["reason"].endswith("; spread 0.0 % between 5 sessions")


@pytest.mark.usefixtures("without_engines")
def test_a_slower_machine_is_no_regression(runs: HostRuns) -> None:
    """Where everything and the sentinels take longer, what the compute sentinel explains is divided out and told."""
    runs.device.sentinels = QUIET
    runs("--baseline=record")
    _slow_down(runs, 1.2)
    result = runs()
    prefill, decode = (runs.cases()[each] for each in (PREFILL, DECODE))
    assert (prefill["outcome"], prefill["change_ratio"]) == ("pass", pytest.approx(1.0, rel=0.02))
    assert prefill["reason"].endswith("after dividing out a drift of +20.0 % of the compute sentinel")
    assert "+4.7 % for a drift of +20.0 % of the memory sentinel" in decode["reason"]
    result.stdout.fnmatch_lines(["  the compute sentinel is +20.0 % off the stored sessions; *"])


def test_the_run_file_can_be_recorded(runs: HostRuns) -> None:
    """run.json holds what a baseline needs: recording it later is the same as recording it at once."""
    runs.device.sentinels = QUIET
    runs()
    assert main(["baseline", "record", "run/run.json", "--baseline-dir", "later"]) == 0
    (entry,) = read_baselines("later" / STORE.relative_to("baselines")).entries
    (session,) = entry.sessions
    plain = runs.plain()
    assert session.recorded_at == plain["started_at"]
    assert session.covariates == plain["covariates"]["llama"]
    assert session.sentinels_ns["memory"] == tuple(plain["sentinels_ns"]["llama"]["memory"])
    assert set(session.samples_ns) == {each["id"] for each in plain["cases"]}
    assert plain["injected"] is False


def test_a_run_that_is_slowed_down_says_so(runs: HostRuns) -> None:
    """run.json of a run with --perf-inject is marked, for it is no reference."""
    runs("--perf-inject=MUL_MAT=0.2")
    assert runs.plain()["injected"] is True
    assert not (runs.pytester.path / ".perfsuite" / "baselines").exists()
    assert main(["baseline", "record", "run/run.json"]) == 2


def test_another_run_that_recorded_meanwhile_is_kept(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read anew before a session is added."""
    runs("--baseline=record")
    stored = STORE.read_bytes()
    STORE.unlink()
    measure = runs.device.run

    def restored(*arguments: Any, **options: Any) -> dict[str, Any]:
        STORE.write_bytes(stored)
        return measure(*arguments, **options)

    replace_workers(monkeypatch, restored)
    runs("--baseline=record")
    (entry,) = read_baselines(STORE).entries
    assert len(entry.sessions) == 2


def test_a_baseline_of_opencl_is_that_of_its_driver_alone(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:
    scenario = f"--scenario={SCENARIO}"
    assert runs(*OPENCL, "--baseline=record").ret == 0
    runs(scenario, "--perf-replicates=5")
    decode = f"phase/{MODEL}/{SCENARIO}/decode"
    assert runs.cases()[decode]["outcome"] == "new"
    assert runs.cases()[decode]["reason"].startswith("no baseline with backend cpu yet")
    assert runs(*OPENCL).ret == 0
    assert runs.cases()[decode]["outcome"] == "pass"
    fake_opencl.driver_version = "1.3"
    runs(*OPENCL)
    assert runs.cases()[decode]["outcome"] == "incomparable"
    assert "opencl_driver" in runs.cases()[decode]["reason"]


def test_pairs_on_opencl_have_phases_alone(
    runs: HostRuns, fake_opencl: FakeOpenCl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody follows commands in pairs: no mapping is learnt, and both sides have the device's environment."""
    environments: list[Any] = []
    run_in_turns = runs.device.run_in_turns

    def noted(plans: Any, **options: Any) -> Any:
        environments.append(options["extra_environment"])
        return run_in_turns(plans, **options)

    replace_turns(monkeypatch, noted)
    assert runs("--backend=opencl", "--against-args=threads=1").ret == 0
    assert {case["kind"] for case in runs.plain()["cases"]} == {"phase"}
    assert fake_opencl.learnt_plans == fake_opencl.plans == []
    assert {each["OPENCL_LAYERS"] for each in environments} == {str(fake_opencl.folder / "opencl" / "compat.so")}
    assert {plan.llama.n_gpu_layers for plan in runs.device.plans if isinstance(plan, TurnsPlan)} == {999}


@pytest.mark.long
@pytest.mark.usefixtures("without_engines")
def test_boards_of_a_kind_are_compared_with_themselves(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a link a board that is 30 % slower passes by its own sessions, and a third one is reported to have none."""
    for board, slowdown in (("fast", 1.0), ("slow", 1.3)):
        _be_board(monkeypatch, board)
        runs.device.slowdown[""] = slowdown
        assert runs("--baseline=record").ret == 0
    for board, code, outcome in (("slow", 0, "pass"), ("fast", 1, "regressed"), ("third", 0, "new")):
        _be_board(monkeypatch, board)
        assert (runs().ret, runs.cases()[DECODE]["outcome"]) == (code, outcome)
    assert runs.cases()[DECODE]["reason"].startswith("no baseline of this board yet, though 2 other boards")
    assert [(entry.board, len(entry.sessions)) for entry in read_baselines(STORE).entries] == [("fast", 1), ("slow", 1)]


def test_creep_is_measured_from_the_boards_own_anchor(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that is slower than another did not creep, nor is it in another state."""
    for board, slowdown in (("fast", 1.0), ("slow", 1.3)):
        _be_board(monkeypatch, board)
        _slow_down(runs, slowdown)
        runs("--baseline=record")
    result = runs()
    result.stdout.no_fnmatch_line("*creep:*")
    result.stdout.no_fnmatch_line("*off the stored sessions*")


@pytest.mark.usefixtures("without_engines")
def test_creep_is_measured_from_the_anchor_of_what_a_board_is_compared_with(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Creep fails nothing; a board without sessions sees that of no board, and once it has its own, that since them."""
    few, approve = "--perf-replicates=3", ["baseline", "approve", "run/run.json", "--reason", "slower, more accurate"]
    runs("--baseline=record", few)
    runs.device.slowdown[""] = 1.3
    runs(few)
    assert main(approve) == 0
    _be_board(monkeypatch, "slow")
    creeps = f"  creep: {DECODE} +* % since the anchor of 20*-*-* ({{}})".format
    result = runs(few)
    assert (result.ret, runs.cases()[DECODE]["outcome"]) == (0, "pass")
    result.stdout.fnmatch_lines([creeps("1 approval")])
    assert main(approve) == 0
    runs(few).stdout.no_fnmatch_line("*creep:*")
    runs.device.slowdown[""] = 1.7
    runs(few)
    assert main(approve) == 0
    runs(few).stdout.fnmatch_lines([creeps("2 approvals")])


def _slow_down(runs: HostRuns, factor: float) -> None:
    """Let everything take so many times as long, sentinels too."""
    runs.device.slowdown[""] = factor
    runs.device.sentinels = {name: round(time_ns * factor) for name, time_ns in QUIET.items()}


def _be_board(monkeypatch: pytest.MonkeyPatch, identity: str) -> None:
    """Let the next runs be on a board of this identity, as if it was reached over a link."""

    def on_its_board(run: RunConfig, _: object) -> RunConfig:
        board = BoardName(identity=identity, hostname="shelf", is_linked=True)
        return replace(run, origin=replace(run.origin, board=board))

    monkeypatch.setattr(hooks, "_on_its_board", on_its_board)


def _run_unknown(runs: HostRuns, *arguments: str) -> tuple[pytest.RunResult, dict[str, dict[str, Any]]]:
    """Run a model that only the engine knows; return the cases by what is behind the workload in their ids."""
    own = ("--perf-dir=run", "-p", "no:cacheprovider", "-o", "perf_session_spread=0.01", "-k", "not kernel")
    path = write_unknown(runs.pytester.path / "odd.gguf")
    result = runs.pytester.runpytest_inprocess("--device=host", f"--model={path}", *own, *arguments)
    return result, {case["id"].split("/", 3)[-1]: case for case in runs.plain()["cases"]}


@pytest.mark.long
def test_a_model_that_only_the_engine_knows_is_judged_by_what_was_recorded(runs: HostRuns) -> None:
    """Phases and operators are as the engine names them, without a forecast; each has a test that can be chosen."""
    result, cases = _run_unknown(runs, "--baseline=record")
    assert result.ret == 0
    assert {"prefill", "decode", "decode/ffn_up", "prefill/ffn_up", "decode/rest"} <= set(cases)
    assert {case["outcome"] for case in cases.values()} == {"new"}
    assert {case["expected_ns"] for case in cases.values()} == {None}
    result.stdout.fnmatch_lines(["Operators odd/siso", f"*{len(cases)} cases have no baseline*"])
    (entry,) = read_baselines(Path("baselines/host/odd.json")).entries
    assert {case["id"] for case in cases.values()} == set(entry.case_ids)
    runs.device.slowdown = {"ffn_up": 3.0}
    result, cases = _run_unknown(runs)
    assert result.ret == 1
    assert cases["decode/ffn_up"]["outcome"] == "regressed"
    assert cases["decode/ffn_up"]["change_ratio"] == pytest.approx(3.0, rel=0.01)
    chosen, cases = _run_unknown(runs, "-k", "[operator/odd/siso/decode/ffn_up]")
    assert (chosen.ret, list(cases)) == (1, ["decode/ffn_up"])
    runs.device.slowdown = {}
    paired, cases = _run_unknown(runs, "--against-args=threads=1")
    assert (paired.ret, cases["decode/ffn_up"]["outcome"]) == (0, "pass")


@pytest.mark.usefixtures("without_engines")
def test_an_operator_that_its_baseline_lacks_is_new(runs: HostRuns) -> None:
    """It is found when the run is measured, beside those that are compared; only a strict run fails for it."""
    one = ("--perf-strict", "-k", "[phase/odd/siso/decode]")
    _run_unknown(runs, "--baseline=record")
    assert _run_unknown(runs, *one)[0].ret == 0
    path = Path("baselines/host/odd.json")
    path.write_text(path.read_text().replace("decode/ffn_up", "decode/ffn_other"))
    result, cases = _run_unknown(runs)
    assert result.ret == 0
    assert (cases["decode/ffn_up"]["outcome"], cases["decode/ffn_other"]["outcome"]) == ("new", "invalid")
    assert _run_unknown(runs, *one)[0].ret == 0  # for that run has kept it
    shutil.rmtree(".perfsuite/baselines")
    assert _run_unknown(runs, *one)[0].ret == 1
