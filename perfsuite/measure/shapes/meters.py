"""The meters of a subject: processes that measure shapes, one that stays and fresh ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.protocol import Board, build_logs
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import binds_threads
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.meter import (
    Answer,
    BenchDescription,
    Deviation,
    PairSamples,
    ShapeMeter,
    ShapeMeters,
    ShapeSession,
)
from perfsuite.measure.shapes.sampler import Sampler
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSetup:
    """What each process that measures a subject is started with."""

    plan: ShapesPlan
    environment: Mapping[str, str]


def set_up_shapes(plan: ShapesPlan, board: Board, engine: Engine | None = None) -> ShapeSetup:
    """Find what a subject needs on a board; `PerfsuiteError` where platform, engine or OpenCL backend is missing."""
    if plan.subject == Subject.TILED.value:
        return ShapeSetup(plan=plan, environment=board.facts().opencl_environment)
    engine, cache_dir = engine or board.facts().engine, board.facts().cache_dir
    plan = replace(plan, library_dir=str(engine.library_dir), engine_build_id=engine.build_id, cache_dir=str(cache_dir))
    if plan.subject == Subject.GGML_CPU.value:  # as in a calibration: a processor for each thread, where there may be
        return ShapeSetup(plan=replace(plan, binds_threads=binds_threads(engine)), environment={})
    backend = board.instruments.opencl_backend(engine, plan.platform)
    plan = replace(
        plan,
        backend_library=str(backend.library) if backend.library else None,
        n_compute_units=backend.device.compute_units,
        fingerprint=tuple(backend.fingerprint.items()),
    )
    return ShapeSetup(plan=plan, environment=backend.environment())


#: Longest that a process may be silent at one step: OpenCL drivers build large kernels for a minute and more.
STEP_LIMIT_S = 300.0


@contextmanager
def open_meters(
    subject: Subject,
    board: Board,
    *,
    log_dir: Path,
    n_threads: int,
    platform: str | None = None,
    kernels_dir: Path | None = None,
    engine: Engine | None = None,
    limit_s: float = STEP_LIMIT_S,
) -> Iterator[ShapeMeters]:
    """Yield the meters of a subject on a board; nothing is started before the first call, and nothing is left running.

    `platform` is a part of the OpenCL platform's name, as `choose_device` takes it; `kernels_dir` has the suite's own
    kernels, if not the package; `engine` is the board's own when left out. No process may be silent for more than
    `limit_s` at one step: to start, to bind, to take a sample.
    """
    plan = ShapesPlan(
        subject=subject.value,
        n_threads=n_threads,
        log_dir=str(build_logs(board, log_dir)),
        platform=platform,
        kernels_dir=str(kernels_dir) if kernels_dir else None,
    )
    set_up, start = partial(set_up_shapes, plan, board, engine), partial(board.start_shapes, limit_s=limit_s)
    with contextlib.closing(ProcessMeters(set_up, start)) as meters:
        yield meters


class ProcessMeters:
    """`ShapeMeters` of worker processes that are all set up alike, once."""

    def __init__(self, set_up: Callable[[], ShapeSetup], start: Callable[[ShapeSetup], ShapeSession]) -> None:
        set_up_once = cache(set_up)
        self._start = lambda: start(set_up_once())
        self._resident = ProcessMeter(self._start)
        self._opened = [self._resident]

    def resident(self) -> ShapeMeter:
        return self._resident

    @contextmanager
    def fresh(self) -> Iterator[ShapeMeter]:
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

    def __init__(self, start: Callable[[], ShapeSession]) -> None:
        self._start = start
        self._session: ShapeSession | None = None
        self._is_closed = False

    @property
    def description(self) -> BenchDescription:
        return self._open_session().description

    def problem(self, case: ShapeCase) -> str | None:
        return self._ask(Sampler.problem, case)

    def verify(self, case: ShapeCase) -> Deviation:
        return self._ask(Sampler.verify, case)

    def samples(self, case: ShapeCase, n_samples: int) -> tuple[int, ...]:
        return self._ask(Sampler.samples, case, n_samples=n_samples)[0]

    def pairs(self, old: ShapeCase, new: ShapeCase, n_pairs: int) -> PairSamples:
        old_ns, new_ns = self._ask(Sampler.samples, old, new, n_samples=n_pairs)
        return PairSamples(old_ns=old_ns, new_ns=new_ns)

    def round(self, cases: Sequence[ShapeCase], *, order_seed: int, n_launches: int | None = None) -> tuple[int, ...]:
        if not cases:
            return ()
        taken_ns = self._ask(Sampler.round, *cases, order_seed=order_seed, n_launches=n_launches)
        return tuple(first for (first,) in taken_ns)

    def close(self) -> None:
        """End the process, if there is one; no other one is started."""
        self._is_closed = True
        if self._session is not None:
            self._session.close()

    def _ask(self, question: Callable[..., Answer], *cases: ShapeCase, **how: Any) -> Answer:
        return self._open_session().ask(question, cases, **how)

    def _open_session(self) -> ShapeSession:
        if self._is_closed:
            raise MeasurementError("shapes: this meter was closed; open another one")
        if self._session is None or not self._session.is_open:
            self._session = self._start()
        return self._session
