"""Real runs from a desk: ``pytest --device=myboard`` as a process of its own, against a test board, over real ssh.

A `Desk` is a folder with the profile of a board. ``desk.run()`` is a run to its end, ``desk.start()`` one that goes on,
and with `in_replicate` a test waits until a worker measures on the board, to break something just then.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from perfsuite.device.reach import Reach
from perfsuite.device.work_folder import WorkFolder, new_work_folder
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from tests.device_lock import lock_holder

from .board_links import write_profile
from .board_namespaces import ROOT, NamespaceBoard
from .farm_daemons import awaited

#: The smallest model, and the shortest scenario, in a run of seconds.
_SMALLEST = (
    "--model=smollm2-135m-l2-q8_0",
    "--scenario=p4-g2",
    "--threads=1",
    "--perf-replicates=3",
    "--baseline=off",
    "--perf-calibrate=off",
    "-kphase",
    "-pno:labgrid",
    "-pno:cacheprovider",
)

#: Options of a run that takes the board, and measures nothing.
NOTHING = ("-knothing",)

_TABLES = """
# What others do on this machine meanwhile is to decide nothing.
[judging]
max_waiting_ratio = 0.99
max_others_ratio = 0.99
ceiling_spread_ratio = 0.99
forecast_least_ns = 1_000_000_000_000

[conditions]
governor = "performance"
"""

#: Longest that a run of the tests takes.
LIMIT_S = 60.0

WORKER = r"perfsuite-worker run"
PROGRAM = r"perfsuite-worker serve$"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    status: int
    output: str
    #: What ``run.json`` holds; None where there is none.
    record: dict[str, Any] | None

    @property
    def errors(self) -> list[str]:
        """The lines that say what went wrong, without what begins them."""
        found = re.findall(r"^(?:ERROR|perfsuite: error): (.*)$", self.output, re.MULTILINE)
        return [each.strip() for each in found]

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        return {each["id"]: each for each in (self.record or {"cases": ()})["cases"]}

    @property
    def sample_counts(self) -> set[int]:
        return {len(each["samples_ns"]) for each in self.cases.values()}

    @property
    def outcomes(self) -> set[str]:
        return {each["outcome"] for each in self.cases.values()}

    @property
    def has_gone_well(self) -> bool:
        """Whether it ended as it should; what its neighbours took may have slowed it down meanwhile."""
        if self.status == NOTHING_JUDGED_EXIT:
            return all(each["reason"].startswith("throttled: ") for each in self.cases.values())
        return self.status == 0

    @property
    def notes(self) -> str:
        return "\n".join((self.record or {"device_notes": ()})["device_notes"])


@dataclass(kw_only=True)
class RunningRun:
    process: subprocess.Popen[bytes]
    folder: Path
    #: Longest that it takes.
    limit_s: float = LIMIT_S

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text(errors="replace")

    def until(self, said: str) -> None:
        awaited(lambda: said in self.output or self.process.poll() is not None, LIMIT_S)
        assert said in self.output, self.output

    def end(self) -> EndedRun:
        status = self.process.wait(self.limit_s)
        path = self.folder / "run" / "run.json"
        record = json.loads(path.read_text()) if path.exists() else None
        return EndedRun(status=status, output=self.output, record=record)

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        started = [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]
        for each in started:
            each.kill()
        self.process.wait(LIMIT_S)


@dataclass(kw_only=True)
class Desk:
    folder: Path
    reach: Reach
    name: str = "myboard"
    #: Longest that what is started here takes; an emulated board is slow, and is waited for as any other.
    limit_s: float = LIMIT_S
    is_quick: bool = True
    runs: list[RunningRun] = field(default_factory=list)
    #: For temporary files, which runs that are killed leave; ssh's sockets need a short path.
    _temporary: WorkFolder = field(default_factory=lambda: new_work_folder("/tmp"))

    def __post_init__(self) -> None:
        self.write_profile(self.reach)

    def write_profile(self, reach: Reach) -> None:
        write_profile(self.folder / "devices" / f"{self.name}.toml", reach, tables=_TABLES)

    def start(self, *options: str) -> RunningRun:
        """Start a run; it has a session of its own, as in a terminal of its own."""
        folder = self.folder / f"run-{len(self.runs)}"
        folder.mkdir()
        quick = ["-ptests.quick_links"] if self.is_quick else []
        words = [f"--device={self.name}", *_SMALLEST, *quick, f"--perf-dir={folder / 'run'}", *options]
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *words],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self._temporary.path)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.runs.append(RunningRun(process=process, folder=folder, limit_s=self.limit_s))
        return self.runs[-1]

    def run(self, *options: str) -> EndedRun:
        return self.start(*options).end()

    def perfsuite(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "perfsuite.cli", *words]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=self.limit_s
        )

    def clear(self) -> None:
        for each in self.runs:
            if each.process.poll() is None:
                each.kill()
        self._temporary.remove()


def in_replicate(run: RunningRun, board: NamespaceBoard, number: int) -> None:
    """Wait until the board is at this replicate of the engine; before it one looks for OpenCL, and one for ceilings."""
    seen: set[int] = set()

    def is_there() -> bool:
        assert run.process.poll() is None, run.output
        workers = board.processes(WORKER)
        # What a worker starts has the worker's command line until it has one of its own.
        seen.update(worker for worker in workers if not _is_of(worker, workers))
        return len(seen) > number + 1

    awaited(is_there, LIMIT_S)


def _is_of(pid: int, parents: Collection[int]) -> bool:
    """Whether one of these processes has started this one, or it has ended."""
    try:
        return psutil.Process(pid).ppid() in parents
    except psutil.NoSuchProcess:
        return True


def kill_worker(board: NamespaceBoard) -> None:
    awaited(lambda: board.kill(WORKER))


def is_let_go(board: NamespaceBoard) -> bool:
    return not board.processes(PROGRAM) and lock_holder(board.outside("/run/lock")) is None


def awaited_free(board: NamespaceBoard, look: Callable[[], bool] = lambda: True) -> None:
    awaited(lambda: is_let_go(board) and look(), 15.0)
