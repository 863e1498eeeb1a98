"""A process that measures shapes, as those see it who ask: started, asked, and ended with whatever it started."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError, ShapeCrashError
from perfsuite.measure.launch import FAILURE_MARK
from perfsuite.measure.shapes.progress import ProgressMark
from perfsuite.measure.shapes.requests import ANSWER_MARK, RequestKind, ShapeAnswer, ShapeRequest
from perfsuite.measure.shapes.samples import BenchDescription
from perfsuite.measure.shapes.subject_setup import ShapeSetup
from perfsuite.measure.worker_lines import WaitingWorker


class ShapeProcess:
    """One worker; whoever starts it closes it."""

    def __init__(self, setup: ShapeSetup, *, limit_s: float) -> None:
        """Start the worker and wait until it can measure; `MeasurementError` where it cannot.

        `limit_s` is the longest that it may be silent: to start, and at one step of a request.
        """
        self._limit_s = limit_s
        self._n_requests = 0
        self._stack = contextlib.ExitStack()
        try:
            self._start(setup)
            self.description = self._ready()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The worker's process id, which is that of its group."""
        return self._worker.process.pid

    def ask(self, kind: RequestKind, case_ids: tuple[str, ...], **asked: Any) -> ShapeAnswer:
        """Return the answer to a request, whose other fields are `asked`.

        Whatever is raised, the process has ended then, but for a failure at a case.

        Raises `ShapeCrashError` where the process died or hung at a case; `MeasurementError` where the process ended
        for a reason that it knows, or answered something else; or there is a reason why the request has no answer.
        """
        self._n_requests += 1
        request = ShapeRequest(number=self._n_requests, kind=kind, case_ids=case_ids, **asked)
        try:
            answer = self._exchange(request)
        except BaseException:
            self.close()
            raise
        if answer.failure is not None:
            raise MeasurementError(answer.failure)
        return answer

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""
        return self._is_open

    def close(self) -> None:
        """Stop the worker and its children."""
        self._is_open = False
        self._stack.close()

    def _start(self, setup: ShapeSetup) -> None:
        folder = self._stack.enter_context(work_folder())
        self._mark = ProgressMark(folder / "mark")
        self._stack.callback(self._mark.close)
        self._worker = WaitingWorker(replace(setup.plan, mark_path=str(folder / "mark")), folder, setup.environment)
        self._stack.callback(self._worker.close)
        self._is_open = True

    def _ready(self) -> BenchDescription:
        worker = f"the worker for '{self._worker.task}'"
        try:
            answer = self._next_answer()
        except TimeoutError:
            raise MeasurementError(f"{worker} was not ready after {self._limit_s:g} s and was stopped") from None
        if answer is None:
            raise self._worker.early_end("it was asked to")
        if answer.description is None:
            raise MeasurementError(f"{worker} did not say what it measures on")
        return answer.description

    def _exchange(self, request: ShapeRequest) -> ShapeAnswer:
        try:
            self._worker.tell(request.to_line(), self._deadline_s())
            answer = self._next_answer()
        except TimeoutError:
            raise self._crash(request, f"the measuring process hung for {self._limit_s:g} s") from None
        if answer is None:
            raise self._death(request)
        if answer.number != request.number:
            raise MeasurementError(f"shapes: answer {answer.number} came for request {request.number}")
        return answer

    def _next_answer(self) -> ShapeAnswer | None:
        """Read on to the next answer, None at the end; `TimeoutError` where no step begins for as long as the limit."""
        while True:
            n_steps, _ = self._mark.read()
            try:
                line = self._worker.answer(ANSWER_MARK, self._deadline_s)
            except TimeoutError:
                if self._mark.read()[0] == n_steps:
                    raise
                continue
            return None if line is None else ShapeAnswer.from_line(line)

    def _deadline_s(self) -> float:
        return time.monotonic() + self._limit_s

    def _death(self, request: ShapeRequest) -> MeasurementError:
        """Tell a process that knew why it ended from one that died at a case."""
        error = self._worker.early_end("it was asked to")
        is_known = any(line.startswith(FAILURE_MARK) for line in self._worker.words)
        return error if is_known else self._crash(request, str(error))

    def _crash(self, request: ShapeRequest, how: str) -> ShapeCrashError:
        _, place = self._mark.read()
        return ShapeCrashError(request.case_ids[place], how)
