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
from perfsuite.measure.launch import FAILURE_MARK
from perfsuite.measure.shapes.meter import BenchDescription
from perfsuite.measure.shapes.meters import ShapeProcess, ShapeSetup
from perfsuite.measure.shapes.requests import ANSWER_MARK, RequestKind, ShapeAnswer

from ..conftest import Child, is_gone, wait_until
from .fake_bench import BASE_NS, BROKEN, CHATTY, HANGING, KILLED, LEAVING, gemv

LIMIT_S = 60.0

READY = ShapeAnswer(number=0, description=BenchDescription(device="shell", n_compute_units=1, fingerprint=())).to_line()


@contextmanager
def started(setup: ShapeSetup, limit_s: float = LIMIT_S) -> Iterator[ShapeProcess]:
    with closing(ShapeProcess(setup, limit_s=limit_s)) as process:
        yield process


@pytest.mark.usefixtures("fake_worker")
def test_a_process_answers_request_after_request(setup: ShapeSetup) -> None:
    with started(setup) as process:
        pid = process.pid
        assert process.description.fingerprint == (("pid", str(pid)),)
        for n in (1, CHATTY, 2):
            answer = process.ask(RequestKind.SAMPLES, (gemv(n).case_id,), n_samples=2)
            assert answer.samples_ns == ((BASE_NS + n,) * 2,)
        assert not is_gone(pid)
    assert wait_until(lambda: is_gone(pid))
    assert not process.is_open


@pytest.mark.usefixtures("fake_worker")
def test_a_failure_at_a_case_leaves_the_process_running(setup: ShapeSetup) -> None:
    with started(setup) as process:
        with pytest.raises(MeasurementError, match=f"{gemv(BROKEN).case_id}: clCreateBuffer failed") as caught:
            process.ask(RequestKind.VERIFY, (gemv(BROKEN).case_id,))
        assert not isinstance(caught.value, ShapeCrashError)
        assert process.ask(RequestKind.VERIFY, (gemv(1).case_id,)).deviation is not None


@pytest.mark.usefixtures("fake_worker")
@pytest.mark.parametrize(("n", "how"), [(KILLED, "killed by SIGSEGV"), (LEAVING, "the driver gives up")])
def test_a_crash_names_the_case_at_which_it_happened(setup: ShapeSetup, n: int, how: str) -> None:
    with started(setup) as process:
        case_ids = tuple(gemv(size).case_id for size in (1, 2, n, 3, 4))
        with pytest.raises(ShapeCrashError, match=f"^{gemv(n).case_id}: .*{how}"):
            process.ask(RequestKind.ROUND, case_ids)
        assert not process.is_open


@pytest.mark.usefixtures("fake_worker")
def test_a_process_that_hangs_is_stopped(setup: ShapeSetup) -> None:
    with started(setup) as process:
        process._limit_s = 0.5  # the start may take longer
        with pytest.raises(ShapeCrashError, match=rf"^{gemv(HANGING).case_id}: the measuring process hung for 0\.5 s"):
            process.ask(RequestKind.PAIRS, (gemv(1).case_id, gemv(HANGING).case_id))
        assert wait_until(lambda: is_gone(process.pid))


def test_the_limit_is_one_of_a_step_and_not_of_an_answer(child: Child, setup: ShapeSetup) -> None:
    """A process that goes on marking its steps is waited for beyond the limit."""
    answer = ShapeAnswer(number=1, problem="late").to_line()
    steps = "for step in 1 2 3 4 5 6; do sleep 0.3; printf $step | dd of=$mark bs=1 conv=notrunc 2>/dev/null; done"
    find = "mark=$(dirname $plan)/mark"
    child(f"{find}; echo '{READY}'; read line; {steps}; echo '{answer}'; sleep 600")
    with started(setup, limit_s=1.0) as process:
        assert process.ask(RequestKind.PROBLEM, ("a",)).problem == "late"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'ImportError: no such library'; exit 1", "wrote no record: ImportError: no such library"),
        (f"echo '{FAILURE_MARK}OpenCL: no platform'; exit 1", "^OpenCL: no platform"),
        (f"echo '{ShapeAnswer(number=0).to_line()}'", "did not say what it measures on"),
        ("sleep 600", "was not ready after 1 s"),
    ],
)
def test_a_process_that_cannot_start_says_why(child: Child, setup: ShapeSetup, script: str, message: str) -> None:
    """Whatever happens before the first case is no crash at a case."""
    child(script)
    with pytest.raises(MeasurementError, match=message) as caught:
        ShapeProcess(setup, limit_s=1.0)
    assert not isinstance(caught.value, ShapeCrashError)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ShapeAnswer(number=7).to_line(), "answer 7 came for request 1"),
        (f"{ANSWER_MARK}[]", "no answer"),
        (f"{FAILURE_MARK}shapes: no request", "^shapes: no request"),
    ],
)
def test_another_protocol_ends_the_process(child: Child, setup: ShapeSetup, answer: str, message: str) -> None:
    """An answer to something else is never taken for one, and it is nothing that the case did."""
    child(f"echo '{READY}'; read line; echo '{answer}'")
    with started(setup) as process:
        with pytest.raises(MeasurementError, match=message) as caught:
            process.ask(RequestKind.VERIFY, ("a",))
        assert not isinstance(caught.value, ShapeCrashError)
        assert not process.is_open


def test_nothing_is_left_of_a_process(child: Child, setup: ShapeSetup, tmp_path: Path) -> None:
    child(f"sleep 600 & echo $! > {tmp_path}/pid; echo $plan > {tmp_path}/plan; echo '{READY}'; read line")
    with started(setup) as process:
        folder = Path((tmp_path / "plan").read_text().strip()).parent
        pid = int((tmp_path / "pid").read_text())
        assert not is_gone(pid)
        assert folder.exists()
        os.kill(process.pid, signal.SIGSTOP)
    assert wait_until(lambda: is_gone(pid))
    assert not folder.exists()


@pytest.mark.usefixtures("fake_worker")
def test_an_interrupt_ends_the_process(setup: ShapeSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(setup) as process:
        monkeypatch.setattr(process._worker._lines, "next_line", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            process.ask(RequestKind.VERIFY, (gemv(1).case_id,))
        assert wait_until(lambda: is_gone(process.pid))
