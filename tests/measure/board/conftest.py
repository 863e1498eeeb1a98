"""Boards that are this machine, at the end of a link of pipes, with a bundle's program."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
from perfsuite.measure.board.connecting import LinkLimits
from perfsuite.measure.board.hello import Hello
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.remote_board import RemoteBoard, TargetConnecting
from perfsuite.measure.engine import find_engine
from perfsuite.measure.native import (
    find_worker,
)
from perfsuite.measure.plan import DevicesPlan, LlamaPlan

from ...own_bundle import own_libraries
from ...sys_trees import plant
from ..conftest import wait_until

#: Longer than any test; whoever started it ends it.
FOREVER_S = 300

#: Limits that a test can wait for.
QUICK = LinkLimits(ping_s=0.1, silence_s=20.0, answer_s=60.0, reconnect_s=10.0, retry_s=0.1, end_s=30.0)

#: What the program of a bundle is called, so that no other test's is taken for it.
PROGRAM = f"program-{os.getpid()}"

#: The fixtures ``opened`` and ``on_tree``.
Opened = Callable[..., RemoteBoard]
OnTree = Callable[[str], "BoardHome"]

#: Plans of workers that a script stands in for.
ANY = DevicesPlan(platform=None)
LLAMA = LlamaPlan(gguf_path="", library_dir="", engine_build_id="", cache_dir="", n_threads=1, n_prompt=1, n_gen=1)


@dataclass(kw_only=True)
class BoardHome:
    """What ``perfsuite devices setup`` leaves on a board."""

    folder: Path
    #: The native program.
    program: Path
    #: The way to it.
    reach: Reach = field(default_factory=Reach)
    #: A tree of stand-ins for the board's files.
    root: Path | None = None
    #: What was told at the desk.
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.install()

    @property
    def locks(self) -> Path:
        return self.folder / "locks"

    @property
    def pid(self) -> int:
        return int((self.folder / "program.pid").read_text())

    @property
    def worker_pid(self) -> int:
        """The number that the stand-in of a worker has written down, which is waited for."""
        path = self.folder / "worker.pid"
        assert wait_until(lambda: path.exists() and bool(path.read_text().strip()))
        return int(path.read_text())

    def install(self, worker: str | None = None, *, before: str = "") -> None:
        """Put the suite there; `worker` is a script in the place of workers, `before` one that the shell runs first."""
        path = self.folder / "perfsuite-worker"
        if worker is not None:
            path.write_text(f"#!/bin/sh\nfor record; do plan=$last last=$record; done\n{worker}\n")
            path.chmod(0o755)
        root = [] if self.root is None else [f"--root={self.root}"]
        command = shlex.join([str(self._bundled()), "serve", *root, *([f"--worker={path}"] if worker else [])])
        cache, pid = (shlex.quote(str(self.folder / each)) for each in ("cache", "program.pid"))
        self.script(f"{before}\necho $$ > {pid}\nXDG_CACHE_HOME={cache} exec {command}")

    @property
    def wrapper(self) -> Path:
        return self.folder / "bundle" / "current" / "perfsuite-worker"

    def script(self, script: str) -> None:
        """Put a script in the place of the suite's program there."""
        self.wrapper.parent.mkdir(parents=True, exist_ok=True)
        self.locks.mkdir(exist_ok=True)
        self.wrapper.write_text(f"#!/bin/sh\n{script}\n")
        self.wrapper.chmod(0o755)

    @property
    def bundle(self) -> Path:
        return self._bundled().parent

    def bring_libraries(self, engine_cache: Path) -> None:
        """Put the suite's own libraries for this machine's llama.cpp into the bundle."""
        place = self._bundled().parent / "lib"
        place.mkdir()
        (place.parent / "engine").symlink_to(find_engine().library_dir)
        for library in own_libraries(engine_cache):
            (place / library.name).symlink_to(library)

    def _bundled(self) -> Path:
        """Put the program into a bundle with the llama.cpp of this machine, once."""
        bundle = self.folder / "bundle" / "0123456789abcdef"
        if not bundle.exists():
            bundle.mkdir(parents=True)
            os.link(self.program, bundle / PROGRAM)
            manifest = {"suite_version": __version__, "engine": find_engine().to_plain()}
            (bundle / "manifest.json").write_text(json.dumps(manifest))
            (self.folder / "bundle" / "current").symlink_to(bundle.name)
        return bundle / PROGRAM

    def hello(self, *, run_id: str = "run-1", conditions: Conditions = NO_CONDITIONS) -> Hello:
        claim = Claim(
            name="board", user="ada", host="desk", run_id=run_id, purpose="a test", lock_folder=str(self.locks)
        )
        return Hello(claim=claim, conditions=conditions)

    def board(self, limits: LinkLimits = QUICK, hello: Hello | None = None) -> RemoteBoard:
        connecting = TargetConnecting(
            name="board",
            target=open_target(self.reach),
            home=str(self.folder),
            hello=replace(hello or self.hello(), silence_limit_s=limits.silence_s),
            tell=self.told.append,
            limits=limits,
            cache_dir=self.folder / "desk",
        )
        return RemoteBoard(connecting=connecting)

    def end(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)


def rooted(home: BoardHome) -> Path:
    assert home.root is not None
    return home.root


@pytest.fixture(scope="session")
def program(engine_cache: Path) -> Path:
    return find_worker(engine_cache)


@pytest.fixture
def bundled(tmp_path: Path, program: Path) -> BoardHome:
    return BoardHome(folder=tmp_path / "home", program=program)


@pytest.fixture
def on_tree(bundled: BoardHome, tmp_path: Path) -> OnTree:
    """Return what lets the board have another one's files."""

    def planted(name: str) -> BoardHome:
        bundled.root = plant(name, tmp_path / "tree")
        bundled.install()
        return bundled

    return planted


@pytest.fixture
def opened() -> Iterator[Opened]:
    boards: list[RemoteBoard] = []

    def open_one(home: BoardHome, conditions: Conditions | None = None, run_id: str = "run-1") -> RemoteBoard:
        hello = home.hello(run_id=run_id)
        boards.append(home.board(hello=replace(hello, conditions=conditions or hello.conditions)))
        boards[-1].open()
        return boards[-1]

    yield open_one
    for each in boards:
        each.close()


@pytest.fixture
def home(tmp_path: Path, program: Path) -> BoardHome:
    return BoardHome(folder=tmp_path / "home with 'quotes'", program=program)


@pytest.fixture
def board(home: BoardHome) -> Iterator[RemoteBoard]:
    """Return the desk's end of a link that is not open yet; it is closed after the test."""
    found = home.board()
    yield found
    found.close()
