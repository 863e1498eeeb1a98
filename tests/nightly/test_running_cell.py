"""A cell that is being measured, and what becomes of it when its night is killed or it does not end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.nightly.cell_end import LOG_NAME, CellEnd, Ending
from perfsuite.nightly.conduct import RunningCell

from ..farm_daemons import awaited
from .conftest import cells, plan_of


@contextmanager
def running(folder: Path, code: str) -> Iterator[tuple[RunningCell, Path]]:
    """Run a program as a cell's pytest; with it comes its log."""
    (cell,) = cells("host", "any")
    lock = os.open(os.devnull, os.O_RDONLY)
    try:
        deadline_s = time.monotonic() + 600
        program = (sys.executable, "-c", code)
        ran = RunningCell(cell, folder, plan_of(cell), program=program, lock=lock, deadline_s=deadline_s)
        yield ran, folder / cell.key / LOG_NAME
    finally:
        os.close(lock)


def end_of(ran: RunningCell) -> CellEnd:
    end = awaited(ran.ended)
    assert isinstance(end, CellEnd)
    return end


@pytest.mark.parametrize(("code", "status"), [("exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 128 + 9)])
def test_a_cell_has_the_exit_code_of_its_program(tmp_path: Path, code: str, status: int) -> None:
    """Signals are 128 and their number, as in a shell; both outputs go to the log, and it holds the night's lock."""
    prints = "import os, sys; print(os.listdir('/proc/self/fd'), flush=True); print('err', file=sys.stderr, flush=True)"
    with running(tmp_path, f"{prints}; {code}") as (ran, log):
        assert end_of(ran).exit_code == status
        assert len(log.read_text().split(",")) == 5  # input, two outputs, the lock, and the folder that is listed
        assert log.read_text().endswith("\nerr\n")


def test_a_cell_that_does_not_end_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the patience for Ctrl-C and for a request to terminate; it is broken, for the reason why it was stopped."""
    monkeypatch.setattr("perfsuite.nightly.conduct._PATIENCE_S", ((2, 0.2), (15, 0.2), (9, 0.2)))
    shell = "trap '' INT TERM; sleep 60 & echo $!; wait; sleep 60"
    with running(tmp_path, f"import os; os.execvp('bash', ['bash', '-c', {shell!r}])") as (ran, log):
        child = int(awaited(log.read_text))
        ran.stop("ended with the night")
        end = end_of(ran)
        assert (end.ending, end.exit_code, end.why) == (Ending.BROKEN, None, "ended with the night")
        awaited(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text())


#: A night in the background, which ignores Ctrl-C, and whose cell waits for that.
_NIGHT = """
import os, signal, sys, time
from pathlib import Path
from tests.nightly.test_running_cell import running
signal.signal(signal.SIGINT, signal.SIG_IGN)
code = "import time; print('on', flush=True)\\ntry: time.sleep(60)\\nexcept KeyboardInterrupt: print('kept')"
with running(Path(sys.argv[1]), code):
    time.sleep(60)
"""


def test_a_cell_is_interrupted_with_the_night_that_is_killed(tmp_path: Path) -> None:
    """As by Ctrl-C, so that it keeps what it measured and gives its board back."""
    with subprocess.Popen([sys.executable, "-c", _NIGHT, tmp_path]) as night:
        log = tmp_path / "host" / "any-siso" / LOG_NAME
        awaited(lambda: log.exists() and log.read_text() == "on\n")
        night.kill()
        awaited(lambda: log.read_text() == "on\nkept\n")
