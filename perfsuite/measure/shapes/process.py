"""A process that measures shapes, as those see it who ask: started, asked, and ended with whatever it started."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections import deque
from dataclasses import replace
from typing import NoReturn

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError, ShapeCrashError
from perfsuite.measure import launch
from perfsuite.measure.plan import task_of
from perfsuite.measure.shapes.progress import ProgressMark
from perfsuite.measure.shapes.requests import ANSWER_MARK, RequestKind, ShapeAnswer, ShapeRequest
from perfsuite.measure.shapes.samples import BenchDescription
from perfsuite.measure.shapes.subject_setup import ShapeSetup
from perfsuite.measure.worker_lines import WorkerLines

#: Lines that are kept for its last words.
_KEPT_LINES = 100
#: Longest to wait for a process to end that has closed its output.
_END_LIMIT_S = 10.0


class ShapeProcess:
    """One worker; whoever starts it closes it."""

    def __init__(self, setup: ShapeSetup, *, limit_s: float) -> None:
        """Start the worker and wait until it can measure; `MeasurementError` where it cannot.

        `limit_s` is the longest that it may be silent: to start, and at one step of a request.
        """
        self._limit_s = limit_s
        self._n_requests = 0
        self._words: deque[str] = deque(maxlen=_KEPT_LINES)
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
        return self._process.pid

    def ask(
        self,
        kind: RequestKind,
        case_ids: tuple[str, ...],
        *,
        n_samples: int = 1,
        order_seed: int = 0,
        n_launches: int | None = None,
    ) -> ShapeAnswer:
        """Return the answer to a request; whatever is raised, the process has ended then, but for a failure at a case.

        Raises `ShapeCrashError` where the process died or hung at a case; `MeasurementError` where the process ended
        for a reason that it knows, or answered something else; or there is a reason why the request has no answer.
        """
        self._n_requests += 1
        request = ShapeRequest(
            number=self._n_requests,
            kind=kind,
            case_ids=case_ids,
            n_samples=n_samples,
            order_seed=order_seed,
            n_launches=n_launches,
        )
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
        self._plan, self._folder = replace(setup.plan, mark_path=str(folder / "mark")), folder
        self._process = launch.start_worker(self._plan, folder, setup.environment, stdin=subprocess.PIPE)
        self._stack.callback(launch.kill_worker, self._process)
        self._lines = WorkerLines(self._process)
        self._is_open = True

    def _ready(self) -> BenchDescription:
        try:
            answer = self._next_answer()
        except TimeoutError:
            raise MeasurementError(
                f"the worker for '{task_of(self._plan)}' was not ready after {self._limit_s:g} s and was stopped"
            ) from None
        if answer is None:
            self._refuse_ended()
        if answer.description is None:
            raise MeasurementError(f"the worker for '{task_of(self._plan)}' did not say what it measures on")
        return answer.description

    def _exchange(self, request: ShapeRequest) -> ShapeAnswer:
        try:
            with contextlib.suppress(BrokenPipeError):  # it has died, which its output says better
                self._lines.send_line(request.to_line(), time.monotonic() + self._limit_s)
            answer = self._next_answer()
        except TimeoutError:
            raise self._crash(request, f"the measuring process hung for {self._limit_s:g} s") from None
        if answer is None:
            self._refuse_dead(request)
        if answer.number != request.number:
            raise MeasurementError(f"shapes: answer {answer.number} came for request {request.number}")
        return answer

    def _next_answer(self) -> ShapeAnswer | None:
        """Read on to the next answer, None at the end; `TimeoutError` where no step begins for as long as the limit."""
        while True:
            n_steps, _ = self._mark.read()
            try:
                line = self._lines.next_line(time.monotonic() + self._limit_s)
            except TimeoutError:
                if self._mark.read()[0] == n_steps:
                    raise
                continue
            if line is None or line.startswith(ANSWER_MARK):
                return None if line is None else ShapeAnswer.from_line(line)
            self._words.append(line)

    def _refuse_dead(self, request: ShapeRequest) -> NoReturn:
        """Tell a process that knew why it ended from one that died at a case."""
        try:
            self._refuse_ended()
        except MeasurementError as error:
            if any(line.startswith(launch.FAILURE_MARK) for line in self._words):
                raise
            raise self._crash(request, str(error)) from None

    def _refuse_ended(self) -> NoReturn:
        """Raise with the reason that the worker gave, or with its last words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_LIMIT_S)
        output = "\n".join(self._words)
        launch.refuse_killed(self._process, output, task_of(self._plan))
        launch.read_record(self._plan, self._folder, output)
        raise MeasurementError(f"the worker for '{task_of(self._plan)}' ended before it was asked to")

    def _crash(self, request: ShapeRequest, how: str) -> ShapeCrashError:
        _, place = self._mark.read()
        return ShapeCrashError(request.case_ids[place], how)
