"""A cell that is being measured, and what becomes of it when its keeper is ended from without."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from perfsuite.nightly.cell_end import CellEnd, Ending
from perfsuite.nightly.running_cell import _PATIENCE_S, RunningCell, end_session

from ..farm_daemons import awaited
from .conftest import STUB, cells, plan_of

LIMIT_S = 30


def test_all_of_a_session_is_ended_in_whatever_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """What heeds no request is killed; processes of other sessions are left alone."""
    patience = [(number, 0.3) for number, _ in _PATIENCE_S]
    monkeypatch.setattr("perfsuite.nightly.running_cell._PATIENCE_S", patience)
    shell = "trap '' INT TERM; set -m; sleep 60 & sleep 60 & echo on; wait"
    with (
        subprocess.Popen(["sleep", "60"], start_new_session=True) as other,
        subprocess.Popen(["bash", "-c", shell], stdout=subprocess.PIPE, start_new_session=True) as first,
    ):
        assert first.stdout is not None
        assert first.stdout.readline() == b"on\n"
        assert end_session(first.pid) == 3
        assert first.wait(LIMIT_S) == -signal.SIGKILL
        assert first.stdout.read() == b""
        assert end_session(first.pid) == 0
        assert other.poll() is None
        other.kill()


@pytest.mark.parametrize(
    ("number", "why"), [(signal.SIGTERM, "ended by signal 2"), (signal.SIGKILL, "ended by signal 9")]
)
def test_a_keeper_that_is_ended_leaves_no_pytest_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, why: str
) -> None:
    """The cell is broken with an exit code that is one, and only when nothing of it is running any more."""
    monkeypatch.chdir(tmp_path)
    (cell,) = cells("host", "hangs")
    lock = os.open(os.devnull, os.O_RDONLY)
    deadline_s = time.monotonic() + 600
    running = RunningCell(cell, tmp_path, plan_of(cell), program=STUB, lock=lock, deadline_s=deadline_s)
    os.close(lock)
    awaited(lambda: (tmp_path / "starts").read_text())
    (pytest_process,) = psutil.Process(running._keeper.pid).children()
    os.kill(running._keeper.pid, number)
    end = awaited(running.ended)
    assert isinstance(end, CellEnd)
    assert end.ending is Ending.BROKEN
    assert end.exit_code is not None
    assert end.exit_code >= 0
    assert why in end.why
    assert not psutil.pid_exists(pytest_process.pid) or pytest_process.status() == psutil.STATUS_ZOMBIE
