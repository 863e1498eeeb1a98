"""A link to the native program on a board, which answers as the agent in Python would.

The program reads, writes, runs and holds. Whatever needs judgement is computed here, by the code that does so for this
machine, from copies of the board's files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.device.control_groups import limit_patterns
from perfsuite.device.covariates import device_covariates
from perfsuite.device.fingerprint import clock_conditions, host_fingerprint
from perfsuite.device.machine import Conditions, Machine
from perfsuite.device.stability.governing import ask_governors
from perfsuite.device.stability.power_sensors import check_battery
from perfsuite.device.stability.small_files import read_line
from perfsuite.device.stability.stabilised import wait_until_cool
from perfsuite.errors import LinkError, MeasurementError, OpenClError
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.identity import told_identity
from perfsuite.measure.board.instruments import INSTRUMENT, load_llama_plan, on_board
from perfsuite.measure.board.link import AgentLink
from perfsuite.measure.board.local_board import WATCHED, LocalBoard, read_digest
from perfsuite.measure.board.looks import asked_looks, replay
from perfsuite.measure.board.mirror import FILES, LINKS, Mirror, mirror
from perfsuite.measure.board.program_beside import NOTHING_ASKED, AskedBeside, asked_beside
from perfsuite.measure.board.program_engines import BoardEngines
from perfsuite.measure.board.program_files import ProgramFiles
from perfsuite.measure.board.program_governors import BoardGovernors
from perfsuite.measure.board.program_instruments import ProgramInstruments
from perfsuite.measure.board.program_leading import ProgramPlace
from perfsuite.measure.board.program_live import BoardRecords, heard_there
from perfsuite.measure.board.program_shapes import SHAPES, ProgramShapes
from perfsuite.measure.board.protocol import BoardFacts
from perfsuite.measure.board.watching import seen_beside
from perfsuite.measure.competition import LOOK_S, competition_of
from perfsuite.measure.contention import ContentionMark, processor_ticks
from perfsuite.measure.engine import OPENCL_BACKEND, Engine
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.launch import (
    pinning,
    publishing_processors,
    record_payload,
    refuse_killed,
    still_running,
)
from perfsuite.measure.launches.plan import LAUNCHED
from perfsuite.measure.led_worker import Lead, lead_of
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan, Plan, dump_plan, load_plan, task_of
from perfsuite.measure.probes import CACHE_FILES
from perfsuite.measure.turns import out_of_time, turn_order

if TYPE_CHECKING:
    from perfsuite.measure.board.bundled_opencl import BundledOpenCl
    from perfsuite.measure.launches.own_kernels import OwnKernels
    from perfsuite.measure.shapes.launched_bench import LaunchedDevice
    from perfsuite.measure.shapes.meters import ShapeSetup

#: Clock ticks a second, in which /proc counts. *Source*: proc(5), ``USER_HZ``: 100 on all that Linux runs on here.
_TICKS_PER_S = 100

#: How much longer than a worker's answer its way over the link is waited for, s.
_BEYOND_ANSWER_S = 60.0

#: Puts a file of this machine there: what it is, and where.
Put = Callable[[Path, str], None]


class ProgramLink(AgentLink):
    """One program, which is asked for one thing after the other."""

    def __init__(
        self,
        link: AgentLink,
        welcome: Mapping[str, Any],
        *,
        name: str,
        conditions: Conditions,
        cache_dir: Path,
        put: Put,
    ) -> None:
        """Go on with a link over which a program said hello; `cache_dir` is this machine's."""
        super().__init__(link.pipes, note=link.tell)
        self._name = name
        self._n_asked = link._n_asked
        self._conditions = conditions
        self._cache_dir = cache_dir
        self._put = put
        self._limit_s = 0.0
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._hear: Callable[[Any], None] | None = None
        self._governors = BoardGovernors(ask=self._asked, is_root=bool(welcome["is_root"]))
        self._home, self._bundle = Path(welcome["home"]), Path(welcome["bundle"])
        self._board_cache_dir = Path(welcome["cache_dir"])
        self._machine: Machine | None = None
        self._variables: tuple[str, ...] = ()
        self._properties: tuple[str, ...] = ()
        self._kernels: OwnKernels | None = None
        self._engines = BoardEngines(ask=self._asked, bundle=self._bundle, cache_dir=self._board_cache_dir)
        self._files = ProgramFiles(self._asked)
        self._instruments = ProgramInstruments(
            ask=self._asked, own_library=self._engines.own_libraries.get, bundle=self._bundle
        )
        self._shapes = ProgramShapes(
            self._asked_within,
            _payload,
            self._environment,
            self._options,
            launched=self._launched_device,
            cache_dir=str(self._board_cache_dir),
        )

    def begin(self, *, limit_s: float) -> None:
        """Bring the board into its conditions: governors set, cool enough to begin, battery charged."""
        self._limit_s = limit_s
        conditions = self._conditions
        asked = (conditions.governor, conditions.gpu_governor, conditions.start_below_celsius)
        if set(asked) | {conditions.least_battery_ratio} == {None}:
            return
        with self._mirrored() as board:
            ask_governors(
                conditions, self._notes, root=board.root, take=self._governors.take, is_root=self._governors.is_root
            )

            def sleep(length_s: float) -> None:
                time.sleep(length_s)
                self._lay(board)

            cooled = wait_until_cool(conditions, root=board.root, clock=time.monotonic, sleep=sleep)
            note, problem = check_battery(conditions, board.root)
            self._notes.extend(filter(None, (*cooled.notes, note)))
            self._problems.extend(filter(None, (cooled.problem, problem)))

    def ask(
        self, kind: str, arguments: Mapping[str, Any], *, limit_s: float, hear: Callable[[Any], None] | None = None
    ) -> Any:
        """Answer as the agent in Python would; raises as `AgentLink.ask`.

        Raises `MeasurementError`, too, for what takes the suite in Python there: `hear` would be given nothing.
        """
        if (lack := lacking(kind, arguments)) is not None:
            raise MeasurementError(
                f"{self._name}: {lack} cannot be had from a board without Python yet; "
                f"run 'perfsuite devices setup {self._name} --with-python'"
            )
        self._limit_s, self._hear = limit_s, hear
        if kind in SHAPES:
            return understood(kind, self._shapes.answer(kind), arguments)
        answer = _ANSWERS.get(kind)
        if answer is None:
            return self._asked(kind, arguments)
        return understood(kind, lambda each: answer(self, each), arguments)

    def end(self, *, limit_s: float) -> Held | None:
        """As `AgentLink.end`."""
        self._files.close()
        held = super().end(limit_s=limit_s)
        return None if held is None else self._with_own(held)

    def _asked(self, kind: str, arguments: Mapping[str, Any] | None = None, records: BoardRecords | None = None) -> Any:
        hear = None if records is None else records.take
        return super().ask(kind, arguments or {}, limit_s=self._limit_s, hear=hear)

    def _asked_within(self, kind: str, arguments: Mapping[str, Any], limit_s: float) -> Any:
        return super().ask(kind, arguments, limit_s=limit_s + _BEYOND_ANSWER_S)

    def _with_own(self, held: Held) -> Held:
        return Held(notes=(*held.notes, *self._notes), problems=(*held.problems, *self._problems))

    @contextmanager
    def _mirrored(self) -> Iterator[Mirror]:
        with mirror() as board:
            self._lay(board)
            yield board

    def _lay(self, board: Mirror, files: tuple[str, ...] = FILES, links: tuple[str, ...] = LINKS) -> None:
        plain = self._asked("snapshot", {"patterns": list(files), "links": list(links)})
        understood("snapshot", board.lay, plain)

    def _known_machine(self, board: Mirror | None = None) -> Machine:
        """Return the machine there; asked once, for the processors that it lets us use are bound by then."""
        if self._machine is None:
            told = self._asked("machine")
            self._variables, self._properties = tuple(told["variables"]), tuple(told["properties"])
            if board is None:
                with self._mirrored() as own:
                    self._machine = _machine(told, own.root)
            else:
                self._machine = _machine(told, board.root)
        return self._machine

    def _facts(self, _: Mapping[str, Any]) -> dict[str, Any]:
        with self._mirrored() as board:
            machine = self._known_machine(board)
            self._lay(board, limit_patterns(board.root), ())
            identity = told_identity(
                board.root,
                properties=self._properties,
                kept=lambda: self._asked("board_number"),
                hostname=machine.hostname,
                where=str(self._home),
            )
            facts = BoardFacts(
                fingerprint=host_fingerprint(board.root, machine),
                identity=identity,
                hostname=machine.hostname,
                default_threads=machine.default_threads,
                usable_threads=machine.usable_threads,
                cache_dir=self._board_cache_dir,
                engine=self._engines.bundled(),
                suite_digest=None,  # a bundle is known by its version, which the hello has checked
                opencl_environment={},  # the board's own loader and vendors
                load_average=round(float((read_line(board.root / "proc/loadavg") or "").partition(" ")[0]), 3),
                clock_conditions=clock_conditions(board.root),
                settable_governors=self._governors.settable(board),
            )
        return facts.to_plain()

    def _held(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return self._with_own(Held.from_plain(self._asked("held"))).to_plain()

    def _covariates(self, _: Mapping[str, Any]) -> dict[str, float | None]:
        with self._mirrored() as board:
            conditions = self._conditions
            return device_covariates(board.root, zones=conditions.thermal_zones, processors=conditions.processors)

    def _competition(self, _: Mapping[str, Any]) -> dict[str, Any]:
        before, after = self._asked("competition", {"look_s": LOOK_S})
        usable = frozenset(self._known_machine().usable_processors)
        with mirror() as board:
            first, last = (_mark(board, each, usable) for each in (before, after))
        used = {(pid, start): ticks for pid, start, _, ticks, _ in before["processes"]}
        busy = [
            (name, (ticks - used.get((pid, start), 0)) / _TICKS_PER_S)
            for pid, start, name, ticks, is_own in after["processes"]
            if not is_own and ticks > used.get((pid, start), 0)
        ]
        return competition_of(first.until(last), busy).to_plain()

    def _run(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        try:
            with self._files.placed(asked) as placed:
                return {**self._measured(placed), **self._files.left(asked)}
        except MeasurementError as error:
            raise on_board(self._name, error) if OPENCL_BACKEND in str(error) else error from None

    def _measured(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        plan = load_plan(asked["plan"])
        if (lead := lead_of(plan)) is not None:
            return self._led(lead, plan, asked)
        if isinstance(plan, LAUNCHED):
            return self._own_kernels().run(plan, partial(self._run_plan, asked, is_watched=isinstance(plan, WATCHED)))
        return self._run_plan(asked, plan, is_watched=isinstance(plan, WATCHED))

    def _own_kernels(self) -> OwnKernels:
        """Return what knows the board's OpenCL devices, and which outputs it has seen."""
        from perfsuite.measure.launches.own_kernels import OwnKernels  # brings NumPy

        if self._kernels is None:
            logs, cache_dir = self._cache_dir / "logs" / self._name, str(self._board_cache_dir)
            self._kernels = OwnKernels(read_there=self._kernel_source, log_dir=logs, cache_dir=cache_dir)
        return self._kernels

    def _launched_device(self, setup: ShapeSetup) -> LaunchedDevice:
        """Return the device that a process for shapes launches our tiled kernels on."""
        from perfsuite.measure.shapes.launched_bench import LaunchedDevice  # brings NumPy

        own, plan = self._own_kernels(), setup.plan
        run = partial(self._run_plan, {"extra_environment": setup.environment}, is_watched=False)
        device, limits = own.device(plan.platform, run)
        sources = Path(plan.kernels_dir) if plan.kernels_dir else KERNELS_DIR
        return LaunchedDevice(device=device, limits=limits, kernels_dir=sources, log_dir=own.log_dir)

    def _instrument(self, asked: Mapping[str, Any]) -> Any:
        """Answer as `answered_instrument` does."""
        return _INSTRUMENTS[asked["name"]](self, asked)

    def _opencl_backend(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        engine = Engine.from_plain(asked["engine"])
        return (
            self._bundled_opencl()
            .backend(engine, self._engines.own_library(engine).parent, asked["platform"])
            .to_plain()
        )

    def _tracing_layer(self, _: Mapping[str, Any]) -> str:
        return str(self._bundled_opencl().tracing_layer())

    def _bundled_opencl(self) -> BundledOpenCl:
        from perfsuite.measure.board.bundled_opencl import BundledOpenCl  # few runs are of OpenCL

        def run(plan: Plan, environment: Mapping[str, str]) -> dict[str, Any]:
            return self._run_plan({"extra_environment": environment}, plan, is_watched=False)

        return BundledOpenCl(
            name=self._name,
            bundle=self._bundle,
            cache_dir=self._board_cache_dir,
            digests=self._engines.digests,
            run=run,
        )

    def _kernel_source(self, path: Path) -> bytes:
        if (content := self._engines.look(path)) is None:
            raise OpenClError(f"{path}: is not on {self._name}; expected the kernels' sources there")
        return content

    def _run_plan(self, asked: Mapping[str, Any], plan: Plan, *, is_watched: bool) -> dict[str, Any]:
        beside = self._asked_beside(plan, asked)
        with heard_there(self._hear if asked.get("is_heard") else None) as records:
            request = {
                "plan": dump_plan(plan),
                "environment": self._environment(plan, asked["extra_environment"]),
                "options": self._options(plan),
                "limit_s": asked.get("limit_s", WORKER_LIMIT_S),
                "beside": {**beside.request, **_live(plan, records)},
                "stands_on": self._stands_on(plan, records),
            }
            if not is_watched:
                return self._outcome(plan, {**request, "looks": None}, beside, records)[0]
            with self._mirrored() as board:
                seen, looks = asked_looks(board, self._conditions)
                payload, told = self._outcome(plan, {**request, "looks": looks}, beside, records)
                replay(board, seen, told["looks"])
        return {**payload, **seen_beside(seen)}

    def _asked_beside(self, plan: Plan, asked: Mapping[str, Any]) -> AskedBeside:
        beside = Beside.from_plain(asked.get("beside", {}))
        if beside == Beside():
            return NOTHING_ASKED
        return asked_beside(plan, beside, lambda board, files: self._lay(board, files, ()))

    def _stands_on(self, plan: Plan, records: BoardRecords | None) -> list[int] | None:
        """Return the processors from which the program hears a run."""
        llama = getattr(plan, "llama", plan)
        if records is None or not isinstance(llama, LlamaPlan):
            return None
        usable = frozenset(self._known_machine().usable_processors)
        return sorted(publishing_processors(llama, usable)) or None

    def _outcome(
        self, plan: Plan, request: Mapping[str, Any], beside: AskedBeside, records: BoardRecords | None
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Run a worker; return its payload with what was seen beside it, and all that the program told."""
        told = self._asked("run", request, records)
        if records is not None:
            records.ended_ns = told.get("ended_ns")
        try:
            return {**_payload(plan, {**told, "limit_s": request["limit_s"]}), **beside.payload(told)}, told
        except MeasurementError as error:
            raise beside.reason(told, error) from None

    def _led(self, lead: Lead, plan: Plan, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Lead a worker there from here; beside one that measures cases the device is looked at."""
        beside = self._asked_beside(plan, asked)
        place = ProgramPlace(
            ask=self._asked_within,
            payload=_payload,
            environment=self._environment(plan, asked["extra_environment"]),
            options=self._options(plan),
            machine=self._known_machine().architecture,
            layout=lambda llama: self._instruments.tensor_layout(llama.library_dir),
            file=self._files.read,
            beside=beside.request,
        )
        limit_s = asked.get("limit_s", WORKER_LIMIT_S)
        if not isinstance(plan, WATCHED):
            return lead(plan, place, limit_s)
        with self._mirrored() as board:
            seen, place.looks = asked_looks(board, self._conditions)
            try:
                payload = lead(plan, place, limit_s)
            except MeasurementError as error:
                raise beside.reason(place.outcome, error) from None
            replay(board, seen, place.taken)
        return {**payload, **seen_beside(seen), **beside.payload(place.outcome)}

    def _run_in_turns(self, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        with self._files.placed(asked) as placed:
            return self._turns_taken(placed)

    def _turns_taken(self, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        plans = [load_plan(each) for each in asked["plans"]]
        task = task_of(plans[0])
        environments = [
            self._environment(plan, {**asked["extra_environment"], **own})
            for plan, own in zip(plans, asked["own_environments"], strict=True)
        ]
        hear = self._hear if asked.get("is_heard") else None
        limit_s = asked.get("limit_s", WORKER_LIMIT_S)
        with heard_there(hear) as records, self._mirrored() as board:
            seen, looks = asked_looks(board, self._conditions)
            told = self._asked(
                "run_in_turns",
                {
                    "plans": asked["plans"],
                    "environments": environments,
                    "options": [self._options(plan) for plan in plans],
                    "leader": asked["leader"],
                    "order": list(turn_order(asked["n_turns"], asked["leader"])),
                    "limit_s": limit_s,
                    "looks": looks,
                    "besides": [_live(plan, records) for plan in plans],
                    "stands_on": self._stands_on(plans[0], records),
                },
                records,
            )
            if told["is_late"]:
                raise out_of_time(task, limit_s)
            if (early := told["ended_early"]) is not None:
                _payload(plans[early], told["outcomes"][early])
                raise LinkError(f"the worker for '{task}' ended before its last turn, and left a record")
            payloads = [_payload(plan, each) for plan, each in zip(plans, told["outcomes"], strict=True)]
            replay(board, seen, told["looks"])
        return [{**payload, **seen_beside(seen)} for payload in payloads]

    def _environment(self, plan: Plan, extra: Mapping[str, str]) -> dict[str, str]:
        usable = self._known_machine().usable_processors
        return {"GGML_NO_BACKTRACE": "1", **pinning(plan, usable, self._variables), **extra}

    def _options(self, plan: Plan) -> list[str]:
        library = self._engines.own_libraries.get(str(getattr(getattr(plan, "llama", plan), "library_dir", "")))
        return [] if library is None else [f"--engine-library={library}"]

    def _named_weights(self, asked: Mapping[str, Any]) -> str:
        """Write synthetic weights here, and put them there under their hash, once."""
        here = LocalBoard(cache_dir=self._cache_dir).place_named_weights(asked["name"], asked["identity"])
        request = {"digest": read_digest(here)}
        placed = self._asked("put_weights", request)
        if not placed["is_there"]:
            self.tell(f"putting {here} there, once")
            self._put(here, placed["path"])
            placed = self._asked("put_weights", request)
        if not placed["is_there"]:
            raise LinkError(f"{here} did not arrive as {placed['path']}; run it again")
        return str(placed["path"])

    def _set_governor(self, asked: Mapping[str, Any]) -> None:
        self._governors.give_back()
        if asked["governor"] is not None:
            with self._mirrored() as board:
                self._governors.set_for_a_while(asked["governor"], board)

    def _set_load(self, asked: Mapping[str, Any]) -> None:
        self._asked("set_load", {"n_processes": asked["n_processes"]})

    def _independent_rates(self, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        from perfsuite.measure.board.program_programs import BoardPrograms  # looks through installed distributions

        machine = self._known_machine()
        programs = BoardPrograms(ask=self._asked, run_plan=self._asked_devices, architecture=machine.architecture)
        with mirror() as board:
            self._lay(board, CACHE_FILES, ())
            return programs.rates(asked["n_threads"], asked["platform"], self.tell, board.root, machine.memory_bytes)

    def _asked_devices(self, plan: Plan, environment: Mapping[str, str]) -> dict[str, Any]:
        return self._run({"plan": dump_plan(plan), "extra_environment": environment})


_ANSWERS: dict[str, Callable[[ProgramLink, Mapping[str, Any]], Any]] = {
    "facts": ProgramLink._facts,
    "held": ProgramLink._held,
    "covariates": ProgramLink._covariates,
    "competition": ProgramLink._competition,
    "run": ProgramLink._run,
    "run_in_turns": ProgramLink._run_in_turns,
    "named_weights": ProgramLink._named_weights,
    "find_engine": lambda link, asked: link._engines.find(asked["library_dir"]).to_plain(),
    "keep": lambda link, asked: link._engines.keep(_engine(asked), asked["version"]),
    "kept_folder": lambda link, asked: _text(link._engines.kept_folder(asked["engine_id"])),
    "set_governor": ProgramLink._set_governor,
    "set_load": ProgramLink._set_load,
    "independent_rates": ProgramLink._independent_rates,
    INSTRUMENT: ProgramLink._instrument,
}

_INSTRUMENTS: dict[str, Callable[[ProgramLink, Mapping[str, Any]], Any]] = {
    "opencl_backend": ProgramLink._opencl_backend,
    "tracing_layer": ProgramLink._tracing_layer,
    "phase_tracer": lambda link, asked: link._instruments.phase_tracer(_library_dir(asked)),
    "ebpf_helper": lambda link, _: link._instruments.ebpf_helper(),
    "tensor_layout": lambda link, asked: link._instruments.tensor_layout(_library_dir(asked)).to_plain(),
    "cpu_features": lambda link, asked: list(link._instruments.cpu_features(load_llama_plan(asked).library_dir)),
}


def lacking(kind: str, asked: Mapping[str, Any]) -> str | None:
    """Name what a request asks for that only an agent in Python has; None where the program serves it."""
    if kind == INSTRUMENT:
        return None if asked["name"] in _INSTRUMENTS else f"the instrument {asked['name']!r}"
    if kind not in ("run", "run_in_turns"):
        return None
    plans = [load_plan(each) for each in (asked["plans"] if kind == "run_in_turns" else [asked["plan"]])]
    engines = [llama for plan in plans if isinstance(llama := getattr(plan, "llama", plan), LlamaPlan)]
    if not asked.get("is_heard") and any(each.live_socket is not None for each in engines):
        return "a socket of live records"
    return None


def _engine(asked: Mapping[str, Any]) -> Engine | None:
    return None if asked["engine"] is None else Engine.from_plain(asked["engine"])


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _library_dir(asked: Mapping[str, Any]) -> str:
    return str(Engine.from_plain(asked["engine"]).library_dir)


def _live(plan: Plan, records: BoardRecords | None) -> dict[str, Any]:
    """Return what a worker is asked for that is heard."""
    llama = getattr(plan, "llama", plan)
    is_heard = records is not None and isinstance(llama, LlamaPlan) and llama.live_socket is not None
    return {"live": True} if is_heard else {}


def _machine(told: Mapping[str, Any], root: Path) -> Machine:
    """Return the machine whose files lie below a root, with what it told beside them."""
    lines = (read_line(root / "proc/meminfo") or "").splitlines()
    memory_kib = next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
    cpus = root / "sys/devices/system/cpu"
    siblings = {read_line(path) for path in cpus.glob("cpu[0-9]*/topology/core_cpus_list")} or {
        read_line(path) for path in cpus.glob("cpu[0-9]*/topology/thread_siblings_list")
    }
    return Machine(
        hostname=str(told["hostname"]),
        architecture=str(told["architecture"]),
        n_processors=int(told["n_processors"]),
        n_cores=len(siblings) or None,
        memory_bytes=memory_kib * 1024,
        usable_processors=tuple(map(int, told["usable_processors"])),
    )


def _mark(board: Mirror, look: Mapping[str, Any], usable: frozenset[int]) -> ContentionMark:
    board.write("stat", look["stat"])
    ticks = processor_ticks(board.root / "stat", usable)
    own_ns = int(look["own_ns"])
    return ContentionMark(now_ns=int(look["at_ns"]), own_ns=own_ns, running_ns=None, waiting_ns=None, ticks=ticks)


def _payload(plan: Plan, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an ended worker has measured, or raise with its reason."""
    task = task_of(plan)
    if told.get("is_late"):
        raise still_running(task, float(told["took_s"]), told.get("limit_s", WORKER_LIMIT_S))
    output = bytes(told["output"]).decode("utf-8", "replace")
    number = told["signal"]
    refuse_killed(None if number is None else -int(number), output, task)
    return record_payload(plan, told["record"], output)
