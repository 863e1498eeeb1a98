"""A board at the end of a link, measured by the program there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perfsuite.errors import DeviceError, LinkError, MeasurementError
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.connecting import Connecting, KeptLink
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.instruments import Instruments, RemoteInstruments, on_board
from perfsuite.measure.board.program_link import ProgramLink
from perfsuite.measure.board.protocol import BoardFacts, Hear
from perfsuite.measure.competition import Competition
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import WORKER_LIMIT_S, Plan, TurnsPlan
from perfsuite.workload.weights import Weights

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.shapes.meter import BenchDescription, ShapeSession
    from perfsuite.measure.shapes.meters import ShapeSetup
    from perfsuite.workload.shapes.shape_case import ShapeCase

_Answer = TypeVar("_Answer")


@dataclass(kw_only=True)
class RemoteBoard:
    """A device behind a `Target`; it is reached when it is opened, and once more when the link is lost."""

    connecting: Connecting
    is_local: bool = False
    _link: KeptLink = field(init=False)
    _facts: BoardFacts | None = None
    #: What having the board came to with each program, by how many links were lost before it.
    _held: dict[int, Held] = field(default_factory=dict)
    _placed: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep a link that refuses another board."""
        self._link = KeptLink(connecting=self.connecting, recognise=self._refuse_another)

    @property
    def instruments(self) -> Instruments:
        """What the board has to follow llama.cpp with; a first use there may start an OpenCL device."""
        return RemoteInstruments(
            name=self.connecting.name,
            use=lambda find: self._asked("instrument", lambda link: find(link.instruments)),
        )

    def open(self) -> None:
        """Reach the board, and take it.

        Raises `LinkError` where it cannot be reached; `DeviceError` where the suite is not there, or another version of
        it; `LockedError` where somebody else has it.
        """
        if not self._link.is_open:
            self._link.opened()
            self.facts()
            self.held()  # known then, whatever becomes of this link

    def held(self) -> Held:
        """Return what having the board came to so far, and what became of the link."""
        if self._link.is_open:
            held = self._asked("held", ProgramLink.held)
            self._held[self._link.n_lost] = held
        return _joined((*self._held.values(), Held(notes=tuple(self._link.notes))))

    def facts(self) -> BoardFacts:
        """Describe the board; asked once, and kept."""
        if self._facts is None:
            self._facts = self._asked("facts", ProgramLink.facts)
        return self._facts

    def covariates(self) -> Mapping[str, float | None]:
        """Return load, clock and temperature there as they are now."""
        return self._asked("covariates", ProgramLink.covariates)

    def competition(self) -> Competition:
        """Let the program look for half a second at who else uses the processors there."""
        return self._asked("competition", lambda link: link.competition())

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
        run = partial(
            ProgramLink.run,
            plan=plan,
            extra_environment=extra_environment,
            files=files,
            beside=beside,
            hear=hear,
            limit_s=limit_s,
        )
        return self._asked("run", run)

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
        run = partial(
            ProgramLink.run_in_turns,
            plans=plans,
            n_turns=n_turns,
            leader=leader,
            extra_environment=extra_environment,
            own_environments=own_environments,
            hear=hear,
            limit_s=limit_s,
        )
        return self._asked("run_in_turns", run)

    def start_shapes(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
        """Let the program start a process that measures shapes."""

        def started(link: ProgramLink) -> _KeptShapes:
            return _KeptShapes(self._link, link, link.start_shapes(setup, limit_s=limit_s))

        return self._asked("start_shapes", started)

    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Let the program measure the board by the other programs that it has."""
        tell("independent programs")
        return self._asked("independent_rates", lambda link: link.independent_rates(n_threads, platform, tell))

    def set_governor(self, governor: str | None) -> None:
        """Let the program set a governor, or restore what was there."""
        try:
            self._asked("set_governor", lambda link: link.set_governor(governor))
        except DeviceError as error:
            raise on_board(self.connecting.name, error) from None

    def set_load(self, n_processes: int) -> None:
        """Let the program keep so many processors busy."""
        self._asked("set_load", lambda link: link.asked("set_load", {"n_processes": n_processes}))

    def place_weights(self, weights: Weights) -> Path:
        """Return the path there of the file with these weights, which is put there once; the board checks it."""
        if weights.identity not in self._placed:
            self._placed[weights.identity] = self._asked("put_weights", lambda link: link.place_weights(weights))
        return self._placed[weights.identity]

    def find_engine(self, library_dir: Path | None) -> Engine:
        """Find a llama.cpp there, by a folder of the board's."""
        return self._asked("find_engine", lambda link: link.engines.find(library_dir))

    def keep(self, engine: Engine | None, version: str) -> str:
        """Keep an engine of the board's, or the kernels of the suite here, in the board's own store."""
        return self._asked("keep", lambda link: link.engines.keep(engine, version))

    def kept_folder(self, engine_id: str) -> Path | None:
        """Return where it is there; None where it is not kept."""
        return self._asked("kept_folder", lambda link: link.engines.kept_folder(engine_id))

    def close(self) -> None:
        """Let the program restore the board and end.

        Raises `PerfsuiteError` where something could not be restored, or nobody knows: the link was lost.
        """
        is_own = self._link.is_open
        try:
            held = self._link.end(limit_s=self.connecting.limits.end_s)
            if held is not None and is_own:  # what another board has to say is nothing of this run
                self._held[self._link.n_lost] = held
        finally:
            self.connecting.target.close()

    def _asked(self, kind: str, ask: Callable[[ProgramLink], _Answer]) -> _Answer:
        """Ask the program; `LinkError` where what it answers cannot be read."""
        return self._link.use(lambda link: understood(kind, ask, link))

    def _refuse_another(self, link: ProgramLink) -> None:
        """Refuse a board that is not the one of before, or not as it was."""
        if self._facts is None:
            return
        now = understood("facts", ProgramLink.facts, link)
        if (now.identity, now.fingerprint) != (self._facts.identity, self._facts.fingerprint):
            where = self.connecting.target.text
            raise LinkError(f"{where}: another board answers than before, or it has changed")


class _KeptShapes:
    """`ShapeSession` of a process there, which is gone with its link."""

    def __init__(self, kept: KeptLink, own: ProgramLink, session: ShapeSession) -> None:
        self._kept, self._own, self._session = kept, own, session
        self.description: BenchDescription = session.description

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""
        return self._session.is_open and self._kept.has(self._own)

    def ask(self, question: Callable[..., _Answer], cases: Sequence[ShapeCase], /, **how: Any) -> _Answer:
        """As `ShapeSession.ask`; a link that was lost is reached again, for the next process."""

        def ask(link: ProgramLink) -> _Answer:
            if link is not self._own:
                raise MeasurementError("the process that measures shapes is gone; start another one")
            return self._session.ask(question, cases, **how)

        return self._kept.use(lambda link: understood("ask_shapes", ask, link))

    def close(self) -> None:
        """End the process; where the link is gone, it has ended with that."""
        self._session.close()


def _joined(said: Iterable[Held]) -> Held:
    """Return what several programs said, one after the other; what more than one said, once."""
    said = tuple(said)
    return Held(
        notes=tuple(dict.fromkeys(note for each in said for note in each.notes)),
        problems=tuple(dict.fromkeys(problem for each in said for problem in each.problems)),
    )
