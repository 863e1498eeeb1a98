"""A measuring process from outside: what it answers, and the ways in which it can fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.errors import MeasurementError, ShapeCrashError
from perfsuite.measure.launch import FAILURE_MARK, READY_MARK
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.native_session import NativeSession, ShapeWorker
from perfsuite.measure.shapes.sampler import Sampler
from perfsuite.workload.shapes.shape_case import ShapeCase

from ..conftest import Child, is_gone, wait_until, waiting_worker
from .fake_bench import FakeBench, gemv

CASE = gemv(1)


class AskingBench(FakeBench):
    """A bench whose worker knows of each case what is wrong with it."""

    memory_bytes = 1 << 30

    def __init__(self, worker: ShapeWorker) -> None:
        super().__init__()
        self._worker = worker

    def problem(self, case: ShapeCase) -> str | None:
        return self._worker.asked("problem", case)


@contextmanager
def started(setup: ShapeSetup, limit_s: float = 60.0) -> Iterator[NativeSession]:
    session = NativeSession(waiting_worker, setup.plan, {}, AskingBench, seed=0, limit_s=limit_s)
    with closing(session):
        yield session


def test_a_process_answers_until_it_is_closed(child: Child, setup: ShapeSetup) -> None:
    """What a library prints between the answers is none of them, and a failure leaves the process running."""
    answers = ("done", "done it is", "failed for once", "done")
    child("; echo noise; read line; ".join(f"echo '{READY_MARK} {each}'" for each in answers))
    with started(setup) as session:
        assert session.ask(Sampler.problem, (CASE,)) == "it is"
        with pytest.raises(MeasurementError, match=f"^{CASE.case_id}: for once"):
            session.ask(Sampler.problem, (CASE,))
        assert session.ask(Sampler.problem, (CASE,)) == ""
    assert not session.is_open


@pytest.mark.parametrize(
    ("script", "how"),
    [
        (f"read a; echo '{READY_MARK} crashed 0 signal 11'", "killed by SIGSEGV"),
        ("read a; echo 'the driver gives up'; exit 3", "the driver gives up"),
        (f"read a; echo '{READY_MARK} crashed 0 hung'", "the measuring process hung for 60 s"),
    ],
)
def test_a_crash_names_the_case_at_which_it_happened(child: Child, setup: ShapeSetup, script: str, how: str) -> None:
    child(f"echo '{READY_MARK} done'; {script}")
    with started(setup) as session:
        with pytest.raises(ShapeCrashError, match=f"^{CASE.case_id}: .*{how}"):
            session.ask(Sampler.problem, (CASE,))
        assert not session.is_open


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'ImportError: no such library'; exit 1", "wrote no record: ImportError: no such library"),
        (f"echo '{FAILURE_MARK}OpenCL: no platform'; exit 1", "^OpenCL: no platform"),
        (f"echo '{READY_MARK} nonsense'", "no answer"),
        ("sleep 600", "was not ready after 1 s"),
    ],
)
def test_a_process_that_cannot_start_says_why(
    child: Child, setup: ShapeSetup, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    """Whatever happens before the first case is no crash at a case."""
    monkeypatch.setattr("perfsuite.measure.shapes.native_session._BEYOND_WORKER_S", 0.0)
    child(script)
    with pytest.raises(MeasurementError, match=message) as caught, started(setup, limit_s=1.0):
        pass
    assert not isinstance(caught.value, ShapeCrashError)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_nothing_is_left_of_a_process(
    child: Child, setup: ShapeSetup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_interrupted: bool
) -> None:
    child(f"sleep 600 & echo $! > {tmp_path}/pid; echo $plan > {tmp_path}/plan; echo '{READY_MARK} done'; read line")
    with started(setup) as session:
        worker = session._worker._worker
        folder = Path((tmp_path / "plan").read_text().strip()).parent
        pid = int((tmp_path / "pid").read_text())
        assert not is_gone(pid)
        assert folder.exists()
        if is_interrupted:
            monkeypatch.setattr(worker, "answer", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                session.ask(Sampler.problem, (CASE,))
        else:
            os.kill(worker.pid, signal.SIGSTOP)
    assert wait_until(lambda: is_gone(pid))
    assert not folder.exists()
