"""Runs that are compared with a stored baseline, in pairs with what made it where that is at hand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.records.engine_columns import DECODE_ROW, OUTPUT_DTYPE, PREFILL_ROW
from perfsuite.records.events import EngineRecord
from perfsuite.testing.workers import replace_turns
from perfsuite.verdict.recorded_run import read_run
from tests.fake_device import HostRuns, stretched

MODEL = "smollm2-135m-l2-q8_0"


def test_the_second_run_of_a_checkout_is_compared_in_pairs(runs: HostRuns) -> None:
    """The first leaves a reference of its own and says so; nothing is new in the second, kernels included."""
    first = runs()
    assert runs.outcomes() == {"new"}
    first.stdout.fnmatch_lines(["*cases kept in *.perfsuite/baselines: the next run is compared with this one"])
    assert not (runs.pytester.path / "baselines").exists()
    second = runs()
    assert second.ret == 0
    assert runs.outcomes() == {"pass"}
    assert {case["n_pairs"] for case in runs.cases().values()} == {6, 16}
    second.stdout.fnmatch_lines(
        ["*in pairs against the build of the baseline of *", "*llama: the device is as it was: *"]
    )


def test_the_old_side_is_the_stored_engine(runs: HostRuns, tmp_path: Path) -> None:
    runs("--baseline=record")
    runs("-k", "decode", "--perf-inject=MUL_MAT=0.2")
    old, new = [plan.llama for plan in runs.device.plans if isinstance(plan, TurnsPlan)][:2]
    assert old.library_dir.startswith(str(tmp_path / "cache" / "engines"))
    assert not new.library_dir.startswith(str(tmp_path / "cache"))
    assert (old.inject_op, new.inject_op) == (None, "MUL_MAT")
    assert old.engine_build_id == new.engine_build_id


def test_the_build_of_another_scenario_is_no_reference(runs: HostRuns) -> None:
    """A scenario that was never measured is new, though the file of its model holds another, and then has its own."""
    runs("--baseline=record", "-k", "phase")
    other = ("--scenario=p8-g4", "-k", "phase")
    runs(*other)
    assert {case["n_pairs"] for case in runs.cases().values()} == {None}
    runs(*other)
    assert {case["n_pairs"] for case in runs.cases().values()} == {6}


def test_what_is_committed_goes_before_the_checkouts_own(runs: HostRuns) -> None:
    """Though the first run had more cases: who records a reference means it."""
    runs("-k", "not kernel")
    (own,) = (runs.pytester.path / ".perfsuite").rglob("baselines/host/smollm2*.json")
    own.write_text(re.sub(r'"recorded_at": "[^T]*', '"recorded_at": "2001-01-01', own.read_text()))
    runs("--baseline=record", "-k", "decode and phase")
    recorded = runs.plain()["started_at"]
    result = runs("-k", "not kernel")
    result.stdout.fnmatch_lines([f"*in pairs against the build of the baseline of {recorded[:16]}*"])
    result.stdout.no_fnmatch_line("*in pairs against the build of the baseline of 2001-*")


def test_a_slower_operator_and_a_slower_kernel_are_named(runs: HostRuns) -> None:
    runs("--baseline=record")
    kernel = next(case_id for case_id in runs.cases() if case_id.startswith("kernel/gemm"))
    runs.device.slowdown, runs.device.kernel_slowdown = {"ffn_up": 1.3}, {kernel: 1.2}
    assert runs("-k", "operator or kernel").ret == 1
    regressed = {case_id for case_id, case in runs.cases().items() if case["outcome"] == "regressed"}
    prefix = f"operator/{MODEL}/siso"
    assert regressed == {kernel, f"{prefix}/prefill/ffn_up", f"{prefix}/decode/ffn_up"}
    assert runs.cases()[kernel]["change_ratio"] == pytest.approx(1.2, rel=0.01)


def test_a_change_of_the_device_is_no_slower_code(runs: HostRuns) -> None:
    """Both sides slow down alike: every case passes, and one line says that the device has changed."""
    runs("--baseline=record", "-k", "phase")
    slower = stretched(EngineRecord.from_plain(runs.device.payload["engine"]), {"": 2.0})
    runs.device.payload = {**runs.device.payload, "engine": slower.to_plain()}
    result = runs("-k", "phase")
    assert not runs.outcomes() & {"regressed", "slow"}
    result.stdout.fnmatch_lines(["*llama: the device has changed: *"])


def test_without_the_engine_the_stored_times_judge(runs: HostRuns, tmp_path: Path) -> None:
    """A store that was emptied is no error: the times that were stored say what they can."""
    runs("--baseline=record")
    shutil.rmtree(tmp_path / "cache" / "engines")
    result = runs()
    assert result.ret == 0
    assert not [plan for plan in runs.device.plans if isinstance(plan, TurnsPlan)]
    assert runs.outcomes() == {"pass"}


def _compute(runs: HostRuns, *, noise_ratio: float = 0.0) -> None:
    """Let each process have outputs, which differ from the usual ones by a noise."""
    random = np.random.default_rng(5)
    rows = np.zeros(4, OUTPUT_DTYPE)
    rows["phase"] = [PREFILL_ROW, DECODE_ROW] * 2
    rows["values"] = random.normal(size=rows["values"].shape) + noise_ratio * random.normal(size=rows["values"].shape)
    kept = {"outputs": rows.tobytes(), "chosen_tokens": bytes(4 * 5)}
    runs.device.payload = {**runs.device.payload, "engine": {**runs.device.payload["engine"], **kept}}


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("group", "noise_ratio", "options", "outcome", "is_said"),
    [
        ("phase", 0.03, (), "pass", False),
        ("binding", 0.5, (), "invalid", True),
        ("phase", 0.5, (), "invalid", True),
        ("phase", 0.5, ("--perf-allow-different-output",), "pass", True),
    ],
)
def test_stored_outputs_are_compared_with_a_runs(
    runs: HostRuns,
    without_engines: None,
    group: str,
    noise_ratio: float,
    options: tuple[str, ...],
    outcome: str,
    is_said: bool,
) -> None:
    """Stored times judge no engine that computes something else of the same prompts; it is the first thing said."""
    runs.device.has_binding = True
    _compute(runs)
    runs("--baseline=record", "-k", f"test_{group}")
    _compute(runs, noise_ratio=noise_ratio)
    runs("-k", f"test_{group}", *options)
    cases = [each for each in runs.cases().values() if not each["id"].endswith("overhead")]
    told = f"this run and the baseline of {runs.plain()['started_at'][:4]}"
    assert {case["outcome"] for case in cases} == {outcome}
    assert all(case["reason"].startswith(told) == (outcome == "invalid") for case in cases)
    assert any(told in note and "differ by 5" in note for note in runs.file().device_notes) == is_said


def test_outputs_of_other_prompts_are_not_compared(runs: HostRuns, without_engines: None) -> None:
    """Only what the newest session of the same prompts came to counts; an approved run keeps its own."""
    _compute(runs)
    runs("--baseline=record", "-k", "phase")
    _compute(runs, noise_ratio=0.5)
    runs("--baseline=record", "-k", "phase")
    assert {group.session.outputs for group in read_run(runs.pytester.path / "run" / "run.json").groups} == {
        runs.file().outputs["llama"]
    }
    runs("-k", "phase")
    assert runs.outcomes() == {"pass"}
    _compute(runs)
    runs("-k", "phase", "--scenario=p8-g4")
    assert "invalid" not in runs.outcomes()
    runs("-k", "phase")
    assert runs.outcomes() == {"invalid"}


def test_an_engine_that_does_not_run_here_leaves_the_times_to_judge(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was built for another processor; a note says why, and the new engine is measured by itself."""
    runs("--baseline=record")
    killed = Mock(side_effect=MeasurementError("the worker was killed by SIGILL"))
    replace_turns(monkeypatch, killed)
    n_before = sum(isinstance(plan, LlamaPlan) for plan in runs.device.plans)
    result = runs("-k", "phase")
    assert result.ret == 0
    assert sum(isinstance(plan, LlamaPlan) for plan in runs.device.plans) == n_before + 10
    result.stdout.fnmatch_lines(["*the build of the baseline does not run here, so its stored times judge: *SIGILL*"])


def test_a_damaged_engine_is_one_line(runs: HostRuns, tmp_path: Path) -> None:
    """It is not executed: the run ends before anything is measured, and says what to do."""
    runs("--baseline=record", "-k", "phase")
    (library,) = (tmp_path / "cache" / "engines").glob("*/lib/libllama.so")
    library.unlink()
    library.write_bytes(b"something else")
    result = runs("-k", "phase")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *is damaged (lib/libllama.so has another content *"])
