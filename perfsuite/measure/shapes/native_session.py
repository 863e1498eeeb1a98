"""A native worker that measures shapes when it is asked to, here or at the end of a link.

Inputs are drawn, and outputs judged, where this runs.
"""

from __future__ import annotations

import base64
import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import numpy as np

from perfsuite.errors import EngineError, MeasurementError, PerfsuiteError, ShapeCrashError
from perfsuite.measure.kernel_references import Array, error_norm
from perfsuite.measure.launch import FAILURE_MARK, READY_MARK, record_payload, refuse_killed
from perfsuite.measure.plan import Plan
from perfsuite.measure.shapes.meter import Answer, Deviation
from perfsuite.measure.shapes.sampler import MOST_BYTES, Sampler, ShapeBench
from perfsuite.measure.shapes.shape_references import ShapeInputs, ShapeReference, shape_reference
from perfsuite.workload.shapes.shape_case import ShapeCase

#: How much longer than its worker, which watches itself, an answer is waited for.
_BEYOND_WORKER_S = 10.0
#: A board keeps operands of so much of its memory.
_MEMORY_SHARE = 8
#: Bytes of an input that cross in one line, and values of an output.
_PIECE_BYTES, _PIECE_VALUES = 3 << 17, 8192


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


class ShapeWorker:
    """A worker that answers lines about cases, as ``native/src/worker/placed_operators.h`` has them."""

    def __init__(self, start: Start, plan: Plan, environment: Mapping[str, str], *, limit_s: float) -> None:
        """Start the worker and wait until its device is open; `MeasurementError` where it cannot be."""
        self._plan, self._limit_s = plan, limit_s
        self._lost: PerfsuiteError | None = None
        self._stack = contextlib.ExitStack()
        #: Whether it can be asked.
        self.is_open = True
        try:
            self._worker = self._stack.enter_context(start(plan, environment))
            #: What it said when its device was open.
            self.ready = self._ready()
        except BaseException:
            self.close()
            raise

    def asked(self, line: str, *cases: ShapeCase, content: bytes | memoryview = b"") -> str:
        """Send bytes and a line, of which each case is a step, and return the answer.

        Raises `EngineError` where the worker says why there is none; `ShapeCrashError` where it died or hung.
        """
        if not self.is_open:
            raise self._lost or MeasurementError("the worker has ended; start another one")
        try:
            for first in range(0, len(content), _PIECE_BYTES):
                piece = base64.b64encode(content[first : first + _PIECE_BYTES]).decode()
                self._worker.tell(f"part {piece}", self._deadline_s(0))
            deadline_s = self._deadline_s(len(cases))
            self._worker.tell(line, deadline_s)
            return self._answer(deadline_s, cases)
        except TimeoutError:
            raise self._crash(cases, 0, "hung") from None
        except (EngineError, ShapeCrashError):
            raise
        except PerfsuiteError as error:
            self._lost = error
            self.close()
            raise

    def close(self) -> None:
        self.is_open = False
        self._stack.close()

    def _deadline_s(self, n_steps: int) -> float:
        return time.monotonic() + self._limit_s * (n_steps + 1) + _BEYOND_WORKER_S

    def _ready(self) -> str:
        try:
            return self._answer(self._deadline_s(0), ())
        except TimeoutError:
            raise MeasurementError(
                f"the worker for '{self._worker.task}' was not ready after {self._limit_s:g} s and was stopped"
            ) from None

    def _answer(self, deadline_s: float, cases: Sequence[ShapeCase]) -> str:
        line = self._worker.answer(READY_MARK, lambda: deadline_s)
        if line is None:
            error = self._worker.early_end("it was asked to")
            if not cases or any(word.startswith(FAILURE_MARK) for word in self._worker.words):
                raise error
            raise ShapeCrashError(cases[0].case_id, str(error))
        kind, _, text = line.removeprefix(READY_MARK).strip().partition(" ")
        if kind == "done":
            return text
        if kind == "failed":
            raise EngineError(text)
        place, _, how = text.partition(" ")
        if kind != "crashed" or not place.isdecimal():
            raise MeasurementError(f"shapes: no answer: {line[:80]!r}; expected a line of the suite")
        raise self._crash(cases, int(place), how)

    def _crash(self, cases: Sequence[ShapeCase], place: int, how: str) -> MeasurementError:
        """Return the crash at a step, in the way that the supervisor says: ``signal 11``, ``exit 3``, ``hung``."""
        kind, _, number = how.partition(" ")
        if how == "hung":
            how = f"the measuring process hung for {self._limit_s:g} s"
        else:
            output = "\n".join(self._worker.words)
            try:
                refuse_killed(-int(number) if kind == "signal" else None, output, self._worker.task)
                record_payload(self._plan, None, output)
            except MeasurementError as error:
                how = str(error)
        return ShapeCrashError(cases[min(place, len(cases) - 1)].case_id, how) if cases else MeasurementError(how)


class PlacedOperation:
    """An operation with its inputs on the worker's device."""

    def __init__(
        self,
        worker: ShapeWorker,
        number: int,
        case: ShapeCase,
        inputs: ShapeInputs,
        tolerance: Callable[[ShapeInputs, ShapeReference], float] = lambda _, reference: reference.f32_tolerance,
    ) -> None:
        """Take what the worker has placed; `number` is by which it knows it, 0 none's."""
        self.number, self.case = number, case
        self._worker, self._inputs, self._tolerance = worker, inputs, tolerance

    def verify(self) -> Deviation:
        """Run once and compare the output with NumPy's, which nothing was computed of before this is called."""
        reference, out = shape_reference(self._inputs), self.output()
        norm = math.inf if out is None else error_norm(out.reshape(reference.expected.shape), reference.expected)
        return Deviation(error_norm=norm, tolerance=self._tolerance(self._inputs, reference))

    def launched_ns(self, most_launches: int, until_ns: int) -> int:
        """Launch it so often at most, and until so much has passed; return the fastest, its start and waiting included.

        Programs are built and caches filled afterwards.
        """
        return int(self._worker.asked(f"launch {self.number} {most_launches} {until_ns}", self.case))

    def output(self) -> Array | None:
        """Compute it once and return the F32 values of the output; None where something was written behind it.

        Where the answer has a guard behind the output, it is not a number; or there is no answer at all.
        """
        n_values = int(self._worker.asked(f"output {self.number}", self.case))
        pieces = [
            self._worker.asked(f"values {first} {min(_PIECE_VALUES, n_values - first)}", self.case)
            for first in range(0, n_values, _PIECE_VALUES)
        ]
        values = np.frombuffer(b"".join(map(base64.b64decode, pieces)), dtype=np.float32)
        n_outputs = self.case.shape.n_outputs
        return values[:n_outputs] if n_values >= n_outputs and np.isnan(values[n_outputs:]).all() else None

    def close(self) -> None:
        if self.number:
            number, self.number = self.number, 0
            self._worker.asked(f"drop {number}", self.case)


class NativeBench(ShapeBench, Protocol):
    """A bench that places its operations by a worker."""

    @property
    def memory_bytes(self) -> int:
        """The memory of the machine that it measures on."""


def fastest_ns(worker: ShapeWorker, operations: Sequence[PlacedOperation], n_launches: int) -> tuple[int, ...]:
    """Launch operations one after the other, each so often; return each one's fastest time."""
    numbers = " ".join(str(each.number) for each in operations)
    answer = worker.asked(f"time {n_launches} {numbers}", *(each.case for each in operations))
    return tuple(map(int, answer.split()))


class NativeSession:
    """`ShapeSession` of one native worker; whoever starts it closes it."""

    def __init__(
        self,
        start: Start,
        plan: Plan,
        environment: Mapping[str, str],
        opened: Callable[[ShapeWorker], NativeBench],
        *,
        seed: int,
        limit_s: float,
    ) -> None:
        """Start the worker and make a bench of it; `MeasurementError` where its device cannot be opened.

        `limit_s` is the longest that it may be silent: to start, and at one step of a request, as its plan says.
        """
        self._worker = ShapeWorker(start, plan, environment, limit_s=limit_s)
        try:
            self.bench = opened(self._worker)
        except BaseException:
            self.close()
            raise
        self.description = self.bench.description
        most_bytes = min(MOST_BYTES, self.bench.memory_bytes // _MEMORY_SHARE)
        self._sampler = Sampler(self.bench, seed=seed, most_bytes=most_bytes)

    @property
    def is_open(self) -> bool:
        return self._worker.is_open

    def ask(self, question: Callable[..., Answer], cases: Sequence[ShapeCase], /, **how: Any) -> Answer:
        """Return what the sampler does for cases, as `ShapeSession`; a failure names the case."""
        try:
            return question(self._sampler, cases, **how)
        except (PerfsuiteError, MemoryError) as error:
            if isinstance(error, ShapeCrashError):
                self.close()
            if not self.is_open or self._sampler.case is None:
                raise
            case_id, text = self._sampler.case.case_id, str(error) or type(error).__name__
            raise MeasurementError(text if case_id in text else f"{case_id}: {text}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._worker.close()
