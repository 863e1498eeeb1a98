"""A simulated device that shapes are measured on: what it takes is a formula, noise is drawn, faults are planted."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from perfsuite.errors import ShapeCrashError
from perfsuite.expectation.shapes.floor import padded_shape
from perfsuite.measure.shapes.meter import BenchDescription, Deviation, PairSamples
from perfsuite.workload.shapes.shape_case import ShapeCase

CasePredicate = Callable[[ShapeCase], bool]

_TOLERANCE = 1e-3
_NS_PER_S = 1e9


def padded_time_ns(
    case: ShapeCase, *, launch_ns: float = 20_000.0, flops_per_s: float = 10e9, useful: bool = False
) -> float:
    """Return a launch's fixed time plus that of the padded shape's FLOPs; of the shape's own where `useful`."""
    flops = case.shape.flops if useful else padded_shape(case).flops
    return launch_ns + flops / flops_per_s * _NS_PER_S


@dataclass(slots=True, kw_only=True)
class SimulatedMeters:
    """`ShapeMeters` without a process; equal seeds and equal calls give equal samples."""

    #: What a launch of a case takes without noise or faults, ns.
    time_ns: Callable[[ShapeCase], float] = padded_time_ns
    #: Standard deviation of a sample's logarithm.
    sigma: float = 0.02
    #: That of a factor which a process draws once for all cases: it cancels from pairs.
    process_sigma: float = 0.0
    #: That of a factor which a process draws for each case, as buffers come to lie: only fresh processes tell.
    placement_sigma: float = 0.0
    seed: int = 0
    #: Factors of the time of the cases that they hold for.
    slowdowns: Sequence[tuple[CasePredicate, float]] = ()
    #: Cases at which the process dies.
    crashes: CasePredicate | None = None
    #: Cases whose output is wrong.
    wrong: CasePredicate | None = None
    #: Why a case cannot be computed, None where it can.
    problem: Callable[[ShapeCase], str | None] | None = None
    n_compute_units: int = 2
    #: Calls of all meters by method, and samples by case id.
    n_calls: Counter[str] = field(default_factory=Counter)
    n_samples: Counter[str] = field(default_factory=Counter)
    #: Fresh processes so far, and those that have not been ended.
    n_fresh: int = 0
    n_open: int = 0
    #: Processes that died.
    n_crashes: int = 0
    _resident: SimulatedMeter | None = field(default=None, init=False)
    _n_processes: int = field(default=0, init=False)

    def resident(self) -> SimulatedMeter:
        if self._resident is None:
            self._resident = SimulatedMeter(self)
        return self._resident

    @contextmanager
    def fresh(self) -> Iterator[SimulatedMeter]:
        """Yield a meter with draws of its own."""
        self.n_fresh += 1
        self.n_open += 1
        try:
            yield SimulatedMeter(self)
        finally:
            self.n_open -= 1

    def expected_ns(self, case: ShapeCase) -> float:
        """Return what a launch takes with the planted slowdowns and without noise."""
        return self.time_ns(case) * math.prod(factor for applies, factor in self.slowdowns if applies(case))


class SimulatedMeter:
    """`ShapeMeter` of a simulated process."""

    def __init__(self, meters: SimulatedMeters) -> None:
        """Start a process."""
        self._meters = meters
        self._start()

    @property
    def description(self) -> BenchDescription:
        """A device that there is not."""
        return BenchDescription(
            device="simulated device",
            n_compute_units=self._meters.n_compute_units,
            fingerprint=(("device", "simulated device"),),
        )

    def problem(self, case: ShapeCase) -> str | None:
        self._meters.n_calls["problem"] += 1
        return None if self._meters.problem is None else self._meters.problem(case)

    def verify(self, case: ShapeCase) -> Deviation:
        """Return a deviation far below or far above the tolerance."""
        self._enter("verify", (case,))
        is_wrong = self._meters.wrong is not None and self._meters.wrong(case)
        return Deviation(error_norm=1.0 if is_wrong else _TOLERANCE / 100, tolerance=_TOLERANCE)

    def samples(self, case: ShapeCase, n_samples: int) -> tuple[int, ...]:
        self._enter("samples", (case,))
        return tuple(self._sample_ns(case) for _ in range(n_samples))

    def pairs(self, old: ShapeCase, new: ShapeCase, n_pairs: int) -> PairSamples:
        self._enter("pairs", (old, new))
        pairs = [(self._sample_ns(old), self._sample_ns(new)) for _ in range(n_pairs)]
        return PairSamples(old_ns=tuple(each[0] for each in pairs), new_ns=tuple(each[1] for each in pairs))

    def round(self, cases: Sequence[ShapeCase], *, order_seed: int, n_launches: int | None = None) -> tuple[int, ...]:
        """Draw a sample of each case in an order that is drawn."""
        self._enter("round", cases)
        places = list(range(len(cases)))
        random.Random(order_seed).shuffle(places)
        drawn = {place: self._sample_ns(cases[place]) for place in places}
        return tuple(drawn[place] for place in range(len(cases)))

    def _start(self) -> None:
        self._meters._n_processes += 1
        self._name = f"{self._meters.seed}/{self._meters._n_processes}"
        self._random = random.Random(self._name)
        self._factor = self._random.lognormvariate(0.0, self._meters.process_sigma)

    def _enter(self, method: str, cases: Sequence[ShapeCase]) -> None:
        self._meters.n_calls[method] += 1
        fatal = next((case for case in cases if self._meters.crashes is not None and self._meters.crashes(case)), None)
        if fatal is not None:
            self._meters.n_crashes += 1
            self._start()
            raise ShapeCrashError(fatal.case_id, "the measuring process was killed by SIGSEGV")

    def _sample_ns(self, case: ShapeCase) -> int:
        self._meters.n_samples[case.case_id] += 1
        noise = self._random.lognormvariate(0.0, self._meters.sigma)
        return max(1, round(self._meters.expected_ns(case) * self._factor * self._placement(case) * noise))

    def _placement(self, case: ShapeCase) -> float:
        if not self._meters.placement_sigma:
            return 1.0
        return random.Random(f"{self._name}/{case.case_id}").lognormvariate(0.0, self._meters.placement_sigma)
