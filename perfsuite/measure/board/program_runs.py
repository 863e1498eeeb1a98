"""Running plans by the program of a board: what a worker is started with there, and what is made of how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from perfsuite.device.machine import Conditions
from perfsuite.errors import LinkError, MeasurementError, OpenClError
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.local_board import WATCHED
from perfsuite.measure.board.looks import asked_looks, replay
from perfsuite.measure.board.program_beside import NOTHING_ASKED, AskedBeside, asked_beside
from perfsuite.measure.board.program_engines import BoardEngines
from perfsuite.measure.board.program_files import ProgramFiles
from perfsuite.measure.board.program_leading import ProgramPlace
from perfsuite.measure.board.program_live import BoardRecords, heard_there
from perfsuite.measure.board.program_machine import ProgramMachine
from perfsuite.measure.board.protocol import Hear
from perfsuite.measure.board.told_worker import ToldWorker
from perfsuite.measure.board.watching import seen_beside
from perfsuite.measure.launch import pinning, publishing_processors, record_payload, refuse_killed, still_running
from perfsuite.measure.launches.plan import LAUNCHED
from perfsuite.measure.led_worker import Lead, lead_of
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan, Plan, TurnsPlan, dump_plan, task_of
from perfsuite.measure.turns import out_of_time, turn_order
from perfsuite.records.tensor_layout import TensorLayout

if TYPE_CHECKING:
    from perfsuite.measure.launches.own_kernels import OwnKernels
    from perfsuite.measure.shapes.launched_bench import LaunchedDevice
    from perfsuite.measure.shapes.meter import ShapeSession
    from perfsuite.measure.shapes.meters import ShapeSetup


class Ask(Protocol):
    """Asks the program there; `hear` takes what it delivers before it answers."""

    def __call__(
        self,
        kind: str,
        arguments: Mapping[str, Any],
        limit_s: float | None = None,
        hear: Callable[[Any], None] | None = None,
    ) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """How a plan is run."""

    environment: Mapping[str, str] = field(default_factory=dict)
    beside: Beside = field(default_factory=Beside)
    hear: Hear | None = None
    limit_s: float = WORKER_LIMIT_S


@dataclass(kw_only=True)
class ProgramRuns:
    """The workers of one board."""

    ask: Ask
    #: The device's name.
    name: str
    conditions: Conditions
    machine: ProgramMachine
    engines: BoardEngines
    files: ProgramFiles
    layout: Callable[[LlamaPlan], TensorLayout]
    #: The board's cache, and this machine's.
    board_cache_dir: Path
    cache_dir: Path
    _kernels: OwnKernels | None = None

    def run(self, plan: Plan, request: RunRequest) -> dict[str, Any]:
        """Run a plan in a fresh process there."""
        if (lead := lead_of(plan)) is not None:
            return self._led(lead, plan, request)
        if isinstance(plan, LAUNCHED):
            run = partial(self._run_once, request=request, is_watched=isinstance(plan, WATCHED))
            return self._own_kernels().run(plan, run)
        return self._run_once(plan, request=request, is_watched=isinstance(plan, WATCHED))

    def run_bare(self, plan: Plan, environment: Mapping[str, str]) -> dict[str, Any]:
        """Run what asks, and measures nothing."""
        return self._run_once(plan, request=RunRequest(environment=environment), is_watched=False)

    def _run_once(self, plan: Plan, *, request: RunRequest, is_watched: bool) -> dict[str, Any]:
        """Run a plan in one worker; beside one that measures cases the device is looked at."""
        beside = self._asked_beside(plan, request)
        with heard_there(request.hear) as records:
            asked = {
                "plan": dump_plan(plan),
                "environment": self._environment(plan, request.environment),
                "options": self._options(plan),
                "limit_s": request.limit_s,
                "beside": {**beside.request, **_live(plan, records)},
                "stands_on": self._stands_on(plan, records),
            }
            if not is_watched:
                return self._outcome(plan, {**asked, "looks": None}, beside, records)[0]
            with self.machine.mirrored() as board:
                seen, looks = asked_looks(board, self.conditions)
                payload, told = self._outcome(plan, {**asked, "looks": looks}, beside, records)
                replay(board, seen, told["looks"])
        return {**payload, **seen_beside(seen)}

    def run_in_turns(
        self,
        plans: tuple[TurnsPlan, TurnsPlan],
        request: RunRequest,
        *,
        own_environments: tuple[Mapping[str, str], Mapping[str, str]],
        n_turns: int,
        leader: int,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let two processes there take turns."""
        environments = [
            self._environment(plan, {**request.environment, **own})
            for plan, own in zip(plans, own_environments, strict=True)
        ]
        with heard_there(request.hear) as records, self.machine.mirrored() as board:
            seen, looks = asked_looks(board, self.conditions)
            asked = {
                "plans": [dump_plan(plan) for plan in plans],
                "environments": environments,
                "options": [self._options(plan) for plan in plans],
                "leader": leader,
                "order": list(turn_order(n_turns, leader)),
                "limit_s": request.limit_s,
                "looks": looks,
                "besides": [_live(plan, records) for plan in plans],
                "stands_on": self._stands_on(plans[0], records),
            }
            told = self._waited("run_in_turns", asked, request.limit_s, records)
            first, second = _turns_taken(plans, told, request.limit_s)
            replay(board, seen, told["looks"])
        return {**first, **seen_beside(seen)}, {**second, **seen_beside(seen)}

    def start_shapes(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
        """Start a process there that measures shapes; what is judged of them is judged here."""
        from perfsuite.measure.shapes.ggml_session import GgmlSession  # these bring NumPy
        from perfsuite.measure.shapes.launched_bench import LaunchedSession

        if setup.plan.library_dir:
            return GgmlSession(self._worker, setup, limit_s=limit_s)
        device, cache_dir = self._launched_device(setup), str(self.board_cache_dir)
        return LaunchedSession(self._worker, setup, device, limit_s=limit_s, cache_dir=cache_dir)

    def _worker(self, plan: Plan, environment: Mapping[str, str]) -> closing[ToldWorker]:
        """Start a worker that is asked step by step, and ends with the context."""
        own = self._environment(plan, environment)
        return closing(ToldWorker(self.ask, payload_of, plan, environment=own, options=self._options(plan)))

    def _own_kernels(self) -> OwnKernels:
        """Return what knows the board's OpenCL devices, and which outputs it has seen."""
        from perfsuite.measure.launches.own_kernels import OwnKernels  # brings NumPy

        if self._kernels is None:
            logs, cache_dir = self.cache_dir / "logs" / self.name, str(self.board_cache_dir)
            self._kernels = OwnKernels(read_there=self._kernel_source, log_dir=logs, cache_dir=cache_dir)
        return self._kernels

    def _launched_device(self, setup: ShapeSetup) -> LaunchedDevice:
        """Return the device that a process for shapes launches our tiled kernels on."""
        from perfsuite.measure.shapes.launched_bench import LaunchedDevice  # brings NumPy

        run = partial(self.run_bare, environment=setup.environment)
        return LaunchedDevice.of(self._own_kernels(), setup.plan, run)

    def _kernel_source(self, path: Path) -> bytes:
        if (content := self.engines.look(path)) is None:
            raise OpenClError(f"{path}: is not on {self.name}; expected the kernels' sources there")
        return content

    def _asked_beside(self, plan: Plan, request: RunRequest) -> AskedBeside:
        if request.beside == Beside():
            return NOTHING_ASKED
        return asked_beside(plan, request.beside, lambda board, files: self.machine.lay(board, files, ()))

    def _stands_on(self, plan: Plan, records: BoardRecords | None) -> list[int] | None:
        """Return the processors from which the program hears a run."""
        llama = getattr(plan, "llama", plan)
        if records is None or not isinstance(llama, LlamaPlan):
            return None
        return sorted(publishing_processors(llama, self.machine.usable_processors())) or None

    def _waited(self, kind: str, asked: Mapping[str, Any], limit_s: float, records: BoardRecords | None) -> Any:
        """Ask for what takes as long as a worker does."""
        told = self.ask(kind, asked, limit_s, None if records is None else records.take)
        if records is not None:
            records.ended_ns = told.get("ended_ns")
        return told

    def _outcome(
        self, plan: Plan, asked: Mapping[str, Any], beside: AskedBeside, records: BoardRecords | None
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Run a worker; return its payload with what was seen beside it, and all that the program answered."""
        told = self._waited("run", asked, asked["limit_s"], records)
        try:
            return {**payload_of(plan, {**told, "limit_s": asked["limit_s"]}), **beside.payload(told)}, told
        except MeasurementError as error:
            raise beside.reason(told, error) from None

    def _led(self, lead: Lead, plan: Plan, request: RunRequest) -> dict[str, Any]:
        """Lead a worker there from here; beside one that measures cases the device is looked at."""
        beside = self._asked_beside(plan, request)
        place = ProgramPlace(
            ask=self.ask,
            payload=payload_of,
            environment=self._environment(plan, request.environment),
            options=self._options(plan),
            machine=self.machine.machine().architecture,
            layout=self.layout,
            file=self.files.read,
            beside=beside.request,
        )
        if not isinstance(plan, WATCHED):
            return lead(plan, place, request.limit_s)
        with self.machine.mirrored() as board:
            seen, place.looks = asked_looks(board, self.conditions)
            try:
                payload = lead(plan, place, request.limit_s)
            except MeasurementError as error:
                raise beside.reason(place.outcome, error) from None
            replay(board, seen, place.taken)
        return {**payload, **seen_beside(seen), **beside.payload(place.outcome)}

    def _environment(self, plan: Plan, extra: Mapping[str, str]) -> dict[str, str]:
        usable = self.machine.machine().usable_processors
        return {"GGML_NO_BACKTRACE": "1", **pinning(plan, usable, self.machine.variables), **extra}

    def _options(self, plan: Plan) -> list[str]:
        library = self.engines.own_libraries.get(str(getattr(getattr(plan, "llama", plan), "library_dir", "")))
        return [] if library is None else [f"--engine-library={library}"]


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
        raise out_of_time(task, limit_s)
    if (early := told["ended_early"]) is not None:
        payload_of(plans[early], told["outcomes"][early])
        raise LinkError(f"the worker for '{task}' ended before its last turn, and left a record")
    first, second = (payload_of(plan, each) for plan, each in zip(plans, told["outcomes"], strict=True))
    return first, second


def _live(plan: Plan, records: BoardRecords | None) -> dict[str, Any]:
    """Return what a worker is asked for that is heard."""
    llama = getattr(plan, "llama", plan)
    is_heard = records is not None and isinstance(llama, LlamaPlan) and llama.live_socket is not None
    return {"live": True} if is_heard else {}
