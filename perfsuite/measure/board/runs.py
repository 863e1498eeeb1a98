"""Running plans by the program of a board: what a worker is started with there, and what is made of how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from perfsuite.errors import LinkError, MeasurementError, OpenClError
from perfsuite.measure.board.beside import NOTHING_ASKED, AskedBeside, Beside, asked_beside
from perfsuite.measure.board.told_worker import ToldWorker
from perfsuite.measure.board.watching import asked_looks, replay, seen_beside
from perfsuite.measure.contention import ONE_SIDED_RATIO
from perfsuite.measure.launch import publishing_processors, record_payload, refuse_killed, still_running
from perfsuite.measure.launches.plan import LAUNCHED
from perfsuite.measure.plan import (
    WORKER_LIMIT_S,
    KernelPlan,
    LlamaPlan,
    Plan,
    StepsPlan,
    TurnsPlan,
    dump_plan,
    limit_text,
    task_of,
)

if TYPE_CHECKING:
    from perfsuite.measure.board.program_live import BoardRecords
    from perfsuite.measure.board.protocol import Board
    from perfsuite.measure.live import Delivery
    from perfsuite.measure.shapes.meter import BenchDescription, ShapeSession
    from perfsuite.measure.shapes.meters import ShapeSetup
    from perfsuite.workload.shapes.shape_case import ShapeCase

_Answer = TypeVar("_Answer")

#: Takes the live records of a run while it goes on.
Hear: TypeAlias = "Callable[[Delivery], None]"

#: Why a run fails, beside a board that is lost.
FAILURES = (MeasurementError, OpenClError)

#: What measures the cases, and is watched; what probes or asks is not.
WATCHED = (LlamaPlan, KernelPlan)

#: Which of two takes each turn of a block, when the first one leads.
_BLOCK = (0, 1, 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """How a plan is run."""

    environment: Mapping[str, str] = field(default_factory=dict)
    beside: Beside = field(default_factory=Beside)
    hear: Hear | None = None
    limit_s: float = WORKER_LIMIT_S


def run_plan(board: Board, plan: Plan, request: RunRequest) -> dict[str, Any]:
    """Run a plan in a fresh process there, or lead one; as `Board.run`."""
    from perfsuite.measure.led_worker import lead_of  # most plans run by themselves

    if (lead := lead_of(plan)) is not None:
        return _led(board, lead, plan, request)
    if isinstance(plan, LAUNCHED):
        run = partial(_run_once, board, request=request, is_watched=isinstance(plan, WATCHED))
        return board.own_kernels(request.environment).run(plan, run)
    return _run_once(board, plan, request=request, is_watched=isinstance(plan, WATCHED))


def run_bare(board: Board, plan: Plan, environment: Mapping[str, str]) -> dict[str, Any]:
    """Run what asks, and measures nothing."""
    return _run_once(board, plan, request=RunRequest(environment=environment), is_watched=False)


def _run_once(board: Board, plan: Plan, *, request: RunRequest, is_watched: bool) -> dict[str, Any]:
    """Run a plan in one worker; beside one that measures cases the device is looked at."""
    beside = _asked_beside(board, plan, request)
    command, options = board.command_of(plan)
    with _heard(board, (plan,), request.hear) as records, beside.watched_here(is_here=board.is_local):
        asked = {
            "plan": dump_plan(plan),
            "environment": board.environment_of(plan, request.environment),
            "command": command,
            "options": options,
            "limit_s": request.limit_s,
            "beside": {**beside.request, **_live(plan, records)},
            "stands_on": _stands_on(board, plan, records),
        }
        if not is_watched:
            return _outcome(board, plan, {**asked, "looks": None}, beside, records)[0]
        files = board.program.files_to_look_at()
        seen, looks = asked_looks(files, board.conditions)
        payload, told = _outcome(board, plan, {**asked, "looks": looks}, beside, records)
        replay(files, seen, told["looks"])
    return {**payload, **seen_beside(seen)}


def run_turns(
    board: Board,
    plans: tuple[TurnsPlan, TurnsPlan],
    request: RunRequest,
    *,
    own_environments: tuple[Mapping[str, str], Mapping[str, str]],
    n_turns: int,
    leader: int,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let two processes there take turns; as `Board.run_in_turns`."""
    environments = [
        board.environment_of(plan, {**request.environment, **own})
        for plan, own in zip(plans, own_environments, strict=True)
    ]
    commands, options = zip(*map(board.command_of, plans), strict=True)
    with _heard(board, plans, request.hear) as records:
        files = board.program.files_to_look_at()
        seen, looks = asked_looks(files, board.conditions)
        asked = {
            "plans": [dump_plan(plan) for plan in plans],
            "environments": environments,
            "commands": list(commands),
            "options": list(options),
            "leader": leader,
            "order": list(turn_order(n_turns, leader)),
            "block": len(_BLOCK),
            "one_sided_ratio": ONE_SIDED_RATIO,
            "limit_s": request.limit_s,
            "looks": looks,
            "besides": [_live(plan, records) for plan in plans],
            "stands_on": _stands_on(board, plans[0], records),
        }
        told = _waited(board, "run_in_turns", asked, request.limit_s, records)
        first, second = _turns_taken(plans, told, request.limit_s)
        replay(files, seen, told["looks"])
    return {**first, **seen_beside(seen)}, {**second, **seen_beside(seen)}


def turn_order(n_turns: int, leader: int) -> tuple[int, ...]:
    """Return which of two takes each of ``2 * n_turns`` turns: ABBA ABBA ..., A being the leader."""
    return tuple(_BLOCK[turn % len(_BLOCK)] ^ leader for turn in range(2 * n_turns))


def start_shapes(board: Board, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
    """Start a process there that measures shapes; what is judged of them is judged here."""
    from perfsuite.measure.shapes.ggml_session import GgmlSession  # these bring NumPy
    from perfsuite.measure.shapes.launched_bench import LaunchedDevice, LaunchedSession

    program = board.program

    def start(plan: Plan, environment: Mapping[str, str]) -> closing[ToldWorker]:
        own, (_, options) = board.environment_of(plan, environment), board.command_of(plan)
        return closing(ToldWorker(program.ask, payload_of, plan, environment=own, options=options))

    if setup.plan.library_dir:
        return _KeptShapes(board, GgmlSession(start, setup, limit_s=limit_s))
    own = board.own_kernels(setup.environment)
    run = partial(run_bare, board, environment=setup.environment)
    device = LaunchedDevice.of(own, setup.plan, run)
    return _KeptShapes(board, LaunchedSession(start, setup, device, limit_s=limit_s, cache_dir=own.cache_dir))


class _KeptShapes:
    """`ShapeSession` of a process there, which is gone with its link."""

    def __init__(self, board: Board, session: ShapeSession) -> None:
        self._board, self._own, self._session = board, board.program, session
        self.description: BenchDescription = session.description

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""
        return self._session.is_open and self._board.has(self._own)

    def ask(self, question: Callable[..., _Answer], cases: Sequence[ShapeCase], /, **how: Any) -> _Answer:
        """As `ShapeSession.ask`; a link that was lost is reached again, for the next process."""

        def ask() -> _Answer:
            if self._board.program is not self._own:
                raise MeasurementError("the process that measures shapes is gone; start another one")
            return self._session.ask(question, cases, **how)

        return self._board.asked("ask_shapes", ask)

    def close(self) -> None:
        """End the process; where the link is gone, it has ended with that."""
        self._session.close()


@dataclass(kw_only=True)
class RunPlace:
    """Where one run's workers are led: the board's program starts them, and the desk decides."""

    board: Board
    environment: Mapping[str, str]
    options: list[str]
    #: What is done and seen beside the worker; the looks that are to be taken, and those that were.
    beside: Mapping[str, Any]
    looks: Mapping[str, Any] | None = None
    taken: Any = None
    #: How the worker ended, with what was seen beside it.
    outcome: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def worker(self, plan: StepsPlan) -> Iterator[ToldWorker]:
        """Start a worker, which is ended with the context."""
        told = ToldWorker(
            self.board.program.ask,
            payload_of,
            plan,
            environment=self.environment,
            options=self.options,
            looks=self.looks,
            beside=self.beside,
        )
        with closing(told) as worker:
            try:
                yield worker
            finally:
                self.taken, self.outcome = worker.looks, worker.outcome


def _led(board: Board, lead: Any, plan: Plan, request: RunRequest) -> dict[str, Any]:
    """Lead a worker there from here; beside one that measures cases the device is looked at."""
    beside = _asked_beside(board, plan, request)
    environment, (_, options) = board.environment_of(plan, request.environment), board.command_of(plan)
    place = RunPlace(board=board, environment=environment, options=options, beside=beside.request)
    with beside.watched_here(is_here=board.is_local):
        if not isinstance(plan, WATCHED):
            payload: dict[str, Any] = lead(plan, place, request.limit_s)
            return payload
        files = board.program.files_to_look_at()
        seen, place.looks = asked_looks(files, board.conditions)
        try:
            payload = lead(plan, place, request.limit_s)
        except MeasurementError as error:
            raise beside.reason(place.outcome, error) from None
        replay(files, seen, place.taken)
    return {**payload, **seen_beside(seen), **beside.payload(place.outcome)}


def _asked_beside(board: Board, plan: Plan, request: RunRequest) -> AskedBeside:
    if request.beside == Beside():
        return NOTHING_ASKED
    return asked_beside(plan, request.beside, lambda files: board.program.files_of(files, ()))


@contextmanager
def _heard(board: Board, plans: tuple[Plan, ...], hear: Hear | None) -> Iterator[BoardRecords | None]:
    """Give what takes the live records of a run: for `hear`, or for those who follow its socket on this machine."""
    sockets = [llama.live_socket for plan in plans if (llama := _llama(plan)) and llama.live_socket is not None]
    if not sockets or (hear is None and not board.is_local):
        yield None
        return
    from perfsuite.measure.board.program_live import heard_there  # few runs are followed

    with ExitStack() as stack:
        if hear is None:
            from perfsuite.measure.live_server import published  # as above

            hear = stack.enter_context(published(Path(sockets[0])))
        yield stack.enter_context(heard_there(hear))


def _llama(plan: Plan) -> LlamaPlan | None:
    llama = getattr(plan, "llama", plan)
    return llama if isinstance(llama, LlamaPlan) else None


def _live(plan: Plan, records: BoardRecords | None) -> dict[str, Any]:
    """Return what a worker is asked for that is heard."""
    llama = _llama(plan)
    return {"live": True} if records is not None and llama is not None and llama.live_socket is not None else {}


def _stands_on(board: Board, plan: Plan, records: BoardRecords | None) -> list[int] | None:
    """Return the processors from which the program hears a run."""
    llama = _llama(plan)
    if records is None or llama is None:
        return None
    return sorted(publishing_processors(llama, frozenset(board.machine().usable_processors))) or None


def _waited(
    board: Board, kind: str, asked: Mapping[str, Any], limit_s: float, records: BoardRecords | None
) -> Mapping[str, Any]:
    """Ask for what takes as long as a worker does."""
    told: Mapping[str, Any] = board.program.ask(kind, asked, limit_s, None if records is None else records.take)
    if records is not None:
        records.ended_ns = told.get("ended_ns")
    return told


def _outcome(
    board: Board, plan: Plan, asked: Mapping[str, Any], beside: AskedBeside, records: BoardRecords | None
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Run a worker; return its payload with what was seen beside it, and all that the program answered."""
    told = _waited(board, "run", asked, asked["limit_s"], records)
    try:
        return {**payload_of(plan, {**told, "limit_s": asked["limit_s"]}), **beside.payload(told)}, told
    except MeasurementError as error:
        raise beside.reason(told, error) from None


def payload_of(plan: Plan, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an ended worker has measured, or raise with its reason."""
    task = task_of(plan)
    if told.get("is_late"):
        raise still_running(task, float(told["took_s"]), told.get("limit_s", WORKER_LIMIT_S))
    output = bytes(told["output"]).decode("utf-8", "replace")
    number = told["signal"]
    refuse_killed(None if number is None else -int(number), output, task)
    return record_payload(plan, told["record"], output)


def _turns_taken(
    plans: tuple[TurnsPlan, TurnsPlan], told: Mapping[str, Any], limit_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    task = task_of(plans[0])
    if told["is_late"]:
        raise MeasurementError(
            f"the worker for '{task}' did not finish in time and was stopped ({limit_text(limit_s)}); "
            "use a smaller model or scenario, or another build if this one hangs"
        )
    if (early := told["ended_early"]) is not None:
        payload_of(plans[early], told["outcomes"][early])
        raise LinkError(f"the worker for '{task}' ended before its last turn, and left a record")
    first, second = (payload_of(plan, each) for plan, each in zip(plans, told["outcomes"], strict=True))
    return first, second
