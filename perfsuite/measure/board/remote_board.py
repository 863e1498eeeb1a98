"""A board at the end of a link, measured by the agent there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from perfsuite.errors import DeviceError, LinkError
from perfsuite.measure.board.connecting import Connecting, KeptLink
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.link import AgentLink
from perfsuite.measure.board.local_board import read_digest
from perfsuite.measure.board.protocol import BoardFacts
from perfsuite.measure.competition import Competition
from perfsuite.measure.engine import Engine
from perfsuite.measure.launch import WORKER_LIMIT_S
from perfsuite.measure.plan import Plan, TurnsPlan, dump_plan
from perfsuite.workload.weights import Weights

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

    def run(self, plan: Plan, *, extra_environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Run one plan in a fresh process there."""
        arguments = {"plan": dump_plan(plan), "extra_environment": dict(extra_environment or {})}
        return self._understood("run", dict, arguments, limit_s=self._worker_limit_s)

    def run_in_turns(
        self,
        plans: tuple[TurnsPlan, TurnsPlan],
        *,
        n_turns: int,
        leader: int,
        extra_environment: Mapping[str, str] | None = None,
        own_environments: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let two processes there take turns."""
        arguments = {
            "plans": [dump_plan(plan) for plan in plans],
            "n_turns": n_turns,
            "leader": leader,
            "extra_environment": dict(extra_environment or {}),
            "own_environments": [dict(each) for each in own_environments],
        }
        return self._understood("run_in_turns", _pair, arguments, limit_s=self._worker_limit_s)

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
        """Return where it lies there; None where it is not kept."""
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
    ) -> _Read:
        """Ask the agent, and read its answer."""
        limit_s = self.connecting.limits.answer_s if limit_s is None else limit_s
        return understood(kind, read, self._link.ask(kind, arguments or {}, limit_s=limit_s))

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


def _pair(plain: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    first, second = plain
    return dict(first), dict(second)


def _placed(plain: Any) -> tuple[str, bool]:
    return str(plain["path"]), bool(plain["is_there"])
