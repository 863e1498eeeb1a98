"""The program that keeps a cell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.nightly import keeper
from perfsuite.nightly.exit_file import read_exit

from ..farm_daemons import awaited

KEEPER = (sys.executable, "-m", "perfsuite.nightly.keeper")
LIMIT_S = 30


def keep(log: Path, code: str) -> subprocess.Popen[bytes]:
    lock = os.open(os.devnull, os.O_RDONLY)
    try:
        command = [*KEEPER, str(log), str(lock), sys.executable, "-c", code]
        return subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(lock,))
    finally:
        os.close(lock)


@pytest.mark.parametrize(("code", "status"), [("exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 128 + 9)])
def test_the_exit_code_is_the_program_s(tmp_path: Path, code: str, status: int) -> None:
    """Signals are 128 and their number, as in a shell; it is left for a night that is no longer there.

    Both of the program's outputs go to the log.
    """
    prints = "import sys; print('out', flush=True); print('err', file=sys.stderr, flush=True)"
    with keep(tmp_path / "log", f"{prints}; {code}") as kept:
        assert kept.wait(LIMIT_S) == status
    note = read_exit(tmp_path)
    assert note is not None
    assert note.exit_code == status
    assert (tmp_path / "log").read_text() == "out\nerr\n"


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_keeper_that_is_asked_to_end_ends_its_program(tmp_path: Path, number: signal.Signals | None) -> None:
    """As the end of the night does, it interrupts the program as Ctrl-C does: it can keep what it has."""
    log = tmp_path / "log"
    code = "import time\nprint('on', flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('kept'); exit(2)"
    with keep(log, code) as kept:
        awaited(lambda: log.read_text())
        assert kept.stdin is not None
        kept.stdin.close() if number is None else kept.send_signal(number)
        assert kept.wait(LIMIT_S) == 2
    assert log.read_text() == "on\nkept\n"
    assert read_exit(tmp_path) is None


def test_the_program_holds_the_lock_of_the_night(tmp_path: Path) -> None:
    """A night that goes on waits for a program whose keeper was killed as well."""
    with keep(tmp_path / "log", "import os, sys; print(os.listdir('/proc/self/fd'))") as kept:
        lock = kept.args[4]  # type: ignore[index]
        kept.wait(LIMIT_S)
    assert f"'{lock}'" in (tmp_path / "log").read_text()


def test_a_program_that_does_not_end_is_killed_with_what_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the patience for Ctrl-C and for a request to terminate."""
    patience = [(number, 0.2) for number, _ in keeper._PATIENCE_S]
    monkeypatch.setattr(keeper, "_PATIENCE_S", patience)
    shell = "trap '' INT TERM; echo on; sleep 60 & wait; sleep 60"
    with subprocess.Popen(["bash", "-c", shell], stdout=subprocess.PIPE, start_new_session=True) as stubborn:
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == b"on\n"
        keeper._end(stubborn)
        assert stubborn.wait(LIMIT_S) == -signal.SIGKILL
        assert stubborn.stdout.read() == b""  # the child that held the pipe open is gone as well
