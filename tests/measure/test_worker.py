"""The child process, run in this one with its measuring replaced."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import GgufError
from perfsuite.measure.launch import FAILURE_MARK, PLAN_NAME, RECORD_NAME
from perfsuite.measure.plan import DevicesPlan, KernelPlan, LlamaPlan, dump_plan, load_record
from perfsuite.measure.probes import Sentinels
from perfsuite.measure.worker import _RUNNERS, _published, main
from perfsuite.records.codec import pack, unpack
from perfsuite.records.events import EngineRecord

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
    """The runner gets the plan, and what it returns is the payload; nothing else is left in the folder."""
    code, record_path = run(lambda plan: {"platform": plan.platform, "stamps": b"\x00\xff"})
    assert code == 0
    assert load_record(record_path.read_bytes(), "devices") == {"platform": "Intel", "stamps": b"\x00\xff"}
    assert {path.name for path in record_path.parent.iterdir()} == {PLAN_NAME, RECORD_NAME}


def test_a_known_failure_is_one_marked_line(
    run: Callable[[Runner], tuple[int, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    """An error that a user can act on is printed as one marked line, and there is no record."""

    def failing(plan: DevicesPlan) -> dict[str, Any]:
        raise GgufError("x.gguf: cut\nat   byte 7")

    code, record_path = run(failing)
    assert code == 1
    assert capsys.readouterr().out == f"{FAILURE_MARK}x.gguf: cut at byte 7\n"
    assert not record_path.exists()


def test_a_bug_is_not_hidden(run: Callable[[Runner], tuple[int, Path]]) -> None:
    """Any other exception goes through with its traceback."""

    def broken(plan: DevicesPlan) -> dict[str, Any]:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        run(broken)


def test_a_plan_of_another_suite_is_a_known_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan that another version wrote is refused before anything runs."""
    plan_path = tmp_path / PLAN_NAME
    plan_path.write_bytes(pack({**unpack(dump_plan(DevicesPlan(platform=None))), "suite_version": "0.0.0"}))
    assert main([str(plan_path), str(tmp_path / "record")]) == 1
    assert capsys.readouterr().out.startswith(f"{FAILURE_MARK}plan was made by perfsuite 0.0.0")


class FakeEngine:
    """An engine that notes what is done with it."""

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def __enter__(self) -> FakeEngine:
        self._done.append("open")
        return self

    def __exit__(self, *_: object) -> None:
        self._done.append("close")

    def warm_up(self, plan: LlamaPlan) -> None:
        """Do nothing."""

    def run(self, plan: LlamaPlan) -> None:
        """Do nothing but note it."""
        self._done.append("run")

    def record(self) -> EngineRecord:
        """Return a record of nothing."""
        return EngineRecord(engine_version="1", spans=(), graphs=(), n_dropped=0)


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


def test_the_sentinels_run_after_the_engine_was_closed(sentinels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is measured as if there were no sentinels, and both are in the payload."""
    monkeypatch.setattr("perfsuite.measure.worker._engine_library", lambda plan: None)
    monkeypatch.setattr("perfsuite.measure.llama.open_engine", lambda library, plan: FakeEngine(sentinels))
    payload = _RUNNERS[LlamaPlan](
        LlamaPlan(
            gguf_path="x", library_dir="x", engine_build_id="x", cache_dir="/cache", n_threads=3, n_prompt=1, n_gen=1
        )
    )
    assert sentinels == ["open", "run", "close", "sentinels on 3 threads of /cache"]
    assert payload["sentinels"] == {"memory_ns": 5, "compute_ns": 7}
    assert payload["pid"] == os.getpid()
    assert 2**20 < payload["peak_rss_bytes"] < 2**40
    assert set(payload) == {"engine", "contention", "base_memory", "peak_rss_bytes", "sentinels", "pid"}


def test_the_sentinels_run_after_the_kernels(sentinels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicates of the kernels have sentinels too."""
    monkeypatch.setattr("perfsuite.measure.opencl_platform.choose_device", lambda platform: None)
    monkeypatch.setattr("perfsuite.measure.opencl.KernelBench", lambda device, **_: sentinels.append("run"))
    payload = _RUNNERS[KernelPlan](
        KernelPlan(case_ids=(), platform=None, n_repetitions=1, seed=0, log_dir="/log", cache_dir="/cache", n_threads=2)
    )
    assert sentinels == ["run", "sentinels on 2 threads of /cache"]
    assert payload["sentinels"] == {"memory_ns": 5, "compute_ns": 7}


@pytest.mark.parametrize(
    ("n_missing", "binds_threads", "keeps_off"), [(0, True, True), (1, True, False), (0, False, False)]
)
def test_publishing_keeps_off_a_driver_that_is_bound(
    n_missing: int, binds_threads: bool, keeps_off: bool, small_plan: LlamaPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a processor bound for each thread, the publisher has all but the first; else all of them are free to it."""
    given: list[dict[str, Any]] = []
    monkeypatch.setattr("perfsuite.measure.worker.USABLE_PROCESSORS", frozenset({3, 5}))
    monkeypatch.setattr("perfsuite.measure.live_publisher.published", lambda *_, **settings: given.append(settings))
    plan = replace(small_plan, n_threads=2 - n_missing, binds_threads=binds_threads)
    _published(None, plan)
    assert given[0]["processors"] == (frozenset({5}) if keeps_off else frozenset())


def test_kernels_are_looked_for_where_the_layer_writes(
    small_plan: LlamaPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The layer's log of this process is followed where the environment names its folder, else none."""
    given: list[dict[str, Any]] = []
    monkeypatch.setattr("perfsuite.measure.live_publisher.published", lambda *_, **settings: given.append(settings))
    monkeypatch.delenv("PERFSUITE_OPENCL_LOG", raising=False)
    _published(None, small_plan)
    monkeypatch.setenv("PERFSUITE_OPENCL_LOG", str(tmp_path))
    _published(None, small_plan)
    assert [each["opencl_log"] for each in given] == [None, tmp_path / f"opencl-{os.getpid()}.log"]
