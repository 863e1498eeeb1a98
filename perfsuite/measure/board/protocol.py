"""What a run asks of the device that it measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.instruments import Instruments
from perfsuite.measure.competition import Competition
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import WORKER_LIMIT_S, Plan, TurnsPlan
from perfsuite.records.run_origin import BoardName
from perfsuite.workload.weights import Weights

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.live import Delivery
    from perfsuite.measure.shapes.meter import ShapeSession
    from perfsuite.measure.shapes.meters import ShapeSetup

#: Takes the live records of a run while it goes on.
Hear: TypeAlias = "Callable[[Delivery], None]"


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


class Board(Protocol):
    """A device that runs plans. Every method raises `LinkError` where the device is lost, with what to do."""

    #: Whether paths, processes and probes of this process are the board's.
    is_local: bool

    @property
    def instruments(self) -> Instruments:
        """What the board has to follow llama.cpp with."""

    def open(self) -> None:
        """Reach the device, take its lock, and bring it into its conditions; what is asked of it before does not."""

    def held(self) -> Held:
        """Return what having it came to so far: what a reader should know, and why nothing of it can be trusted."""

    def facts(self) -> BoardFacts:
        """Describe the board; asked once, and kept."""

    def covariates(self) -> Mapping[str, float | None]:
        """Return what may explain a run, as it is now: load, clock, temperature; None is 'not measured'."""

    def competition(self) -> Competition:
        """Look for half a second at who else uses the processors there."""

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
        """Run one plan in a fresh process there; as `perfsuite.measure.launch.run_worker`.

        Where plan or environment name `RUN_FOLDER`, the run has a folder of its own there. What it leaves in that is
        in the folder `files` here afterwards, and is gone where none is named. `hear` is given the live records of a
        plan with a `live_socket` while it runs, in a thread of its own.
        """

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
        """Let two processes there take turns; as `perfsuite.measure.turns.run_in_turns`.

        Both have one `RUN_FOLDER`, which is gone afterwards; `hear` is given the live records of either.
        """

    def start_shapes(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
        """Start a process there that measures shapes when it is asked to; whoever started it closes it.

        `limit_s` is the longest that it may be silent.
        """

    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Measure the board by other programs than ours, as far as they are installed there."""

    def set_governor(self, governor: str | None) -> None:
        """Set a governor on all cores until the next call; None restores what was there.

        Raises `DeviceError` where a core does not take it, or does not take its own back.
        """

    def set_load(self, n_processes: int) -> None:
        """Keep so many processors busy from now on; none ends that."""

    def place_weights(self, weights: Weights) -> Path:
        """Return the path there of the file with these weights, which is put there once.

        A file that was put is checked by its hash, and has that as its name.
        """

    def find_engine(self, library_dir: Path | None) -> Engine:
        """Find a llama.cpp there, by a folder of the board's; None is the one that its environment names."""

    def keep(self, engine: Engine | None, version: str) -> str:
        """Keep an engine, or the suite's own kernels where that is None, in the store there; return its id.

        Raises `EngineError` where it cannot be kept.
        """

    def kept_folder(self, engine_id: str) -> Path | None:
        """Return the folder there of what was kept under an id; None where it is not, `EngineError` where damaged."""

    def close(self) -> None:
        """Let go of the device: what was set is restored, the lock is given back."""


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
