"""``perfsuite trace --pid`` where there is nobody to follow, and where the recorder ends by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.tracing import command_program as module
from tests.command_streams import Refused, Streams


class _Ended:
    """A recorder that has ended before its process, with a note why."""

    def __init__(self) -> None:
        self._notes = ["counter cycles is left out"]

    def has_ended(self) -> bool:
        """It has, by now."""
        self._notes.append("process 1 has executed another program")
        return True

    def notes(self) -> tuple[str, ...]:
        """What it has said so far."""
        return tuple(self._notes)


def test_a_process_that_has_ended_is_told_and_leaves_no_folder(tmp_path: Path, refused: Refused) -> None:
    """A number that no process has any more is refused before anything is made."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    told = refused(["trace", "--pid", str(ended.pid), "--output", str(tmp_path / "run")])
    assert f"process {ended.pid}: is not there, or has ended" in told
    assert not (tmp_path / "run").exists()


def test_a_recorder_that_ends_by_itself_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """Where the disk is full or the program is another, the process may live for days; each note is told once."""

    @contextmanager
    def followed(*_: object) -> Iterator[_Ended]:
        yield _Ended()

    monkeypatch.setattr(module, "followed", followed)
    monkeypatch.setattr(module, "await_engine", lambda *_, **__: True)
    monkeypatch.setattr(module, "finish_recording", lambda _: None)
    monkeypatch.setattr(module, "tell", lambda *_: None)
    assert main(["trace", "--pid", str(os.getpid()), "--output", str(tmp_path / "run")]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "follow" not in line]
    assert told == ["trace: counter cycles is left out", "trace: process 1 has executed another program"]
