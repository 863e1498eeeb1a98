"""Runs that are compared with a stored baseline, in pairs with what made it where that is at hand."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.records.events import EngineRecord
from perfsuite.verdict.sequential import compare_sequentially

from .conftest import FakeDevice, stretched

MODEL = "smollm2-135m-l2-q8_0"


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        "--device=host", f"--model={MODEL}", "--perf-dir=run", "-p", "no:cacheprovider", *arguments
    )


def _cases(pytester: pytest.Pytester) -> dict[str, dict[str, Any]]:
    run = json.loads((pytester.path / "run" / "run.json").read_text())
    return {case["id"]: case for case in run["cases"]}


def _outcomes(pytester: pytest.Pytester) -> set[str]:
    return {case["outcome"] for case in _cases(pytester).values()}


def test_the_second_run_of_a_checkout_is_compared_in_pairs(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """The first leaves a reference of its own and says so; nothing is new in the second, kernels included."""
    first = _run(pytester)
    assert _outcomes(pytester) == {"new"}
    first.stdout.fnmatch_lines(["*cases kept in *.perfsuite/baselines: the next run is compared with this one"])
    assert not (pytester.path / "baselines").exists()
    second = _run(pytester)
    assert second.ret == 0
    assert _outcomes(pytester) == {"pass"}
    assert {case["n_pairs"] for case in _cases(pytester).values()} == {8}
    second.stdout.fnmatch_lines(
        ["*in pairs against the build of the baseline of *", "*llama: the device is as it was: *"]
    )


def test_the_old_side_is_the_stored_engine(pytester: pytest.Pytester, fake_device: FakeDevice, tmp_path: Path) -> None:
    """Its libraries come from the store, and a slowdown on purpose is the new side's."""
    _run(pytester, "--baseline=record")
    _run(pytester, "-k", "decode", "--perf-inject=MUL_MAT=0.2")
    old, new = [plan.llama for plan in fake_device.plans if isinstance(plan, TurnsPlan)][:2]
    assert old.library_dir.startswith(str(tmp_path / "cache" / "engines"))
    assert not new.library_dir.startswith(str(tmp_path / "cache"))
    assert (old.inject_op, new.inject_op) == (None, "MUL_MAT")
    assert old.engine_build_id == new.engine_build_id


def test_the_build_of_another_scenario_is_no_reference(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A scenario that was never measured is new, though the file of its model holds another, and then has its own."""
    _run(pytester, "--baseline=record", "-k", "phase")
    other = ("--scenario=p8-g4", "-k", "phase")
    _run(pytester, *other)
    assert {case["n_pairs"] for case in _cases(pytester).values()} == {None}
    _run(pytester, *other)
    assert {case["n_pairs"] for case in _cases(pytester).values()} == {8}


def test_what_is_committed_goes_before_the_checkouts_own(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Though the first run had more cases: who records a reference means it."""
    _run(pytester, "-k", "not kernel")
    (own,) = (pytester.path / ".perfsuite").rglob("baselines/host/smollm2*.json")
    own.write_text(re.sub(r'"recorded_at": "[^T]*', '"recorded_at": "2001-01-01', own.read_text()))
    _run(pytester, "--baseline=record", "-k", "decode and phase")
    recorded = json.loads((pytester.path / "run" / "run.json").read_text())["started_at"]
    result = _run(pytester, "-k", "not kernel")
    result.stdout.fnmatch_lines([f"*in pairs against the build of the baseline of {recorded[:16]}*"])
    result.stdout.no_fnmatch_line("*in pairs against the build of the baseline of 2001-*")


@pytest.mark.parametrize(("options", "limit_ratio"), [((), 0.1), (("--perf-resolution=0.03",), 0.03)])
def test_the_resolution_that_is_asked_for_counts_in_pairs(
    pytester: pytest.Pytester,
    fake_device: FakeDevice,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    limit_ratio: float,
) -> None:
    """Of the engine and of the kernels; without the option pairs pass at what they rule out up to 10 %."""
    limits = []

    def compare(*arguments: Any, resolution_limit_ratio: float, **more: Any) -> Any:
        limits.append(resolution_limit_ratio)
        return compare_sequentially(*arguments, resolution_limit_ratio=resolution_limit_ratio, **more)

    _run(pytester, "--baseline=record", "-k", "add or decode")
    for module in ("paired_group", "kernel_pairs"):
        monkeypatch.setattr(f"perfsuite.plugin.{module}.compare_sequentially", compare)
    _run(pytester, "-k", "add or decode", *options)
    assert limits == [limit_ratio] * 2


def test_a_slower_operator_and_a_slower_kernel_are_named(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Each regresses by its own pairs, and nothing else does."""
    _run(pytester, "--baseline=record")
    kernel = next(case_id for case_id in _cases(pytester) if case_id.startswith("kernel/gemm"))
    fake_device.slowdown, fake_device.kernel_slowdown = {"ffn_up": 1.3}, {kernel: 1.2}
    assert _run(pytester, "-k", "operator or kernel").ret == 1
    regressed = {case_id for case_id, case in _cases(pytester).items() if case["outcome"] == "regressed"}
    prefix = f"operator/{MODEL}/siso"
    assert regressed == {kernel, f"{prefix}/prefill/ffn_up", f"{prefix}/decode/ffn_up"}
    assert _cases(pytester)[kernel]["change_ratio"] == pytest.approx(1.2, rel=0.01)


def test_a_change_of_the_device_is_no_slower_code(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Both sides slow down alike: every case passes, and one line says that the device has changed."""
    _run(pytester, "--baseline=record", "-k", "phase")
    slower = stretched(EngineRecord.from_plain(fake_device.payload["engine"]), {"": 2.0})
    fake_device.payload = {**fake_device.payload, "engine": slower.to_plain()}
    result = _run(pytester, "-k", "phase")
    assert not _outcomes(pytester) & {"regressed", "slow"}
    result.stdout.fnmatch_lines(["*llama: the device has changed: *"])


def test_without_the_engine_the_stored_times_judge(
    pytester: pytest.Pytester, fake_device: FakeDevice, tmp_path: Path
) -> None:
    """A store that was emptied is no error: the times that were stored say what they can."""
    _run(pytester, "--baseline=record")
    shutil.rmtree(tmp_path / "cache" / "engines")
    result = _run(pytester)
    assert result.ret == 0
    assert not [plan for plan in fake_device.plans if isinstance(plan, TurnsPlan)]
    assert _outcomes(pytester) == {"pass"}


def test_an_engine_that_does_not_run_here_leaves_the_times_to_judge(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that was built for another processor; a note says why, and the new engine is measured by itself."""
    _run(pytester, "--baseline=record")

    def killed(*_: object, **__: object) -> None:
        raise MeasurementError("the worker was killed by SIGILL")

    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", killed)
    n_before = sum(isinstance(plan, LlamaPlan) for plan in fake_device.plans)
    result = _run(pytester, "-k", "phase")
    assert result.ret == 0
    assert sum(isinstance(plan, LlamaPlan) for plan in fake_device.plans) == n_before + 10
    result.stdout.fnmatch_lines(["*the build of the baseline does not run here, so its stored times judge: *SIGILL*"])


def test_a_damaged_engine_is_one_line(pytester: pytest.Pytester, fake_device: FakeDevice, tmp_path: Path) -> None:
    """It is not executed: the run ends before anything is measured, and says what to do."""
    _run(pytester, "--baseline=record", "-k", "phase")
    (library,) = (tmp_path / "cache" / "engines").glob("*/lib/libllama.so")
    library.unlink()
    library.write_bytes(b"something else")
    result = _run(pytester, "-k", "phase")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *is damaged (lib/libllama.so has another content *"])


def test_a_run_that_is_slowed_down_is_no_reference(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Neither committed nor the checkout's own."""
    _run(pytester, "-k", "phase", "--perf-inject=decode=0.2")
    assert not (pytester.path / ".perfsuite" / "baselines").exists()
