"""The child process, run in this one with its measuring replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.errors import GgufError
from perfsuite.measure.launch import FAILURE_MARK, PLAN_NAME, RECORD_NAME
from perfsuite.measure.plan import DevicesPlan, KernelPlan, dump_plan, load_record
from perfsuite.measure.probes import Sentinels
from perfsuite.measure.worker import _RUNNERS, main
from perfsuite.records.codec import pack, unpack

Runner = Callable[[DevicesPlan], dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Runner], tuple[int, Path]]:
    """Return how to run a plan with a function for its measuring; gives the exit code and the record's path."""

    def with_runner(runner: Runner) -> tuple[int, Path]:
        monkeypatch.setattr("perfsuite.measure.worker._RUNNERS", {DevicesPlan: runner})
        plan_path, record_path = tmp_path / PLAN_NAME, tmp_path / RECORD_NAME
        plan_path.write_bytes(dump_plan(DevicesPlan(platform="Intel")))
        return main([str(plan_path), str(record_path)]), record_path

    return with_runner


def test_a_record_holds_what_was_measured(run: Callable[[Runner], tuple[int, Path]]) -> None:
    code, record_path = run(lambda plan: {"platform": plan.platform, "stamps": b"\x00\xff"})
    assert code == 0
    assert load_record(record_path.read_bytes(), "devices") == {"platform": "Intel", "stamps": b"\x00\xff"}
    assert {path.name for path in record_path.parent.iterdir()} == {PLAN_NAME, RECORD_NAME}


def test_a_known_failure_is_one_marked_line(
    run: Callable[[Runner], tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(plan: DevicesPlan) -> dict[str, Any]:
        raise GgufError("x.gguf: cut\nat   byte 7")

    code, record_path = run(failing)
    assert code == 1
    assert capsys.readouterr().out == f"\n{FAILURE_MARK}x.gguf: cut at byte 7\n"
    assert not record_path.exists()


def test_a_bug_is_not_hidden(run: Callable[[Runner], tuple[int, Path]]) -> None:
    def broken(plan: DevicesPlan) -> dict[str, Any]:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        run(broken)


def test_a_plan_of_another_suite_is_a_known_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan_path = tmp_path / PLAN_NAME
    plan_path.write_bytes(pack({**unpack(dump_plan(DevicesPlan(platform=None))), "suite_version": "0.0.0"}))
    assert main([str(plan_path), str(tmp_path / "record")]) == 1
    assert capsys.readouterr().out.startswith(f"\n{FAILURE_MARK}plan was made by perfsuite 0.0.0")


@pytest.fixture
def sentinels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the sentinels; return the list in which they, and whatever a test replaces, are noted."""
    done: list[str] = []

    def measured(library: str, n_threads: int) -> Sentinels:
        done.append(f"sentinels on {n_threads} threads of {library}")
        return Sentinels(memory_ns=5, compute_ns=7)

    monkeypatch.setattr("perfsuite.measure.native.load_probe_library", str)
    monkeypatch.setattr("perfsuite.measure.probes.measure_sentinels", measured)
    return done


def test_the_sentinels_run_after_the_kernels(sentinels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(cases: object, **_: object) -> tuple[tuple[()], tuple[()]]:
        sentinels.append("run")
        return (), ()

    monkeypatch.setattr("perfsuite.measure.opencl_platform.choose_device", lambda platform: None)
    monkeypatch.setattr("perfsuite.measure.opencl.KernelBench", lambda device, **_: SimpleNamespace(measure=measure))
    payload = _RUNNERS[KernelPlan](
        KernelPlan(
            case_ids=(),
            platform=None,
            n_repetitions=1,
            budget_ns=7_000_000_000,
            seed=0,
            log_dir="/log",
            cache_dir="/cache",
            n_threads=2,
        )
    )
    assert sentinels == ["run", "sentinels on 2 threads of /cache"]
    assert payload["sentinels"] == {"memory_ns": 5, "compute_ns": 7}
