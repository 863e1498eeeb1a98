"""Programs that run one after the other on a device: each can be ended, with all that it has started."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.process_start import process_start
from perfsuite.device.setup.steps import Steps
from perfsuite.errors import DeviceError


def steps(folder: Path) -> Steps:
    return Steps(folder / "log", lambda **_: None)


def is_alive(pid: int) -> bool:
    started = process_start(pid)
    return started is not None and not started.is_ended


def test_steps_can_be_ended_from_another_thread(tmp_path: Path) -> None:
    ended = steps(tmp_path)
    threading.Timer(0.3, ended.end).start()
    with pytest.raises(DeviceError, match="sleeping"):
        ended.run("sleeping", ["sleep", "60"], 60.0)
    with pytest.raises(DeviceError, match="ended from outside"):
        ended.run("sleeping", ["sleep", "60"], 60.0)


def test_a_program_that_starts_while_the_end_comes_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal between two steps may come when the next program has been started and is not known yet."""
    ended, started = steps(tmp_path), []
    plain_start = subprocess.Popen

    def start(*words: Any, **how: Any) -> subprocess.Popen[bytes]:
        process = plain_start(*words, **how)
        started.append(process)
        ended.end()
        return process

    monkeypatch.setattr("perfsuite.device.setup.steps.subprocess.Popen", start)
    with pytest.raises(DeviceError, match="ended from outside"):
        ended.run("sleeping", ["sleep", "60"], 3.0)
    assert not is_alive(started[0].pid)


#: A program that gives its child a process group of its own, as ninja does, and ends at once when it is asked to.
_OWN_GROUP = """
import os, sys, time
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    open(sys.argv[1], "w").write(str(os.getpid()))
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


def test_a_compiler_in_a_process_group_of_its_own_is_ended(tmp_path: Path) -> None:
    ended, pid_file = steps(tmp_path), tmp_path / "pid"

    def end_when_it_runs() -> None:
        deadline_s = time.monotonic() + 30.0
        while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        ended.end()

    threading.Thread(target=end_when_it_runs).start()
    with pytest.raises(DeviceError, match="compiling"):
        ended.run("compiling", [sys.executable, "-c", _OWN_GROUP, str(pid_file)], 60.0)
    assert not is_alive(int(pid_file.read_text()))
