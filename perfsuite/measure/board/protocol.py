"""A device that runs plans, at the end of a pipe to the program that measures there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from perfsuite.device.machine import Conditions, Machine
from perfsuite.measure.board import runs
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.connecting import Connecting, KeptLink
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.instruments import Instruments
from perfsuite.measure.board.program import Program
from perfsuite.measure.board.run_folder import placed_in
from perfsuite.measure.board.runs import Hear, RunRequest
from perfsuite.measure.competition import Competition
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan, Plan, TurnsPlan
from perfsuite.records.run_origin import BoardName
from perfsuite.workload.weights import Weights

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.ebpf import EbpfRecording
    from perfsuite.measure.launches.own_kernels import OwnKernels
    from perfsuite.measure.shapes.meter import ShapeSession
    from perfsuite.measure.shapes.meters import ShapeSetup

__all__ = ["Board", "BoardFacts", "Hear", "board_name", "build_logs", "under_governor"]

_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFacts:
    """A board as it describes itself; paths are the board's own."""

    #: As `perfsuite.device.fingerprint.host_fingerprint` makes it there.
    fingerprint: Mapping[str, str]
    #: Which of several boards of a kind: a hash of its machine id or serial number, never the number itself.
    identity: str
    hostname: str
    #: As `perfsuite.device.machine` has them there.
    default_threads: int
    usable_threads: int
    #: Where the suite keeps files there.
    cache_dir: Path
    #: The llama.cpp that is measured there.
    engine: Engine
    #: Variables with which a worker finds the OpenCL runtimes there.
    opencl_environment: Mapping[str, str]
    load_average: float
    #: The governor, and whether clocks are locked; `perfsuite.device.fingerprint.clock_conditions`.
    clock_conditions: Mapping[str, str] = field(default_factory=dict)
    #: The governors that may be set there for a while.
    settable_governors: tuple[str, ...] = ()


def _kept(
    method: Callable[Concatenate[Any, _P], _Answer],
) -> Callable[Concatenate[Any, _P], _Answer]:
    """Let what is asked of a board be asked once more where its link was lost, and came back."""

    @wraps(method)
    def asked(board: Board, /, *args: _P.args, **named: _P.kwargs) -> _Answer:
        return board.asked(method.__name__, lambda: method(board, *args, **named))

    return asked


@dataclass(kw_only=True)
class Board(ABC):
    """Every method raises `LinkError` where the device is lost, with what to do.

    What differs between this machine and a board at the end of a link is below: how the program is reached, where its
    files, engines, instruments and weights are.
    """

    #: Whether paths, processes and probes of this process are the board's.
    is_local: bool

    #: How the program is reached.
    connecting: Connecting
    _link: KeptLink = field(init=False)
    _facts: BoardFacts | None = field(default=None, init=False)
    #: What having the board came to with each program, by how many links were lost before it.
    _held: dict[int, Held] = field(default_factory=dict, init=False)

    # What a kind of board says of itself.

    @property
    @abstractmethod
    def instruments(self) -> Instruments:
        """What the board has to follow llama.cpp with; a first use there may start an OpenCL device."""

    @abstractmethod
    def find_facts(self) -> BoardFacts:
        """Describe the board as it is now."""

    @abstractmethod
    def machine(self) -> Machine:
        """Return the machine, with the processors that workers may use."""

    @abstractmethod
    def run_folder(self, files: Path | None, *values: Any) -> AbstractContextManager[Path]:
        """Give the folder there of a run, and leave its files in a folder here where one is named."""

    @abstractmethod
    def run_file(self, path: Path) -> Path:
        """Return where a file of the run that goes on can be read here."""

    @abstractmethod
    def environment_of(self, plan: Plan, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that a worker gets beside the program's own."""

    @abstractmethod
    def command_of(self, plan: Plan) -> tuple[list[str], list[str]]:
        """Return the words that start a worker, none for the program's own, and its options."""

    @abstractmethod
    def own_kernels(self, environment: Mapping[str, str]) -> OwnKernels:
        """Return what knows the board's OpenCL devices, as workers of an environment see them."""

    @abstractmethod
    def recording(self, pid: int, plan: LlamaPlan) -> EbpfRecording:
        """Attach the eBPF helper of a plan to a worker there; raises as `start_ebpf` does."""

    def failed_run(self, error: Exception) -> Exception:
        """Return why a run failed, as it is raised."""
        return error

    @abstractmethod
    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Measure the board by other programs than ours, as far as they are installed there."""

    @abstractmethod
    def place_weights(self, weights: Weights) -> Path:
        """Return the path there of the file with these weights, which is put there once.

        A file that was put is checked by its hash, and has that as its name.
        """

    @abstractmethod
    def find_engine(self, library_dir: Path | None) -> Engine:
        """Find a llama.cpp there, by a folder of the board's; None is the one that its environment names."""

    @abstractmethod
    def keep(self, engine: Engine | None, version: str) -> str:
        """Keep an engine, or the suite's own kernels where that is None, in the store there; return its id.

        Raises `EngineError` where it cannot be kept.
        """

    @abstractmethod
    def kept_folder(self, engine_id: str) -> Path | None:
        """Return the folder there of what was kept under an id; None where it is not, `EngineError` where damaged."""

    def asked(self, kind: str, ask: Callable[[], _Answer]) -> _Answer:
        """Ask something of the board; over a link that was lost, and came back, once more."""
        return self._link.use(ask)

    # What all boards do alike.

    def __post_init__(self) -> None:
        """Have no program yet."""
        self._link = KeptLink(connecting=self.connecting)

    @property
    def program(self) -> Program:
        """The program; it is started where it is not yet."""
        return self._link.opened()

    def has(self, program: Program) -> bool:
        """Whether it is still this program that would be asked."""
        return self._link.has(program)

    def open(self) -> None:
        """Reach the device, take its lock, and bring it into its conditions.

        Raises `LinkError` where it cannot be reached; `DeviceError` where the suite is not there, or another version of
        it; `LockedError` where somebody else has it.
        """
        if not self._link.is_open:
            self._link.opened()
            self.facts()
            self.held()  # known then, whatever becomes of this link

    def held(self) -> Held:
        """Return what having the board came to so far: what a reader should know, and why nothing can be trusted."""
        if self._link.is_open and not self.program.link.is_interrupted:
            held = self.asked("held", lambda: self.program.held())
            self._held[self._link.n_lost] = held
        return _joined((*self._held.values(), Held(notes=tuple(self._link.notes))))

    def facts(self) -> BoardFacts:
        """Describe the board; asked once, and kept."""
        if self._facts is None:
            self._facts = self.asked("facts", self.find_facts)
        return self._facts

    @_kept
    def covariates(self) -> Mapping[str, float | None]:
        """Return what may explain a run, as it is now: load, clock, temperature; None is 'not measured'."""
        from perfsuite.device.covariates import device_covariates  # only whoever measures needs it

        conditions = self.conditions
        with self.program.files_of() as board:
            return device_covariates(board.root, zones=conditions.thermal_zones, processors=conditions.processors)

    @property
    def conditions(self) -> Conditions:
        """How the board must be while it is measured."""
        return self.connecting.hello.conditions

    @_kept
    def competition(self) -> Competition:
        """Look for half a second at who else uses the processors there."""
        return self.program.competition()

    @_kept
    def run(
        self,
        plan: Plan,
        *,
        extra_environment: Mapping[str, str] | None = None,
        files: Path | None = None,
        beside: Beside | None = None,
        hear: Hear | None = None,
        limit_s: float = WORKER_LIMIT_S,
    ) -> dict[str, Any]:
        """Run one plan in a fresh process there, and return the payload of its record.

        Where plan or environment name `RUN_FOLDER`, the run has a folder of its own there. What it leaves in that is
        in the folder `files` here afterwards, and is gone where none is named. `hear` is given the live records of a
        plan with a `live_socket` while it runs.

        Raises `MeasurementError` where the worker failed, was killed, ran past `limit_s`, or wrote a record that does
        not match the plan.
        """
        environment = dict(extra_environment or {})
        try:
            with self.run_folder(files, plan, environment) as folder:
                request = RunRequest(
                    environment=placed_in(folder, environment), beside=beside or Beside(), hear=hear, limit_s=limit_s
                )
                return runs.run_plan(self, placed_in(folder, plan), request)
        except runs.FAILURES as error:
            raise self.failed_run(error) from None

    @_kept
    def run_in_turns(
        self,
        plans: tuple[TurnsPlan, TurnsPlan],
        *,
        n_turns: int,
        leader: int,
        extra_environment: Mapping[str, str] | None = None,
        own_environments: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
        hear: Hear | None = None,
        limit_s: float = WORKER_LIMIT_S,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let two fresh processes there take `n_turns` turns each, in ABBA order, and return the payloads of both.

        Only one of them runs at any time, so that what disturbs the device for a while disturbs both alike; a pair of
        which one side alone is disturbed is broken off. The `leader`, 0 or 1, is started first and has the first turn:
        of two processes of one build the later one seems to be a few percent slower in what lies between operators
        (docs/results.md, 'The main road'). Both load their models before the first turn, and each turn begins with a
        warm-up. They have one `RUN_FOLDER`, which is gone afterwards; `hear` is given the live records of either.

        Raises `MeasurementError` where a worker failed, was killed, or the pair ran past `limit_s`.
        """
        environment = dict(extra_environment or {})
        with self.run_folder(None, *plans, environment, own_environments) as folder:
            first, second = (placed_in(folder, each) for each in plans)
            return runs.run_turns(
                self,
                (first, second),
                RunRequest(environment=placed_in(folder, environment), hear=hear, limit_s=limit_s),
                own_environments=placed_in(folder, own_environments),
                n_turns=n_turns,
                leader=leader,
            )

    @_kept
    def start_shapes(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
        """Start a process there that measures shapes when it is asked to; whoever started it closes it.

        `limit_s` is the longest that it may be silent.
        """
        return runs.start_shapes(self, setup, limit_s=limit_s)

    @_kept
    def set_governor(self, governor: str | None) -> None:
        """Set a governor on all cores until the next call; None restores what was there.

        Raises `DeviceError` where a core does not take it, or does not take its own back.
        """
        self.program.set_governor(governor)

    @_kept
    def set_load(self, n_processes: int) -> None:
        """Keep so many processors busy from now on; none ends that."""
        self.program.ask("set_load", {"n_processes": n_processes})

    def close(self) -> None:
        """Let go of the device: what was set is restored, the lock is given back, and the program ends.

        Raises `PerfsuiteError` where something could not be restored, or nobody knows: the link was lost.
        """
        is_own = self._link.is_open
        held = self._link.end()
        if held is not None and is_own:  # what another board has to say is nothing of this run
            self._held[self._link.n_lost] = held


def _joined(said: Iterable[Held]) -> Held:
    """Return what several programs said, one after the other; what more than one said, once."""
    said = tuple(said)
    return Held(
        notes=tuple(dict.fromkeys(note for each in said for note in each.notes)),
        problems=tuple(dict.fromkeys(problem for each in said for problem in each.problems)),
    )


def board_name(board: Board) -> BoardName:
    """Ask a board which one it is; `BoardName.kept_by` says whether what is kept of it is its own."""
    facts = board.facts()
    return BoardName(identity=facts.identity, hostname=facts.hostname, is_linked=not board.is_local)


def build_logs(board: Board, here: Path) -> Path:
    """Return where workers keep the logs of failed builds: in a folder of this machine, or in the board's own cache."""
    return here if board.is_local else board.facts().cache_dir / "logs"


@contextmanager
def under_governor(board: Board, governor: str | None) -> Iterator[None]:
    """Set a governor for as long as the context lasts; None leaves all as it is.

    Raises `DeviceError`: a core does not take it, or does not take its own back.
    """
    if governor is None:
        yield
        return
    board.set_governor(governor)
    try:
        yield
    finally:
        board.set_governor(None)
