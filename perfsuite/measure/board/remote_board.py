"""A board at the end of a link, whose bundle brings all that is needed there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perfsuite.device.control_groups import limit_patterns
from perfsuite.device.fingerprint import clock_conditions, host_fingerprint
from perfsuite.device.machine import Machine
from perfsuite.device.setup.bundle_scripts import NO_PROGRAM, OLD_SETUP, suite_command
from perfsuite.device.stability.small_files import read_line
from perfsuite.device.target.protocol import last_line
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError, LinkError, MeasurementError, OpenClError, PerfsuiteError
from perfsuite.measure.board.connecting import OWN_WORDS, Connecting
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.identity import told_identity
from perfsuite.measure.board.link import LostLinkError, MessageLink
from perfsuite.measure.board.pipes import Pipes, ProcessPipes
from perfsuite.measure.board.program import Program
from perfsuite.measure.board.program_engines import BoardEngines, read_digest
from perfsuite.measure.board.program_instruments import ProgramInstruments
from perfsuite.measure.board.protocol import Board, BoardFacts
from perfsuite.measure.board.runs import run_bare
from perfsuite.measure.engine import OPENCL_BACKEND, Engine
from perfsuite.measure.launch import pinning
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan, Plan
from perfsuite.measure.probes import CACHE_FILES
from perfsuite.records.own_files import user_cache
from perfsuite.workload.weights import Weights, materialize

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.ebpf import EbpfRecording
    from perfsuite.measure.launches.own_kernels import OwnKernels

_Answer = TypeVar("_Answer")


#: How OpenSSH's client ends where the link fails, or a signal ended what it had started.
SSH_FAILED = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetConnecting(Connecting):
    """A board that is reached by a `Target`."""

    target: Target
    #: `Reach.home`.
    home: str
    #: This machine's, for weights that are written here and put there; None is the user's.
    cache_dir: Path | None = None

    @property
    def where(self) -> str:
        """The way to it."""
        return self.target.text

    def started(self) -> Pipes:
        """Start the program of the board's bundle."""
        process = self.target.start(suite_command(self.home, "serve"))
        return ProcessPipes(process, ping_s=self.limits.ping_s, silence_limit_s=self.limits.silence_s)

    def explained(self, link: MessageLink, lost: LostLinkError) -> PerfsuiteError:
        """Say why a link is lost: what carried it may have failed, or nothing is set up there."""
        pipes, where = link.pipes, self.where
        status = pipes.exit_status() if lost.has_ended else None
        own = last_line(pipes.errors.decode("utf-8", "replace"))
        if not pipes.has_begun and status in NO_PROGRAM:
            pipes.cut()
            seen = OLD_SETUP if own == OLD_SETUP else "perfsuite is not installed there"
            return DeviceError(f"{self.name}: {seen} ({where}, {self.home}); run 'perfsuite devices setup {self.name}'")
        is_carried = pipes.has_begun and not pipes.errors and status != SSH_FAILED
        if status is None or own.startswith(OWN_WORDS) or is_carried:
            return Connecting.explained(self, link, lost)
        pipes.cut()
        if not pipes.has_begun and status == 0:
            return LinkError(
                f"{where}: what is started there ended, and is not the suite's program or not whole, as after a loss "
                f"of power; run 'perfsuite devices setup {self.name}'"
            )
        return LinkError(f"{where}: {self.target.link_complaint(pipes.errors)}")


@dataclass(kw_only=True)
class RemoteBoard(Board):
    """A device behind a `Target`; it is reached when it is opened, and once more when the link is lost."""

    is_local: bool = False
    connecting: TargetConnecting
    #: By the identity of weights: where they are there.
    _placed: dict[str, Path] = field(default_factory=dict, init=False)
    #: What the bundle of a program has, and what its OpenCL devices are.
    _engines: tuple[Program, BoardEngines] | None = field(default=None, init=False)
    _instruments: ProgramInstruments | None = field(default=None, init=False)
    _kernels: OwnKernels | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Keep a link that refuses another board."""
        super().__post_init__()
        self._link.recognise = self._refuse_another

    @property
    def name(self) -> str:
        """The device's."""
        return self.connecting.name

    @property
    def instruments(self) -> ProgramInstruments:
        if self._instruments is None:
            self._instruments = ProgramInstruments(board=self)
        return self._instruments

    @property
    def engines(self) -> BoardEngines:
        """The builds of llama.cpp there."""
        return self._engines_of(self.program)

    def _engines_of(self, program: Program) -> BoardEngines:
        if self._engines is None or self._engines[0] is not program:
            self._engines = program, BoardEngines(ask=program.ask, bundle=program.bundle, cache_dir=program.cache_dir)
        return self._engines[1]

    def asked(self, kind: str, ask: Callable[[], _Answer]) -> _Answer:
        return self._link.use(lambda: understood(kind, lambda _: ask(), None))

    def find_facts(self) -> BoardFacts:
        return self._facts_of(self.program)

    def _facts_of(self, program: Program) -> BoardFacts:
        with program.files_of() as board:
            machine = program.machine(board)
            program.lay(board, limit_patterns(board.root), ())
            identity = told_identity(
                board.root,
                properties=program.properties,
                kept=lambda: program.ask("board_number"),
                hostname=machine.hostname,
                where=str(program.home),
            )
            return BoardFacts(
                fingerprint=host_fingerprint(board.root, machine),
                identity=identity,
                hostname=machine.hostname,
                default_threads=machine.default_threads,
                usable_threads=machine.usable_threads,
                cache_dir=program.cache_dir,
                engine=self._engines_of(program).bundled(),
                opencl_environment={},  # the board's own loader and vendors
                load_average=round(float((read_line(board.root / "proc/loadavg") or "").partition(" ")[0]), 3),
                clock_conditions=clock_conditions(board.root),
                settable_governors=program.settable_governors(board),
            )

    def _refuse_another(self, program: Program) -> None:
        if self._facts is None:
            return
        now = understood("facts", self._facts_of, program)
        if (now.identity, now.fingerprint) != (self._facts.identity, self._facts.fingerprint):
            raise LinkError(f"{self.connecting.where}: another board answers than before, or it has changed")

    def machine(self) -> Machine:
        return self.program.machine()

    @contextmanager
    def run_folder(self, files: Path | None, *values: Any) -> Iterator[Path]:
        """Give the folder there of a run, and get its files."""
        run_files = self.program.files
        with run_files.folder(*values, stays=files is not None) as folder:
            yield folder
            if files is not None:
                run_files.bring(files)

    def run_file(self, path: Path) -> Path:
        return self.program.files.read(path)

    def environment_of(self, plan: Plan, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a worker there."""
        usable = self.program.machine().usable_processors
        return {"GGML_NO_BACKTRACE": "1", **pinning(plan, usable, self.program.variables), **extra}

    def command_of(self, plan: Plan) -> tuple[list[str], list[str]]:
        """Return no words: the program itself knows its bundle's libraries."""
        library = self.engines.own_libraries.get(str(getattr(getattr(plan, "llama", plan), "library_dir", "")))
        return [], [] if library is None else [f"--engine-library={library}"]

    def own_kernels(self, environment: Mapping[str, str]) -> OwnKernels:
        """Return what knows the board's OpenCL devices, and which outputs it has seen."""
        from perfsuite.measure.launches.own_kernels import OwnKernels  # brings NumPy

        if self._kernels is None:
            logs = self._own_cache / "logs" / self.name
            self._kernels = OwnKernels(
                read_there=self._kernel_source, log_dir=logs, cache_dir=str(self.program.cache_dir)
            )
        return self._kernels

    def _kernel_source(self, path: Path) -> bytes:
        if (content := self.engines.look(path)) is None:
            raise OpenClError(f"{path}: is not on {self.name}; expected the kernels' sources there")
        return content

    def recording(self, pid: int, plan: LlamaPlan) -> EbpfRecording:
        """Attach the helper there to a worker, which has checked that its llama.cpp is the build of the layout."""
        from perfsuite.measure.board.told_worker import ToldRecorder  # few runs are traced
        from perfsuite.measure.ebpf import helper_options, ready_recording, required_ebpf

        ebpf, program = required_ebpf(plan), self.program
        layout = self.instruments.layout_in(plan.library_dir)
        arguments = helper_options(pid, ebpf, layout, machine=program.machine().architecture)
        log = Path(ebpf.log_path).name
        return ready_recording(ToldRecorder(program.ask, program=ebpf.helper, arguments=arguments, log=log))

    def failed_run(self, error: Exception) -> Exception:
        """Name the device where its OpenCL backend has failed."""
        is_backends = isinstance(error, MeasurementError) and OPENCL_BACKEND in str(error)
        return self.named(error) if is_backends else error

    def named(self, error: Exception) -> Exception:
        """Return an error of the board's as one that names it."""
        if not isinstance(error, PerfsuiteError) or str(error).startswith(f"{self.name}: "):
            return error
        text = f"{self.name}: {error}"
        try:
            return type(error)(text)
        except TypeError:  # one that carries more than its text
            return MeasurementError(text)

    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Measure the board by the other programs that it has."""
        tell("independent programs")
        return self.asked("independent_rates", lambda: self._independent_rates(n_threads, platform, tell))

    def _independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        from perfsuite.measure.board.program_programs import BoardPrograms  # looks through installed distributions

        program = self.program
        machine = program.machine()
        programs = BoardPrograms(
            ask=partial(program.ask, limit_s=WORKER_LIMIT_S),
            run_plan=partial(run_bare, self),
            architecture=machine.architecture,
        )
        with program.files_of(CACHE_FILES, ()) as board:
            return programs.rates(n_threads, platform, tell, board.root, machine.memory_bytes)

    def set_governor(self, governor: str | None) -> None:
        try:
            super().set_governor(governor)
        except DeviceError as error:
            raise self.named(error) from None

    @property
    def _own_cache(self) -> Path:
        return self.connecting.cache_dir or user_cache()

    def place_weights(self, weights: Weights) -> Path:
        if weights.identity not in self._placed:
            self._placed[weights.identity] = self.asked("put_weights", lambda: self._put(weights))
        return self._placed[weights.identity]

    def _put(self, weights: Weights) -> Path:
        here = materialize(weights, cache_dir=self._own_cache / "models")
        digest, limit_s = read_digest(here), self.connecting.limits.weights_s
        path, is_there = self._put_path(digest, limit_s)
        if not is_there:
            self.connecting.tell(f"{self.name}: putting {here} there, once")
            self.connecting.target.put(here, path, limit_s=limit_s)
            path, is_there = self._put_path(digest, limit_s)
        if not is_there:
            raise LinkError(f"{self.connecting.where}: {here} did not arrive as {path}; run it again")
        return Path(path)

    def _put_path(self, digest: str, limit_s: float) -> tuple[str, bool]:
        """Return where a file with a hash belongs, and whether it is there, whole."""
        told = self.program.ask("put_weights", {"digest": digest}, limit_s)
        return str(told["path"]), bool(told["is_there"])

    def find_engine(self, library_dir: Path | None) -> Engine:
        return self.asked("find_engine", lambda: self.engines.find(library_dir))

    def keep(self, engine: Engine | None, version: str) -> str:
        return self.asked("keep", lambda: self.engines.keep(engine, version))

    def kept_folder(self, engine_id: str) -> Path | None:
        """Return where it is there; None where it is not kept."""
        return self.asked("kept_folder", lambda: self.engines.kept_folder(engine_id))

    def close(self) -> None:
        """As `Board.close`, and let go of the way to it."""
        try:
            super().close()
        finally:
            self.connecting.target.close()
