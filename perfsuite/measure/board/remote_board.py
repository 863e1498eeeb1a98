"""A board at the end of a link, measured by the agent there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from perfsuite.errors import DeviceError, LinkError, MeasurementError
from perfsuite.measure.board.answering import FILES, PIECE_BYTES
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.connecting import Connecting, KeptLink
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.instruments import Instruments, RemoteInstruments, on_board
from perfsuite.measure.board.link import AgentLink
from perfsuite.measure.board.local_board import read_digest
from perfsuite.measure.board.protocol import BoardFacts, Hear
from perfsuite.measure.board.run_folder import file_within
from perfsuite.measure.competition import Competition
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import WORKER_LIMIT_S, Plan, TurnsPlan, dump_plan
from perfsuite.workload.weights import Weights

if TYPE_CHECKING:
    from perfsuite.expectation.roofline.ceiling import IndependentRate
    from perfsuite.measure.shapes.meters import ShapeSetup
    from perfsuite.measure.shapes.requests import ShapeSession

_Read = TypeVar("_Read")


@dataclass(kw_only=True)
class RemoteBoard:
    """A device behind a `Target`; it is reached when it is opened, and once more when the link is lost."""

    connecting: Connecting
    is_local: bool = False
    _link: KeptLink = field(init=False)
    _facts: BoardFacts | None = None
    #: What having the board came to with each agent, by how many links were lost before it.
    _held: dict[int, Held] = field(default_factory=dict)
    #: What a reader of the run should know of the suite there.
    _notes: list[str] = field(default_factory=list)
    _placed: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep a link that refuses another board."""
        self._link = KeptLink(connecting=self.connecting, recognise=self._refuse_another)

    @property
    def instruments(self) -> Instruments:
        """What the board has to follow llama.cpp with; a first use there may compile, or start an OpenCL device."""
        ask = partial(self._link.ask, limit_s=self._worker_limit_s)
        return RemoteInstruments(name=self.connecting.name, ask=ask)

    def open(self) -> None:
        """Reach the board, and take it.

        Raises `LinkError` where it cannot be reached; `DeviceError` where the suite is not there, or another version of
        it; `LockedError` where somebody else has it.
        """
        if not self._link.is_open:
            self._link.opened()
            self._tell_of_another_suite(self.facts().suite_digest)
            self.held()  # known then, whatever becomes of this link

    def held(self) -> Held:
        """Return what having the board came to so far, and what became of the link."""
        if self._link.is_open:
            held = self._understood("held", Held.from_plain)
            self._held[self._link.n_lost] = held
        return _joined((*self._held.values(), Held(notes=(*self._notes, *self._link.notes))))

    def _tell_of_another_suite(self, digest: str | None) -> None:
        """Note where the suite there calls itself the same and has other files."""
        from perfsuite.device.setup.suite_wheel import suite_digest  # only a board over a link has another

        with suppress(DeviceError):  # nobody knows what this one is made of
            if digest is not None and digest != suite_digest():
                told = "the suite on the board has other files than the one here"
                self._notes.append(f"{told}; run 'perfsuite devices setup {self.connecting.name}'")

    def facts(self) -> BoardFacts:
        """Describe the board; asked once, and kept."""
        if self._facts is None:
            self._facts = self._understood("facts", BoardFacts.from_plain)
        return self._facts

    def covariates(self) -> Mapping[str, float | None]:
        """Return load, clock and temperature there as they are now."""
        return self._understood("covariates", dict)

    def competition(self) -> Competition:
        """Let the agent look for half a second at who else uses the processors there."""
        return self._understood("competition", Competition.from_plain)

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
        arguments = {
            "plan": dump_plan(plan),
            "extra_environment": dict(extra_environment or {}),
            **({} if files is None else {"keeps_files": True}),
            **({} if beside is None else {"beside": beside.to_plain()}),
            **({} if hear is None else {"is_heard": True}),
            "limit_s": limit_s,
        }
        waits_s = limit_s + self.connecting.limits.beyond_worker_s
        payload, left = self._understood("run", _ran, arguments, limit_s=waits_s, hear=hear)
        if files is not None:
            for name, n_bytes in left:
                self._get(name, n_bytes, files)
        return payload

    def _get(self, name: str, n_bytes: int, files: Path) -> None:
        """Get a file of the last run, piece by piece."""
        path, n_got = file_within(files, name), 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                while n_got < n_bytes:
                    asked = {"name": name, "offset": n_got, "most_bytes": PIECE_BYTES}
                    piece = self._understood("file", _piece, asked)
                    if not piece or len(piece) > n_bytes - n_got:
                        raise LinkError(f"{self.connecting.target.text}: {name} is not what it was announced as")
                    n_got += file.write(piece)
        except OSError as error:
            raise MeasurementError(f"{path}: cannot be written ({error.strerror})") from None

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
        arguments = {
            "plans": [dump_plan(plan) for plan in plans],
            "n_turns": n_turns,
            "leader": leader,
            "extra_environment": dict(extra_environment or {}),
            "own_environments": [dict(each) for each in own_environments],
            **({} if hear is None else {"is_heard": True}),
            "limit_s": limit_s,
        }
        waits_s = limit_s + self.connecting.limits.beyond_worker_s
        return self._understood("run_in_turns", _pair, arguments, limit_s=waits_s, hear=hear)

    def start_shapes(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
        """Let the agent start a process that measures shapes."""
        from perfsuite.measure.board.remote_shapes import RemoteShapes  # brings NumPy

        def ask(kind: str, asked: Mapping[str, Any], waits_s: float) -> Any:
            return self._link.ask(kind, asked, limit_s=waits_s + self.connecting.limits.beyond_worker_s)

        return RemoteShapes(ask, setup, limit_s=limit_s)

    def independent_rates(
        self, n_threads: int, platform: str | None, tell: Callable[[str], None]
    ) -> tuple[IndependentRate, ...]:
        """Let the agent measure the board by the other programs that it has."""
        from perfsuite.expectation.roofline.ceiling import IndependentRate  # few runs ask for them

        tell("independent programs")
        asked = {"n_threads": n_threads, "platform": platform}
        return self._understood(
            "independent_rates",
            lambda plain: tuple(map(IndependentRate.from_plain, plain)),
            asked,
            limit_s=self._worker_limit_s,
        )

    def set_governor(self, governor: str | None) -> None:
        """Let the agent set a governor, or restore what was there."""
        try:
            self._understood("set_governor", lambda plain: None, {"governor": governor})
        except DeviceError as error:
            raise on_board(self.connecting.name, error) from None

    def set_load(self, n_processes: int) -> None:
        """Let the agent keep so many processors busy."""
        self._understood("set_load", lambda plain: None, {"n_processes": n_processes})

    def place_weights(self, weights: Weights) -> Path:
        """Return the path there of the file with these weights; it is written there, or put there once."""
        if weights.identity not in self._placed:
            self._placed[weights.identity] = self._put(weights) if weights.quantization is None else self._made(weights)
        return self._placed[weights.identity]

    def find_engine(self, library_dir: Path | None) -> Engine:
        """Find a llama.cpp there, by a folder of the board's."""
        named = None if library_dir is None else str(library_dir)
        return self._understood("find_engine", Engine.from_plain, {"library_dir": named})

    def keep(self, engine: Engine | None, version: str) -> str:
        """Keep an engine of the board's, or the kernels of the suite there, in the board's own store."""
        plain = None if engine is None else engine.to_plain()
        return self._understood("keep", str, {"engine": plain, "version": version})

    def kept_folder(self, engine_id: str) -> Path | None:
        """Return where it is there; None where it is not kept."""
        return self._understood("kept_folder", lambda plain: plain and Path(plain), {"engine_id": engine_id})

    def close(self) -> None:
        """Let the agent restore the board and end.

        Raises `PerfsuiteError` where something could not be restored, or nobody knows: the link was lost.
        """
        is_own = self._link.is_open
        try:
            held = self._link.end(limit_s=self.connecting.limits.end_s)
            if held is not None and is_own:  # what another board has to say is nothing of this run
                self._held[self._link.n_lost] = held
        finally:
            self.connecting.target.close()

    @property
    def _worker_limit_s(self) -> float:
        return WORKER_LIMIT_S + self.connecting.limits.beyond_worker_s

    def _made(self, weights: Weights) -> Path:
        """Let the board write synthetic weights, which have the same bytes everywhere."""
        arguments = {"name": weights.name, "identity": weights.identity}
        return self._understood("named_weights", Path, arguments, limit_s=self.connecting.limits.weights_s)

    def _put(self, weights: Weights) -> Path:
        """Put a file there under its hash, unless it is there; the board checks what has arrived."""
        assert weights.path is not None
        arguments = {"digest": read_digest(weights.path)}
        path, is_there = self._understood("put_weights", _placed, arguments, limit_s=self.connecting.limits.weights_s)
        if not is_there:
            self.connecting.tell(f"{self.connecting.name}: putting {weights.path} there, once")
            self.connecting.target.put(weights.path, path, limit_s=self.connecting.limits.weights_s)
            path, is_there = self._understood(
                "put_weights", _placed, arguments, limit_s=self.connecting.limits.weights_s
            )
        if not is_there:
            raise LinkError(f"{self.connecting.target.text}: {weights.path} did not arrive as {path}; run it again")
        return Path(path)

    def _understood(
        self,
        kind: str,
        read: Callable[[Any], _Read],
        arguments: Mapping[str, Any] | None = None,
        *,
        limit_s: float | None = None,
        hear: Hear | None = None,
    ) -> _Read:
        """Ask the agent, and read its answer; what it delivers before is heard."""
        limit_s = self.connecting.limits.answer_s if limit_s is None else limit_s
        take = None if hear is None else partial(_heard, hear)
        return understood(kind, read, self._link.ask(kind, arguments or {}, limit_s=limit_s, hear=take))

    def _refuse_another(self, link: AgentLink) -> None:
        """Refuse a board that is not the one of before, or not as it was."""
        if self._facts is None:
            return
        plain = link.ask("facts", {}, limit_s=self.connecting.limits.answer_s)
        now = understood("facts", BoardFacts.from_plain, plain)
        if (now.identity, now.fingerprint) != (self._facts.identity, self._facts.fingerprint):
            where = self.connecting.target.text
            raise LinkError(f"{where}: another board answers than before, or it has changed")


def _joined(said: Iterable[Held]) -> Held:
    """Return what several agents said, one after the other; what more than one said, once."""
    said = tuple(said)
    return Held(
        notes=tuple(dict.fromkeys(note for each in said for note in each.notes)),
        problems=tuple(dict.fromkeys(problem for each in said for problem in each.problems)),
    )


def _heard(hear: Hear, plain: Any) -> None:
    """Hand a record on that was delivered."""
    from perfsuite.measure.live import Delivery  # few runs are followed

    delivery = understood("live", Delivery.from_plain, plain)
    if delivery is not None:
        hear(delivery)


def _ran(plain: Any) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    payload = dict(plain)
    return payload, [(str(name), int(n_bytes)) for name, n_bytes in payload.pop(FILES, ())]


def _piece(plain: Any) -> bytes:
    if not isinstance(plain, bytes):
        raise TypeError("expected bytes")
    return plain


def _pair(plain: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = plain
    return dict(first), dict(second)


def _placed(plain: Any) -> tuple[str, bool]:
    return str(plain["path"]), bool(plain["is_there"])
