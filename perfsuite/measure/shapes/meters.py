"""The meters of a subject: processes that measure shapes, one that stays and fresh ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine import Engine
from perfsuite.measure.shapes.meter import ShapeMeter, ShapeMeters
from perfsuite.measure.shapes.process import ShapeProcess
from perfsuite.measure.shapes.requests import RequestKind, ShapeAnswer
from perfsuite.measure.shapes.samples import BenchDescription, Deviation, PairSamples
from perfsuite.measure.shapes.subject_setup import ShapeSetup, set_up_shapes
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

#: Longest that a process may be silent at one step: OpenCL drivers build large kernels for a minute and more.
STEP_LIMIT_S = 300.0


@contextmanager
def open_meters(
    subject: Subject,
    *,
    cache_dir: Path,
    log_dir: Path,
    n_threads: int,
    platform: str | None = None,
    kernels_dir: Path | None = None,
    engine: Engine | None = None,
    seed: int = 0,
    limit_s: float = STEP_LIMIT_S,
) -> Iterator[ShapeMeters]:
    """Yield the meters of a subject; nothing is started before the first call, and nothing is left running.

    `platform` is a part of the OpenCL platform's name, as `choose_device` takes it; `kernels_dir` has the suite's own
    kernels, if not the package; `engine` is that of the environment when left out; `seed` draws the inputs, the same
    ones in each process. No process may be silent for more than `limit_s` at one step: to start, to bind, to take a
    sample.
    """
    set_up = partial(
        set_up_shapes,
        subject,
        cache_dir=cache_dir,
        log_dir=log_dir,
        n_threads=n_threads,
        platform=platform,
        kernels_dir=kernels_dir,
        engine=engine,
        seed=seed,
    )
    with contextlib.closing(ProcessMeters(set_up, limit_s=limit_s)) as meters:
        yield meters


class ProcessMeters:
    """`ShapeMeters` of worker processes that are all set up alike, once."""

    def __init__(self, set_up: Callable[[], ShapeSetup], *, limit_s: float) -> None:
        """Start nothing yet."""
        set_up_once = cache(set_up)
        self._start = lambda: ShapeProcess(set_up_once(), limit_s=limit_s)
        self._resident = ProcessMeter(self._start)
        self._opened = [self._resident]

    def resident(self) -> ShapeMeter:
        """Return the meter of the process that stays."""
        return self._resident

    @contextmanager
    def fresh(self) -> Iterator[ShapeMeter]:
        """Yield the meter of a process of its own."""
        with contextlib.closing(ProcessMeter(self._start)) as meter:
            self._opened.append(meter)
            try:
                yield meter
            finally:
                self._opened.remove(meter)

    def close(self) -> None:
        """End all processes, those too whose users have not."""
        for meter in self._opened:
            meter.close()


class ProcessMeter:
    """`ShapeMeter` of one worker process at a time: the next call after a crash starts another."""

    def __init__(self, start: Callable[[], ShapeProcess]) -> None:
        """Start nothing yet."""
        self._start = start
        self._process: ShapeProcess | None = None
        self._is_closed = False

    @property
    def description(self) -> BenchDescription:
        """On what it measures."""
        return self._running().description

    def problem(self, case: ShapeCase) -> str | None:
        """Return why the subject cannot compute a case, or None where it can."""
        return self._ask(RequestKind.PROBLEM, (case,)).problem

    def verify(self, case: ShapeCase) -> Deviation:
        """Run a case once and compare its output with NumPy's."""
        deviation = self._ask(RequestKind.VERIFY, (case,)).deviation
        assert deviation is not None
        return deviation

    def samples(self, case: ShapeCase, n_samples: int) -> tuple[int, ...]:
        """Return samples of one case, ns."""
        (taken_ns,) = self._ask(RequestKind.SAMPLES, (case,), n_samples=n_samples).samples_ns
        return taken_ns

    def pairs(self, old: ShapeCase, new: ShapeCase, n_pairs: int) -> PairSamples:
        """Return samples of two cases that took turns, ABBA."""
        old_ns, new_ns = self._ask(RequestKind.PAIRS, (old, new), n_samples=n_pairs).samples_ns
        return PairSamples(old_ns=old_ns, new_ns=new_ns)

    def round(self, cases: Sequence[ShapeCase], *, order_seed: int, n_launches: int | None = None) -> tuple[int, ...]:
        """Return one sample of each case, ns, in the order of the cases; they are run in an order that is drawn."""
        if not cases:
            return ()
        taken_ns = self._ask(RequestKind.ROUND, cases, order_seed=order_seed, n_launches=n_launches).samples_ns
        return tuple(first for (first,) in taken_ns)

    def close(self) -> None:
        """End the process, if there is one; no other one is started."""
        self._is_closed = True
        if self._process is not None:
            self._process.close()

    def _running(self) -> ShapeProcess:
        if self._is_closed:
            raise MeasurementError("shapes: this meter was closed; open another one")
        if self._process is None or not self._process.is_open:
            self._process = self._start()
        return self._process

    def _ask(self, kind: RequestKind, cases: Sequence[ShapeCase], **asked: Any) -> ShapeAnswer:
        return self._running().ask(kind, tuple(case.case_id for case in cases), **asked)
