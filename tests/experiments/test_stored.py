"""Runs that are compared with a stored baseline, in pairs with what made it where that is at hand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.records.events import EngineRecord
from perfsuite.verdict.sequential import compare_sequentially
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
    assert {case["n_pairs"] for case in runs.cases().values()} == {8}
    second.stdout.fnmatch_lines(
        ["*in pairs against the build of the baseline of *", "*llama: the device is as it was: *"]
    )


def test_the_old_side_is_the_stored_engine(runs: HostRuns, tmp_path: Path) -> None:
    """Its libraries come from the store, and a slowdown on purpose is the new side's."""
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
    assert {case["n_pairs"] for case in runs.cases().values()} == {8}


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


@pytest.mark.parametrize(("options", "limit_ratio"), [((), 0.1), (("--perf-resolution=0.03",), 0.03)])
def test_the_resolution_that_is_asked_for_counts_in_pairs(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], limit_ratio: float
) -> None:
    """The engine and the kernels have one each; without the option pairs pass at what they rule out up to 10 %."""
    limits = []

    def compare(*arguments: Any, resolution_limit_ratio: float, **more: Any) -> Any:
        limits.append(resolution_limit_ratio)
        return compare_sequentially(*arguments, resolution_limit_ratio=resolution_limit_ratio, **more)

    runs("--baseline=record", "-k", "add or decode")
    for module in ("engine_pairs", "kernel_pairs"):
        monkeypatch.setattr(f"perfsuite.experiments.{module}.compare_sequentially", compare)
    runs("-k", "add or decode", *options)
    assert limits == [limit_ratio] * 2


def test_a_slower_operator_and_a_slower_kernel_are_named(runs: HostRuns) -> None:
    """Each regresses by its own pairs, and nothing else does."""
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


def test_an_engine_that_does_not_run_here_leaves_the_times_to_judge(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was built for another processor; a note says why, and the new engine is measured by itself."""
    runs("--baseline=record")

    def killed(*_: object, **__: object) -> None:
        raise MeasurementError("the worker was killed by SIGILL")

    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", killed)
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


def test_a_run_that_is_slowed_down_is_no_reference(runs: HostRuns) -> None:
    """Neither committed nor the checkout's own."""
    runs("-k", "phase", "--perf-inject=decode=0.2")
    assert not (runs.pytester.path / ".perfsuite" / "baselines").exists()
