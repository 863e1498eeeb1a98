"""This machine as a board: its program is a child of this process, and what it needs is found or built here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perfsuite.device.end_requests import signals_held_off
from perfsuite.device.fingerprint import clock_conditions, host_fingerprint
from perfsuite.device.governors import settable_governors
from perfsuite.device.machine import NO_CONDITIONS, Conditions, Machine
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import EngineError, MeasurementError, NativeBuildError, OpenClError
from perfsuite.measure.board.connecting import Connecting, LinkLimits
from perfsuite.measure.board.hello import Hello
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.identity import board_identity
from perfsuite.measure.board.instruments import Instruments, LocalInstruments
from perfsuite.measure.board.pipes import Pipes, ProcessPipes
from perfsuite.measure.board.protocol import Board, BoardFacts
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.engine_store import KERNELS_DIR, open_store
from perfsuite.measure.environment import environment_engine, environment_opencl_vendors, program_environment
from perfsuite.measure.launch import ONE_BLAS_THREAD, pinning, planned_engine
from perfsuite.measure.native import build_engine_library, find_probe_library, find_worker
from perfsuite.measure.plan import (
    BindingPlan,
    IndependentPlan,
    LlamaPlan,
    OperatorsPlan,
    Plan,
    ShapesPlan,
    TensorsPlan,
)
from perfsuite.records.own_files import own_python
from perfsuite.workload.weights import Weights, materialize

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.ebpf import EbpfRecording
    from perfsuite.measure.launches.own_kernels import OwnKernels

#: A day: the program ends with its pipe, and a desk that was stopped for a while is not gone.
_SILENCE_S = 86_400.0

#: There is nothing between this process and the program that could come back.
_LIMITS = LinkLimits(silence_s=_SILENCE_S, reconnect_s=0.0)

#: What a worker in Python runs; all others are the native program.
_PYTHON = (BindingPlan, IndependentPlan)

#: What is there until the board is closed.
_STAYING = ("start_shapes", "ask_shapes", "set_governor", "set_load")

_ROOT = Path("/")

_Answer = TypeVar("_Answer")


def _say_nothing(_: str) -> None:
    """For a machine that nobody waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalConnecting(Connecting):
    """The program of this machine."""

    cache_dir: Path
    root: Path = _ROOT  # type: ignore[misc]  # a field of this kind alone
    #: In which folders for plans and records are made.
    work: Callable[[], Path]

    @property
    def renewal(self) -> str:
        """What brings the program up to date."""
        return "install perfsuite again, which builds its program (in a checkout: make env)"

    def started(self) -> Pipes:
        """Start the program, out of reach of a Ctrl-C here; it ends with its pipe."""
        options = {"cache": self.cache_dir.absolute(), "work": self.work() / "runs"}
        if self.root != _ROOT:
            options["root"] = self.root
        command = [str(find_worker(self.cache_dir)), "serve", *(f"--{name}={each}" for name, each in options.items())]
        process = subprocess.Popen(
            command,
            env=program_environment({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        with signals_held_off():  # its threads take none
            return ProcessPipes(process, ping_s=self.limits.ping_s, silence_limit_s=self.limits.silence_s)


@dataclass(kw_only=True)
class LocalBoard(Board):
    """The machine that this process runs on; its program is started when something is measured."""

    is_local: bool = True
    cache_dir: Path
    #: Which processors and thermal zones count, and what is set, once it is opened.
    conditions: Conditions = NO_CONDITIONS
    #: Who takes the machine when it is opened; None takes nothing.
    claim: Claim | None = None
    #: Is told what is waited for.
    tell: Callable[[str], None] = _say_nothing
    #: Where the machine's files are: a tree of stand-ins for tests.
    root: Path = _ROOT
    connecting: Connecting = field(init=False)
    #: Those that this process may use once the machine is given back; None before it is taken.
    _processors: set[int] | None = field(default=None, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _work: Path | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Have nothing yet."""
        self._reach_with(Hello(claim=None, silence_limit_s=_SILENCE_S))

    def _reach_with(self, hello: Hello) -> None:
        self.connecting = LocalConnecting(
            name="host" if self.claim is None else self.claim.name,
            hello=hello,
            tell=self.tell,
            limits=_LIMITS,
            cache_dir=self.cache_dir,
            root=self.root,
            work=self._work_folder,
        )
        Board.__post_init__(self)

    def _work_folder(self) -> Path:
        if self._work is None:
            self._work = self._stack.enter_context(work_folder())
        return self._work

    @property
    def instruments(self) -> Instruments:
        return LocalInstruments(cache_dir=self.cache_dir)

    def open(self) -> None:
        """Take the machine and bring it into its conditions, as long as until `close`."""
        if self.claim is not None and self._processors is None:
            self._link.end()  # of a program that has nothing
            self._reach_with(Hello(claim=self.claim, conditions=self.conditions, silence_limit_s=_SILENCE_S))
            self._link.opened()
            self._processors = os.sched_getaffinity(0)
            os.sched_setaffinity(0, self.conditions.processors or self._processors)  # which say how many threads
        self._facts = None  # the governor may be another now

    def asked(self, kind: str, ask: Callable[[], _Answer]) -> _Answer:
        try:
            return super().asked(kind, ask)
        finally:
            if self._processors is None and kind not in _STAYING:
                self._link.end()

    def find_facts(self) -> BoardFacts:
        machine = self.machine()
        return BoardFacts(
            fingerprint=host_fingerprint(self.root),
            identity=board_identity(),
            hostname=machine.hostname,
            default_threads=machine.default_threads,
            usable_threads=machine.usable_threads,
            cache_dir=self.cache_dir,
            engine=self.find_engine(None),
            opencl_environment=_opencl_environment(self.cache_dir),
            load_average=round(os.getloadavg()[0], 3),
            clock_conditions=clock_conditions(self.root),
            settable_governors=settable_governors(self.root),
        )

    def covariates(self) -> Mapping[str, float | None]:
        from perfsuite.device.covariates import device_covariates  # only whoever measures needs it

        return device_covariates(self.root, zones=self.conditions.thermal_zones, processors=self.conditions.processors)

    def machine(self) -> Machine:
        return Machine.here()

    @contextmanager
    def run_folder(self, files: Path | None, *values: Any) -> Iterator[Path]:
        """Give the folder in which somebody wants a run's files, or one that goes away."""
        if files is None:
            with work_folder() as folder:
                yield folder
            return
        try:
            files.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MeasurementError(f"{files}: cannot be made ({error.strerror})") from None
        yield files.absolute()

    def run_file(self, path: Path) -> Path:
        return path

    def environment_of(self, plan: Plan, extra: Mapping[str, str]) -> dict[str, str]:
        """Give the worker this very suite, so that a source tree works that was never installed.

        ggml is asked not to start a debugger when it aborts: its own last words say more.
        """
        own_root = str(Path(__file__).resolve().parents[3])
        inherited = program_environment({})
        search_path = [own_root, *filter(None, [inherited.get("PYTHONPATH")])]
        return {
            "PYTHONPATH": os.pathsep.join(search_path),
            "GGML_NO_BACKTRACE": "1",
            **pinning(plan, self.machine().usable_processors, inherited.keys()),
            **(ONE_BLAS_THREAD if isinstance(plan, BindingPlan) else {}),  # NumPy must not compute beside it
            **extra,
        }

    def command_of(self, plan: Plan) -> tuple[list[str], list[str]]:
        """Return what starts Python for what is a package of it, or the native worker's libraries, which are built.

        Raises `MeasurementError` where the plan's llama.cpp is not there any more, or what is compiled for it does not
        build.
        """
        if isinstance(plan, _PYTHON):
            return list(own_python("-m", "perfsuite.measure.worker")), []
        inner: Any = getattr(plan, "llama", plan)
        cache_dir = Path(getattr(inner, "cache_dir", self.cache_dir))
        try:
            options = [f"--probe-library={find_probe_library(cache_dir)}"]
            if isinstance(inner, LlamaPlan | OperatorsPlan | ShapesPlan | TensorsPlan):
                options.append(f"--engine-library={build_engine_library(planned_engine(inner), cache_dir)}")
        except (EngineError, NativeBuildError) as error:
            raise MeasurementError(str(error)) from error
        return [], options

    def own_kernels(self, environment: Mapping[str, str]) -> OwnKernels:
        """Return what knows this machine's OpenCL devices; the same for all of a run."""
        from perfsuite.measure.launches.own_kernels import own_kernels  # brings NumPy

        return own_kernels(environment)

    def recording(self, pid: int, plan: LlamaPlan) -> EbpfRecording:
        """Attach the helper to a worker."""
        from perfsuite.measure.ebpf import required_ebpf, start_ebpf  # few runs are traced
        from perfsuite.measure.tensor_layout import tensor_layout

        layout = tensor_layout(planned_engine(plan), Path(plan.cache_dir))
        return start_ebpf(pid, required_ebpf(plan), layout)

    def failed_run(self, error: Exception) -> Exception:
        """Return why a run failed; an OpenCL device that is not there is one reason of many."""
        return MeasurementError(str(error)) if isinstance(error, OpenClError) else error

    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Measure this machine by the other programs that it has."""
        from perfsuite.measure.independent_rates import all_rates  # looks through the installed distributions

        return all_rates(n_threads, platform, self.facts().opencl_environment, tell)

    def place_weights(self, weights: Weights) -> Path:
        return materialize(weights, cache_dir=self.cache_dir / "models")

    def find_engine(self, library_dir: Path | None) -> Engine:
        return environment_engine() if library_dir is None else find_engine(library_dir)

    def keep(self, engine: Engine | None, version: str) -> str:
        store = open_store(self.cache_dir)
        kept = store.keep_kernels(KERNELS_DIR) if engine is None else store.keep_engine(engine, version)
        return kept.engine_id

    def kept_folder(self, engine_id: str) -> Path | None:
        """Return where it lies, whole; it is not removed from the store until `close`."""
        store = open_store(self.cache_dir)
        folder = store.folder_of(engine_id)
        if folder is not None:
            self._stack.enter_context(store.in_use(engine_id))
        return folder

    def close(self) -> None:
        """As `Board.close`; what having the machine came to can still be asked for."""
        try:
            super().close()
        finally:
            if self._processors is not None:
                os.sched_setaffinity(0, self._processors)
            self._processors = self._work = None
            self._stack.close()


def _opencl_environment(cache_dir: Path) -> Mapping[str, str]:
    """Return the variables for OpenCL; none where they cannot be made; its user sees what is missing then."""
    from perfsuite.measure.kernel_runtime import opencl_environment  # looks through the installed distributions

    try:
        return opencl_environment(cache_dir, inherited=environment_opencl_vendors())
    except OpenClError:
        return {}
