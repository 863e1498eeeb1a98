"""Two fresh workers that take turns on the device, so that what disturbs it for a while disturbs both alike.

Only one of them runs at any time; the other waits on a pipe. Processes that run one after the other see different
minutes of a shared machine, and their ratio shows that before it shows anything else. A pair of which one side alone is
disturbed is broken off after a block of turns: nothing that follows would make it usable.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.contention import is_one_sided
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.plan import WORKER_LIMIT_S, TurnsPlan, limit_text
from perfsuite.measure.worker_lines import WaitingWorker

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
        started: dict[int, WaitingWorker] = {}
        for place in (leader, 1 - leader):
            own_folder = folder / str(place)
            own_folder.mkdir()
            environment = {**(extra_environment or {}), **own_environments[place]}
            worker = WaitingWorker(plans[place], own_folder, environment)
            started[place] = stack.enter_context(contextlib.closing(worker))
        try:
            return _turns_taken((started[0], started[1]), turn_order(n_turns, leader), deadline_s)
        except TimeoutError:
            raise out_of_time(started[0].task, limit_s) from None


def out_of_time(task: str, limit_s: float) -> MeasurementError:
    """Return the error for a pair that ran past its limit."""
    return MeasurementError(
        f"the worker for '{task}' did not finish in time and was stopped ({limit_text(limit_s)}); "
        "use a smaller model or scenario, or another build if this one hangs"
    )


def turn_order(n_turns: int, leader: int) -> tuple[int, ...]:
    """Return which of two takes each of ``2 * n_turns`` turns: ABBA ABBA ..., A being the leader."""
    return tuple(_BLOCK[turn % len(_BLOCK)] ^ leader for turn in range(2 * n_turns))


def _turns_taken(
    workers: tuple[WaitingWorker, WaitingWorker], order: Sequence[int], deadline_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let both load their models, then each run once whenever it is its turn; return their payloads."""
    for worker in workers:
        _await_ready(worker, deadline_s)
    waited_ns, taken_ns = [0, 0], [0, 0]
    for n_taken, turn in enumerate(order, 1):
        workers[turn].tell("", deadline_s)
        waiting_ns, turn_ns = _waited(_await_ready(workers[turn], deadline_s))
        waited_ns[turn] += waiting_ns
        taken_ns[turn] += turn_ns
        if n_taken % len(_BLOCK) == 0 and is_one_sided(
            *(w / max(1, t) for w, t in zip(waited_ns, taken_ns, strict=True))
        ):
            break
    for worker in workers:
        worker.end_input()
    for worker in workers:
        worker.answer(None, lambda: deadline_s)
    first, second = (worker.payload() for worker in workers)
    return first, second


def _await_ready(worker: WaitingWorker, deadline_s: float) -> str:
    line = worker.answer(READY_MARK, lambda: deadline_s)
    if line is None:
        raise worker.early_end("its last turn")
    return line


def _waited(line: str) -> tuple[int, int]:
    """Return how long the threads waited in a turn, and how long it took, ns; 0 where the worker does not say."""
    words = line.removeprefix(READY_MARK).split()
    return (int(words[0]), int(words[1])) if len(words) == 2 and all(map(str.isdecimal, words)) else (0, 0)
