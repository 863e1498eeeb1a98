"""A board that is this machine, at the end of a link of pipes, with a stand-in for its workers."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import kill
from pathlib import Path

import pytest

from perfsuite.device.conditions import NO_CONDITIONS, Conditions
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
from perfsuite.measure.board.connecting import Connecting, LinkLimits
from perfsuite.measure.board.hello import Hello
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.remote_board import RemoteBoard

#: Longer than any test; whoever started it ends it.
FOREVER_S = 300

#: Limits that a test can wait for.
QUICK = LinkLimits(ping_s=0.1, silence_s=20.0, answer_s=60.0, reconnect_s=10.0, retry_s=0.1, end_s=30.0)

_AGENT = "import sys; {executable}from perfsuite.measure.board.agent import main; sys.exit(main())"


@dataclass(kw_only=True)
class BoardHome:
    """What ``perfsuite devices setup`` leaves on a board: a folder with a Python that has the suite."""

    folder: Path
    #: What was told at the desk.
    told: list[str] = field(default_factory=list)

    @property
    def locks(self) -> Path:
        """Where the board keeps its lock."""
        return self.folder / "locks"

    @property
    def pid(self) -> int:
        """The agent that was started last."""
        return int((self.folder / "agent.pid").read_text())

    def install(self, worker: str | None = None, *, before: str = "", changed: str = "") -> None:
        """Put the suite there, `changed` by a line of Python.

        `worker` is a script in the place of workers, `before` one that the shell runs first.
        """
        executable = changed and f"{changed}; "
        if worker is not None:
            path = self.folder / "worker"
            path.write_text(f"#!/bin/sh\nfor record; do plan=$last last=$record; done\n{worker}\n")
            path.chmod(0o755)
            executable += f"sys.executable = {str(path)!r}; "
        command = shlex.join([sys.executable, "-c", _AGENT.format(executable=executable)])
        cache = shlex.quote(str(self.folder / "cache"))
        self.python(
            f"{before}\necho $$ > {shlex.quote(str(self.folder))}/agent.pid\nXDG_CACHE_HOME={cache} exec {command}"
        )

    def python(self, script: str) -> None:
        """Put a script in the place of the suite's Python there."""
        path = self.folder / "venv" / "bin" / "python"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.locks.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def hello(self, *, run_id: str = "run-1", conditions: Conditions = NO_CONDITIONS) -> Hello:
        """Return what a desk says first."""
        claim = Claim(
            name="board", user="ada", host="desk", run_id=run_id, purpose="a test", lock_folder=str(self.locks)
        )
        return Hello(claim=claim, conditions=conditions)

    def board(self, limits: LinkLimits = QUICK, hello: Hello | None = None) -> RemoteBoard:
        """Return the desk's end."""
        connecting = Connecting(
            name="board",
            target=open_target(Reach()),
            home=str(self.folder),
            hello=replace(hello or self.hello(), silence_limit_s=limits.silence_s),
            tell=self.told.append,
            limits=limits,
        )
        return RemoteBoard(connecting=connecting)

    def end(self, number: int = signal.SIGKILL) -> None:
        """End the agent from outside."""
        kill(self.pid, number)


@pytest.fixture
def home(tmp_path: Path) -> BoardHome:
    """Return a board's folder with the suite in it."""
    found = BoardHome(folder=tmp_path / "home with 'quotes'")
    found.folder.mkdir()
    found.install()
    return found


@pytest.fixture
def board(home: BoardHome) -> Iterator[RemoteBoard]:
    """Return the desk's end of a link that is not open yet; it is closed after the test."""
    found = home.board()
    yield found
    found.close()
