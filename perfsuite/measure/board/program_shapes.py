"""Measuring shapes on a board without Python: judged here, launched there by workers that are reported lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from perfsuite.measure.board.told_worker import Ask, Payload, ToldWorker, told_worker
from perfsuite.measure.plan import Plan

if TYPE_CHECKING:
    from perfsuite.measure.shapes.kept_sessions import KeptSessions
    from perfsuite.measure.shapes.launched_bench import LaunchedDevice
    from perfsuite.measure.shapes.meters import ShapeSetup
    from perfsuite.measure.shapes.requests import ShapeSession

#: The requests that are answered here: to start a process, to ask it, and to end it.
SHAPES = ("start_shapes", "ask_shapes", "end_shapes")


class ProgramShapes:
    """Answers what `RemoteShapes` asks, as the agent in Python would."""

    def __init__(
        self,
        ask: Ask,
        payload: Payload,
        environment: Callable[[Plan, Mapping[str, str]], dict[str, str]],
        options: Callable[[Plan], list[str]],
        launched: Callable[[ShapeSetup], LaunchedDevice],
        cache_dir: str,
    ) -> None:
        """Take what asks the program there, and what says how a worker of a plan is started, and on which device."""
        self._ask, self._payload, self._environment, self._options = ask, payload, environment, options
        self._launched, self._cache_dir = launched, cache_dir
        self._kept: KeptSessions | None = None

    def answer(self, kind: str) -> Callable[[Mapping[str, Any]], Any]:
        """Return what answers a kind of request."""
        kept = self._sessions
        answers: dict[str, Callable[[Mapping[str, Any]], Any]]
        answers = dict(zip(SHAPES, (kept.start, kept.ask, kept.end), strict=True))
        return answers[kind]

    @property
    def _sessions(self) -> KeptSessions:
        if self._kept is None:
            from perfsuite.measure.shapes.kept_sessions import KeptSessions  # brings NumPy

            self._kept = KeptSessions(self._started)
        return self._kept

    def _started(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession:
        from perfsuite.measure.shapes.ggml_session import GgmlSession  # as above

        if setup.plan.library_dir:
            return GgmlSession(self._worker, setup, limit_s=limit_s)
        from perfsuite.measure.shapes.launched_bench import LaunchedSession

        return LaunchedSession(self._worker, setup, self._launched(setup), limit_s=limit_s, cache_dir=self._cache_dir)

    @contextmanager
    def _worker(self, plan: Plan, extra: Mapping[str, str]) -> Iterator[ToldWorker]:
        start = partial(told_worker, self._ask, self._payload, plan)
        with start(environment=self._environment(plan, extra), options=self._options(plan)) as worker:
            yield worker
