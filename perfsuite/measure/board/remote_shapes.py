"""A process on a board at the end of a link that measures shapes, and is asked from the desk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perfsuite.errors import MeasurementError, PerfsuiteError, ShapeCrashError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.plan import dump_plan
from perfsuite.measure.shapes.meter import BenchDescription
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.requests import RequestKind, ShapeAnswer
from perfsuite.records.codec import from_plain

#: Asks the agent there: kind, arguments, and how long its answer may take, s.
Ask = Callable[[str, Mapping[str, Any], float], Any]


class RemoteShapes:
    """`ShapeSession` of a process there; whoever starts it closes it."""

    def __init__(self, ask: Ask, setup: ShapeSetup, *, limit_s: float) -> None:
        """Let the agent start the process; `MeasurementError` where it cannot measure."""
        self._ask, self._limit_s = ask, limit_s
        asked = {"plan": dump_plan(setup.plan), "environment": dict(setup.environment), "limit_s": limit_s}
        self._session, self.description = understood("start_shapes", _started, ask("start_shapes", asked, limit_s))
        self.is_open = True

    def ask(self, kind: RequestKind, case_ids: tuple[str, ...], **asked: Any) -> ShapeAnswer:
        """Return the answer to a request, as a process of this machine would; no step may be silent for too long."""
        request = {"session": self._session, "kind": kind.value, "case_ids": list(case_ids), "asked": asked}
        try:
            told = self._ask("ask_shapes", request, self._limit_s * max(1, len(case_ids)))
        except PerfsuiteError:
            self.is_open = False
            raise
        self.is_open = understood("ask_shapes", lambda plain: bool(plain["is_open"]), told)
        if "crash" in told:
            raise ShapeCrashError(*understood("ask_shapes", _crash, told["crash"]))
        if "failure" in told:
            raise MeasurementError(str(told["failure"]))
        return ShapeAnswer.from_line(understood("ask_shapes", lambda plain: str(plain["answer"]), told))

    def close(self) -> None:
        """Let the agent end the process; where there is no agent any more, it has ended with that."""
        if self._session is not None:
            session, self._session = self._session, None
            self.is_open = False
            try:
                self._ask("end_shapes", {"session": session}, self._limit_s)
            except PerfsuiteError:
                return


def _started(plain: Any) -> tuple[int | None, BenchDescription]:
    description = from_plain(plain["description"], BenchDescription, "shapes", MeasurementError, "expected a bench")
    return int(plain["session"]), description


def _crash(plain: Any) -> tuple[str, str]:
    case_id, how = plain
    return str(case_id), str(how)
