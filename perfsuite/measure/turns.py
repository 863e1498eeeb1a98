"""Two fresh workers that take turns on the device, so that what disturbs it for a while disturbs both alike.

Only one of them runs at any time; the other waits on a pipe. Processes that run one after the other see different
minutes of a shared machine, and their ratio shows that before it shows anything else.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import (
    READY_MARK,
    WORKER_LIMIT_S,
    kill_worker,
    read_record,
    refuse_killed,
    start_worker,
)
from perfsuite.measure.plan import TurnsPlan, task_of
from perfsuite.measure.worker_lines import WorkerLines

#: Longest to wait for a worker to end after its last word.
_END_LIMIT_S = 10.0

#: Which of two takes each turn of a block of four, when the first one leads.
_BLOCK = (0, 1, 1, 0)


def run_in_turns(
    plans: tuple[TurnsPlan, TurnsPlan],
    *,
    n_turns: int,
    leader: int,
    extra_environment: Mapping[str, str] | None = None,
    own_environments: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    limit_s: float = WORKER_LIMIT_S,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run `n_turns` turns of each of two plans, in ABBA order, and return the payloads of both.

    The leader is started first, too: of two processes of one build the later one seems to be a few percent slower in
    what lies between operators (docs/results.md, 'The main road').

    Both load their models before the first turn, and each turn begins with a warm-up. An even number of turns leads
    equally often; `leader`, 0 or 1, says which of the two has the first turn.

    Raises `MeasurementError` where a worker failed, was killed, or the pair ran past `limit_s`.
    """
    deadline_s = time.monotonic() + limit_s
    with work_folder() as folder, contextlib.ExitStack() as stack:
        started = {}
        for place in (leader, 1 - leader):
            environment = {**(extra_environment or {}), **own_environments[place]}
            started[place] = stack.enter_context(_worker(plans[place], folder / str(place), environment, deadline_s))
        workers = (started[0], started[1])
        for worker in workers:
            worker.await_ready()
        for turn in turn_order(n_turns, leader):
            workers[turn].take_turn()
        for worker in workers:
            worker.end_turns()
        first, second = (worker.finish() for worker in workers)
        return first, second


def turn_order(n_turns: int, leader: int) -> tuple[int, ...]:
    """Return which of two takes each of ``2 * n_turns`` turns: ABBA ABBA ..., A being the leader."""
    return tuple(_BLOCK[turn % len(_BLOCK)] ^ leader for turn in range(2 * n_turns))


class _TurnWorker:
    """A worker that waits for its turns."""

    def __init__(self, plan: TurnsPlan, process: subprocess.Popen[str], folder: Path, deadline_s: float) -> None:
        self._plan = plan
        self._process = process
        self._folder = folder
        self._deadline_s = deadline_s
        self._said: list[str] = []
        self._worker_lines = WorkerLines(process)

    def take_turn(self) -> None:
        """Let the worker run once, and wait until it has."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        self.await_ready()

    def await_ready(self) -> None:
        """Read what the worker says until it says that it is ready."""
        for line in self._lines():
            if line == READY_MARK:
                return
            self._said.append(line)
        self.finish()
        raise MeasurementError(f"the worker for '{task_of(self._plan)}' ended before its last turn")

    def end_turns(self) -> None:
        """Tell the worker that there are no more turns."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def finish(self) -> dict[str, Any]:
        """Return the payload of the worker's record."""
        self._said.extend(self._lines())
        output = "\n".join(self._said)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_LIMIT_S)
        refuse_killed(self._process, output, task_of(self._plan))
        return read_record(self._plan, self._folder, output)

    def _lines(self) -> Iterator[str]:
        """Yield lines until the worker closes its output; no wait goes beyond the deadline."""
        try:
            while (line := self._worker_lines.next_line(self._deadline_s)) is not None:
                yield line
        except TimeoutError:
            raise MeasurementError(
                f"the worker for '{task_of(self._plan)}' did not finish in time and was stopped; "
                "use a smaller model or scenario"
            ) from None


@contextmanager
def _worker(
    plan: TurnsPlan, folder: Path, extra_environment: Mapping[str, str], deadline_s: float
) -> Iterator[_TurnWorker]:
    """Start a worker, which loads its model and waits for its first turn; it never outlives this."""
    folder.mkdir()
    process = start_worker(plan, folder, extra_environment, stdin=subprocess.PIPE)
    try:
        yield _TurnWorker(plan, process, folder, deadline_s)
    finally:
        kill_worker(process)
