"""A link to the program on a board.

The program reads, writes, runs and holds. Whatever needs judgement is computed here, by the code that does so for this
machine, from copies of the board's files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.device.control_groups import limit_patterns
from perfsuite.device.covariates import device_covariates
from perfsuite.device.fingerprint import clock_conditions, host_fingerprint
from perfsuite.device.stability.governing import ask_governors
from perfsuite.device.stability.power_sensors import check_battery
from perfsuite.device.stability.small_files import read_line
from perfsuite.device.stability.stabilised import wait_until_cool
from perfsuite.errors import LinkError, MeasurementError
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.identity import told_identity
from perfsuite.measure.board.instruments import on_board
from perfsuite.measure.board.link import MessageLink
from perfsuite.measure.board.local_board import LocalBoard, read_digest
from perfsuite.measure.board.mirror import mirror
from perfsuite.measure.board.program_engines import BoardEngines
from perfsuite.measure.board.program_files import ProgramFiles
from perfsuite.measure.board.program_governors import BoardGovernors
from perfsuite.measure.board.program_instruments import ProgramInstruments
from perfsuite.measure.board.program_machine import ProgramMachine
from perfsuite.measure.board.program_runs import ProgramRuns, RunRequest
from perfsuite.measure.board.protocol import BoardFacts, Hear
from perfsuite.measure.board.run_folder import placed_in
from perfsuite.measure.engine import OPENCL_BACKEND
from perfsuite.measure.plan import WORKER_LIMIT_S, Plan, TurnsPlan
from perfsuite.measure.probes import CACHE_FILES
from perfsuite.workload.weights import Weights

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.board.bundled_opencl import BundledOpenCl
    from perfsuite.measure.board.connecting import Connecting


class ProgramLink(MessageLink):
    """One program, which is asked for one thing after the other; it answers as a `Board` does."""

    def __init__(
        self, link: MessageLink, welcome: Mapping[str, Any], connecting: Connecting, *, cache_dir: Path
    ) -> None:
        """Go on with a link over which a program said hello; `cache_dir` is this machine's."""
        super().__init__(link.pipes, note=link.tell)
        self._n_asked = link._n_asked
        self._connecting, self._cache_dir = connecting, cache_dir
        self._name, self._limits, self._conditions = connecting.name, connecting.limits, connecting.hello.conditions
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._home, self._bundle = Path(welcome["home"]), Path(welcome["bundle"])
        self._board_cache_dir = Path(welcome["cache_dir"])
        self._governors = BoardGovernors(ask=self.asked, is_root=bool(welcome["is_root"]))
        self._machine = ProgramMachine(self.asked)
        self.engines = BoardEngines(ask=self.asked, bundle=self._bundle, cache_dir=self._board_cache_dir)
        self._files = ProgramFiles(self.asked)
        #: What the board has to follow llama.cpp with.
        self.instruments = ProgramInstruments(
            ask=self.asked, engines=self.engines, bundle=self._bundle, opencl=self._bundled_opencl
        )
        self._runs = ProgramRuns(
            ask=self.asked,
            name=self._name,
            conditions=self._conditions,
            machine=self._machine,
            engines=self.engines,
            files=self._files,
            layout=self.instruments.layout_of,
            board_cache_dir=self._board_cache_dir,
            cache_dir=cache_dir,
        )
        #: As `ProgramRuns.start_shapes`.
        self.start_shapes = self._runs.start_shapes
        #: As `ProgramMachine.competition`.
        self.competition = self._machine.competition

    def asked(
        self,
        kind: str,
        arguments: Mapping[str, Any] | None = None,
        limit_s: float | None = None,
        hear: Callable[[Any], None] | None = None,
    ) -> Any:
        """Return the program's answer; `limit_s` is the longest that what it is asked for takes there, if not short."""
        waits_s = self._limits.answer_s if limit_s is None else limit_s + self._limits.beyond_worker_s
        return self.ask(kind, arguments or {}, limit_s=waits_s, hear=hear)

    def begin(self) -> None:
        """Bring the board into its conditions: governors set, cool enough to begin, battery charged."""
        conditions = self._conditions
        asked = (conditions.governor, conditions.gpu_governor, conditions.start_below_celsius)
        if set(asked) | {conditions.least_battery_ratio} == {None}:
            return
        with self._machine.mirrored() as board:
            ask_governors(
                conditions, self._notes, root=board.root, take=self._governors.take, is_root=self._governors.is_root
            )

            def sleep(length_s: float) -> None:
                time.sleep(length_s)
                self._machine.lay(board)

            cooled = wait_until_cool(conditions, root=board.root, clock=time.monotonic, sleep=sleep)
            note, problem = check_battery(conditions, board.root)
            self._notes.extend(filter(None, (*cooled.notes, note)))
            self._problems.extend(filter(None, (cooled.problem, problem)))

    def end(self, *, limit_s: float) -> Held | None:
        """As `MessageLink.end`."""
        self._files.close()
        held = super().end(limit_s=limit_s)
        return None if held is None else self._with_own(held)

    def held(self) -> Held:
        """Return what having the board came to so far."""
        return self._with_own(Held.from_plain(self.asked("held")))

    def _with_own(self, held: Held) -> Held:
        return Held(notes=(*held.notes, *self._notes), problems=(*held.problems, *self._problems))

    def facts(self) -> BoardFacts:
        """Describe the board as it is now."""
        with self._machine.mirrored() as board:
            machine = self._machine.machine(board)
            self._machine.lay(board, limit_patterns(board.root), ())
            identity = told_identity(
                board.root,
                properties=self._machine.properties,
                kept=lambda: self.asked("board_number"),
                hostname=machine.hostname,
                where=str(self._home),
            )
            return BoardFacts(
                fingerprint=host_fingerprint(board.root, machine),
                identity=identity,
                hostname=machine.hostname,
                default_threads=machine.default_threads,
                usable_threads=machine.usable_threads,
                cache_dir=self._board_cache_dir,
                engine=self.engines.bundled(),
                opencl_environment={},  # the board's own loader and vendors
                load_average=round(float((read_line(board.root / "proc/loadavg") or "").partition(" ")[0]), 3),
                clock_conditions=clock_conditions(board.root),
                settable_governors=self._governors.settable(board),
            )

    def covariates(self) -> Mapping[str, float | None]:
        """Return load, clock and temperature there as they are now."""
        with self._machine.mirrored() as board:
            conditions = self._conditions
            return device_covariates(board.root, zones=conditions.thermal_zones, processors=conditions.processors)

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
        """Run one plan in a fresh process there, and get its files."""
        environment = dict(extra_environment or {})
        try:
            with self._files.folder(plan, environment, stays=files is not None) as folder:
                request = RunRequest(
                    environment=placed_in(folder, environment), beside=beside or Beside(), hear=hear, limit_s=limit_s
                )
                payload = self._runs.run(placed_in(folder, plan), request)
                if files is not None:
                    self._files.bring(files)
                return payload
        except MeasurementError as error:
            raise on_board(self._name, error) if OPENCL_BACKEND in str(error) else error from None

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
        """Let two processes there take turns."""
        environment = dict(extra_environment or {})
        with self._files.folder(*plans, environment, own_environments, stays=False) as folder:
            first, second = (placed_in(folder, each) for each in plans)
            return self._runs.run_in_turns(
                (first, second),
                RunRequest(environment=placed_in(folder, environment), hear=hear, limit_s=limit_s),
                own_environments=placed_in(folder, own_environments),
                n_turns=n_turns,
                leader=leader,
            )

    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Measure the board by the other programs that it has."""
        from perfsuite.measure.board.program_programs import BoardPrograms  # looks through installed distributions

        machine = self._machine.machine()
        programs = BoardPrograms(
            ask=partial(self.asked, limit_s=WORKER_LIMIT_S),
            run_plan=lambda plan, environment: self.run(plan, extra_environment=environment),
            architecture=machine.architecture,
        )
        with mirror() as board:
            self._machine.lay(board, CACHE_FILES, ())
            return programs.rates(n_threads, platform, tell, board.root, machine.memory_bytes)

    def set_governor(self, governor: str | None) -> None:
        """Set a governor, or restore what was there."""
        self._governors.give_back()
        if governor is not None:
            with self._machine.mirrored() as board:
                self._governors.set_for_a_while(governor, board)

    def place_weights(self, weights: Weights) -> Path:
        """Put a file of weights there under its hash, once; synthetic ones are written here first."""
        here = LocalBoard(cache_dir=self._cache_dir).place_weights(weights)
        digest = read_digest(here)
        path, is_there = self._put_path(digest)
        if not is_there:
            self._connecting.tell(f"{self._name}: putting {here} there, once")
            self._connecting.target.put(here, path, limit_s=self._limits.weights_s)
            path, is_there = self._put_path(digest)
        if not is_there:
            raise LinkError(f"{self._connecting.target.text}: {here} did not arrive as {path}; run it again")
        return Path(path)

    def _put_path(self, digest: str) -> tuple[str, bool]:
        """Return where a file with a hash belongs, and whether it is there, whole."""
        told = self.asked("put_weights", {"digest": digest}, self._limits.weights_s)
        return str(told["path"]), bool(told["is_there"])

    def _bundled_opencl(self) -> BundledOpenCl:
        from perfsuite.measure.board.bundled_opencl import BundledOpenCl  # few runs are of OpenCL

        return BundledOpenCl(
            name=self._name,
            bundle=self._bundle,
            cache_dir=self._board_cache_dir,
            digests=self.engines.digests,
            run=self._runs.run_bare,
        )
