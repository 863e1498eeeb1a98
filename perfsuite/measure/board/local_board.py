"""This machine as the board of a local run."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.device.fingerprint import clock_conditions, host_fingerprint
from perfsuite.device.governors import governor_set, settable_governors
from perfsuite.device.machine import NO_CONDITIONS, Conditions, default_threads, usable_threads
from perfsuite.device.stability.restore_file import STATE_FOLDER
from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure import launch, turns
from perfsuite.measure.board.beside import Beside, done_beside
from perfsuite.measure.board.holding import NOTHING_HELD, Held, Hold, Seen, not_held
from perfsuite.measure.board.identity import board_identity
from perfsuite.measure.board.instruments import Instruments, LocalInstruments
from perfsuite.measure.board.load import BusyLoops
from perfsuite.measure.board.protocol import BoardFacts, Hear
from perfsuite.measure.board.run_folder import placed_in, run_folder
from perfsuite.measure.board.watching import watched
from perfsuite.measure.competition import Competition, look_for_competition
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.engine_store import KERNELS_DIR, open_store
from perfsuite.measure.environment import environment_engine, environment_opencl_vendors
from perfsuite.measure.plan import WORKER_LIMIT_S, KernelPlan, LlamaPlan, Plan, TurnsPlan
from perfsuite.records.whole_file import file_digest
from perfsuite.workload.weights import Weights, materialize

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.shapes.meter import ShapeSession
    from perfsuite.measure.shapes.meters import ShapeSetup

#: The folder of weights within the cache.
_MODELS = "models"

#: What measures the cases, and is watched; what probes or asks is not.
WATCHED = (LlamaPlan, KernelPlan)


@dataclass(kw_only=True)
class LocalBoard:
    """The machine that this process runs on."""

    cache_dir: Path
    #: Which processors and thermal zones count.
    conditions: Conditions = NO_CONDITIONS
    #: Takes the machine, and gives it back.
    hold: Hold = not_held
    is_local: bool = True
    _seen: Seen | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _facts: BoardFacts | None = None
    _governor: ExitStack = field(default_factory=ExitStack)
    _load: BusyLoops = field(default_factory=BusyLoops)

    @property
    def instruments(self) -> Instruments:
        """What this machine has to follow llama.cpp with."""
        return LocalInstruments(cache_dir=self.cache_dir)

    def open(self) -> None:
        """Take the machine and bring it into its conditions, as long as until `close`."""
        if self._seen is None:
            self._seen = self._stack.enter_context(self.hold())
            self._facts = None  # the governor may be another now

    def held(self) -> Held:
        """Return what having the machine came to so far."""
        return NOTHING_HELD if self._seen is None else self._seen()

    def facts(self) -> BoardFacts:
        """Describe this machine; asked once, and kept."""
        if self._facts is None:
            self._facts = self._found_facts()
        return self._facts

    def covariates(self) -> Mapping[str, float | None]:
        """Return load, clock, temperature, battery and power as they are now."""
        from perfsuite.device.covariates import device_covariates  # only whoever measures needs it

        return device_covariates(zones=self.conditions.thermal_zones, processors=self.conditions.processors)

    def competition(self) -> Competition:
        """Look for half a second at who else uses the processors."""
        return look_for_competition()

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
        """Run one plan in a fresh process; beside one that measures cases the device is sampled."""
        is_watched = isinstance(plan, WATCHED)
        with (
            run_folder(files) as folder,
            done_beside(plan, beside, _heard(placed_in(folder, plan), hear, limit_s)) as (observe, seen),
            watched(self.conditions) if is_watched else nullcontext(dict) as told,
        ):
            payload = launch.run_worker(
                placed_in(folder, plan),
                extra_environment=placed_in(folder, extra_environment),
                limit_s=limit_s,
                observe=observe,
            )
        return {**payload, **told(), **seen()}

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
        """Let two processes take turns; both payloads have the samples of the device beside them."""
        with run_folder(None) as folder, watched(self.conditions) as told:
            old, new = (placed_in(folder, each) for each in plans)
            with _subscribed((old, new), hear, limit_s):
                first, second = turns.run_in_turns(
                    (old, new),
                    n_turns=n_turns,
                    leader=leader,
                    extra_environment=placed_in(folder, extra_environment),
                    own_environments=placed_in(folder, own_environments),
                    limit_s=limit_s,
                )
        return {**first, **told()}, {**second, **told()}

    def start_shapes(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
        """Start a process that measures shapes."""
        from perfsuite.measure.launches.own_kernels import own_kernels  # these bring NumPy
        from perfsuite.measure.shapes.ggml_session import GgmlSession
        from perfsuite.measure.shapes.launched_bench import LaunchedDevice, LaunchedSession
        from perfsuite.measure.worker_lines import waiting_worker

        if setup.plan.library_dir:
            return GgmlSession(waiting_worker, setup, limit_s=limit_s)
        own = own_kernels(setup.environment)
        there = LaunchedDevice.of(own, setup.plan, partial(launch.run_worker, extra_environment=setup.environment))
        return LaunchedSession(waiting_worker, setup, there, limit_s=limit_s, cache_dir=own.cache_dir)

    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Measure this machine by the other programs that it has."""
        from perfsuite.measure.independent_rates import all_rates  # looks through the installed distributions

        return all_rates(n_threads, platform, self.facts().opencl_environment, tell)

    def set_governor(self, governor: str | None) -> None:
        """Restore what was there before, and set a governor where one is named."""
        self._governor.close()
        self._governor.enter_context(governor_set(governor, folder=self.cache_dir / STATE_FOLDER))

    def set_load(self, n_processes: int) -> None:
        """Keep so many processors busy."""
        self._load.end()
        self._load.begin(n_processes)

    def place_weights(self, weights: Weights) -> Path:
        """Return the file with these weights; synthetic ones are written."""
        return materialize(weights, cache_dir=self.cache_dir / _MODELS)

    def find_engine(self, library_dir: Path | None) -> Engine:
        """Find a llama.cpp by its folder; None is the one that the environment names."""
        return environment_engine() if library_dir is None else find_engine(library_dir)

    def keep(self, engine: Engine | None, version: str) -> str:
        """Keep an engine, or the suite's own kernels, in this machine's store."""
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
        """Restore what was set, and let go of the machine; what that came to can still be asked for."""
        self._load.end()
        try:
            self._governor.close()
        finally:
            self._stack.close()

    def _found_facts(self) -> BoardFacts:
        return BoardFacts(
            fingerprint=host_fingerprint(),
            identity=board_identity(),
            hostname=socket.gethostname(),
            default_threads=default_threads(),
            usable_threads=usable_threads(),
            cache_dir=self.cache_dir,
            engine=self.find_engine(None),
            opencl_environment=_opencl_environment(self.cache_dir),
            load_average=round(os.getloadavg()[0], 3),
            clock_conditions=clock_conditions(),
            settable_governors=settable_governors(),
        )


def _heard(plan: Plan, hear: Hear | None, limit_s: float) -> launch.Observe | None:
    """Return what lets a run's live records be heard while it goes on."""
    if hear is None or not isinstance(plan, LlamaPlan) or plan.live_socket is None:
        return None
    from perfsuite.measure.live import consumed  # few runs are followed

    path = Path(plan.live_socket)
    return lambda pid: consumed(path, hear, pid, limit_s)


@contextmanager
def _subscribed(plans: tuple[TurnsPlan, TurnsPlan], hear: Hear | None, limit_s: float) -> Iterator[None]:
    """Hear the live records of two processes, of those that offer any."""
    socket = next((each.llama.live_socket for each in plans if each.llama.live_socket is not None), None)
    if hear is None or socket is None:
        yield
        return
    from perfsuite.measure.live import kept_subscribed  # as in `_heard`

    with kept_subscribed(Path(socket), hear, limit_s=limit_s):
        yield


def read_digest(path: Path) -> str:
    """Return the SHA-256 of a file of weights; `MeasurementError` where it cannot be read."""
    try:
        return file_digest(path)
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from error


def _opencl_environment(cache_dir: Path) -> Mapping[str, str]:
    """Return the variables for OpenCL; none where they cannot be made; its user sees what is missing then."""
    from perfsuite.measure.kernel_runtime import opencl_environment  # looks through the installed distributions

    try:
        return opencl_environment(cache_dir, inherited=environment_opencl_vendors())
    except OpenClError:
        return {}
