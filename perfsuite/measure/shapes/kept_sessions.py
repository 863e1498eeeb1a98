"""The sessions that a desk has asked for: processes that measure shapes, by the number that it knows them by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

from perfsuite.errors import MeasurementError, ShapeCrashError
from perfsuite.measure.plan import ShapesPlan, load_plan
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.requests import RequestKind, ShapeSession

#: Arguments and values are what msgpack holds.
Arguments = Mapping[str, Any]


class Start(Protocol):
    """Starts a process; `limit_s` is the longest that it may be silent."""

    def __call__(self, setup: ShapeSetup, *, limit_s: float) -> ShapeSession: ...


class KeptSessions:
    """Answers what `RemoteShapes` asks."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._sessions: dict[int, ShapeSession] = {}
        self._n_started = 0

    def start(self, asked: Arguments) -> dict[str, Any]:
        """Start a process."""
        plan = load_plan(asked["plan"])
        if not isinstance(plan, ShapesPlan):
            raise MeasurementError(f"shapes were asked for with a {type(plan).__name__}")
        session = self._start(ShapeSetup(plan=plan, environment=asked["environment"]), limit_s=asked["limit_s"])
        self._n_started += 1
        self._sessions[self._n_started] = session
        return {"session": self._n_started, "description": asdict(session.description)}

    def ask(self, asked: Arguments) -> dict[str, Any]:
        """Ask one of the processes."""
        session = self._sessions.get(asked["session"])
        if session is None:
            raise MeasurementError("the process that measures shapes is gone; start another one")
        told: dict[str, Any] = {}
        try:
            answer = session.ask(RequestKind(asked["kind"]), tuple(asked["case_ids"]), **asked["asked"])
            told["answer"] = answer.to_line()
        except ShapeCrashError as crash:
            told["crash"] = [crash.case_id, crash.how]
        except MeasurementError as error:
            told["failure"] = str(error)
        return {**told, "is_open": session.is_open}

    def end(self, asked: Arguments) -> None:
        """End one of the processes."""
        session = self._sessions.pop(asked["session"], None)
        if session is not None:
            session.close()

    def close(self) -> None:
        """End all."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
