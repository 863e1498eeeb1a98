"""A native worker that measures shapes when it is asked to, here or at the end of a link."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeAlias

from perfsuite.errors import EngineError, MeasurementError, PerfsuiteError
from perfsuite.measure.launch import FAILURE_MARK, READY_MARK, record_payload, refuse_killed
from perfsuite.measure.plan import Plan
from perfsuite.measure.shapes.ggml_bench import GgmlBench
from perfsuite.measure.shapes.ggml_operators import Asked, WorkerCrash
from perfsuite.measure.shapes.meter import ShapeBench
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.requests import RequestKind, ShapeAnswer, ShapeRequest
from perfsuite.measure.shapes.service import MOST_BYTES, ShapeService

#: How much longer than its worker, which watches itself, an answer is waited for.
_BEYOND_WORKER_S = 10.0
#: A board keeps operands of so much of its memory.
_MEMORY_SHARE = 8


class HeardWorker(Protocol):
    """A worker that takes lines and answers them, as `perfsuite.measure.board.told_worker.ToldWorker`."""

    task: str

    @property
    def words(self) -> Sequence[str]:
        """What it said beside its answers."""

    def tell(self, line: str, deadline_s: float) -> None:
        """Send a line, also to a worker that has died; `TimeoutError` beyond the deadline."""

    def answer(self, mark: str | None, deadline_s: Callable[[], float]) -> str | None:
        """Return the next line with a mark, None at the end; `TimeoutError` beyond a line's deadline."""

    def early_end(self, before: str) -> MeasurementError:
        """Return why a worker ended too early."""


#: Starts a worker with a plan and an environment, and ends it with the context.
Start: TypeAlias = Callable[[Plan, Mapping[str, str]], AbstractContextManager[HeardWorker]]


class NativeBench(ShapeBench[Any], Protocol):
    """A bench that launches by a worker."""

    @property
    def memory_bytes(self) -> int:
        """The memory of the machine that it measures on."""


#: Makes a bench of a worker that is ready, and of what it said then.
OpenBench: TypeAlias = Callable[[Asked, str], NativeBench]


class NativeSession:
    """`ShapeSession` of one native worker; whoever starts it closes it."""

    def __init__(
        self, start: Start, plan: Plan, environment: Mapping[str, str], opened: OpenBench, *, seed: int, limit_s: float
    ) -> None:
        """Start the worker and wait until its device is open; `MeasurementError` where it cannot be.

        `limit_s` is the longest that it may be silent: to start, and at one step of a request, as its plan says.
        """
        self._limit_s = limit_s
        self._lost: PerfsuiteError | None = None
        self._plan = plan
        self._stack = contextlib.ExitStack()
        #: Whether it can be asked.
        self.is_open = True
        try:
            self._worker = self._stack.enter_context(start(plan, environment))
            self.bench = opened(self, self._ready())
        except BaseException:
            self.close()
            raise
        self.description = self.bench.description
        most_bytes = min(MOST_BYTES, self.bench.memory_bytes // _MEMORY_SHARE)
        self._service = ShapeService(self.bench, seed=seed, most_bytes=most_bytes)

    def ask(self, kind: RequestKind, case_ids: tuple[str, ...], **asked: Any) -> ShapeAnswer:
        """Return the answer to a request, as `ShapeSession`."""
        try:
            answer = self._service.answer(ShapeRequest(kind=kind, case_ids=case_ids, **asked))
        except BaseException:
            self.close()
            raise
        if self._lost is not None:
            raise self._lost
        if answer.failure is not None:
            raise MeasurementError(answer.failure)
        return answer

    def asked(self, *lines: str, n_steps: int = 1) -> str:
        """Send lines, of which the last one has an answer after so many steps, as `Asked`."""
        if not self.is_open:
            raise EngineError("the worker has ended; start another one")
        deadline_s = time.monotonic() + self._limit_s * (n_steps + 1) + _BEYOND_WORKER_S
        try:
            for line in lines:
                self._worker.tell(line, deadline_s)
            return self._answer(deadline_s) if n_steps else ""
        except TimeoutError:
            raise WorkerCrash(0, self._how("hung")) from None
        except EngineError:
            raise
        except PerfsuiteError as error:
            self._lost = error
            self.close()
            raise

    def close(self) -> None:
        """End the worker."""
        self.is_open = False
        self._stack.close()

    def _ready(self) -> str:
        worker = f"the worker for '{self._worker.task}'"
        try:
            return self._answer(time.monotonic() + self._limit_s + _BEYOND_WORKER_S)
        except TimeoutError:
            raise MeasurementError(f"{worker} was not ready after {self._limit_s:g} s and was stopped") from None
        except WorkerCrash as crash:
            raise MeasurementError(str(crash)) from None

    def _answer(self, deadline_s: float) -> str:
        line = self._worker.answer(READY_MARK, lambda: deadline_s)
        if line is None:
            error = self._worker.early_end("it was asked to")
            if any(word.startswith(FAILURE_MARK) for word in self._worker.words):
                raise error
            raise WorkerCrash(0, str(error))
        kind, _, told = line.removeprefix(READY_MARK).strip().partition(" ")
        if kind == "done":
            return told
        if kind == "failed":
            raise EngineError(told)
        place, _, how = told.partition(" ")
        if kind != "crashed" or not place.isdecimal():
            raise MeasurementError(f"shapes: no answer: {line[:80]!r}; expected a line of the suite")
        raise WorkerCrash(int(place), self._how(how))

    def _how(self, told: str) -> str:
        """Say in which way the worker has crashed, by its supervisor's words: ``signal 11``, ``exit 3``, ``hung``."""
        if told == "hung":
            return f"the measuring process hung for {self._limit_s:g} s"
        kind, _, number = told.partition(" ")
        output = "\n".join(self._worker.words)
        try:
            refuse_killed(-int(number) if kind == "signal" else None, output, self._worker.task)
            record_payload(self._plan, None, output)
        except MeasurementError as error:
            return str(error)
        return told


class GgmlSession(NativeSession):
    """A session of ggml's operators."""

    def __init__(self, start: Start, setup: ShapeSetup, *, limit_s: float) -> None:
        """Start the worker of a plan with a library of ggml's."""
        plan = replace(setup.plan, step_limit_s=limit_s)
        super().__init__(start, plan, setup.environment, partial(GgmlBench, plan), seed=plan.seed, limit_s=limit_s)
