"""Measuring a sweep: every shape correct, then rounds over all of them in drawn orders."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from perfsuite.errors import MeasurementError, ShapeCrashError, ShapeError
from perfsuite.measure.shapes.meter import Deviation, ShapeMeter
from perfsuite.workload.shapes.shape_case import ShapeCase

#: Told of a stage, and how many of its steps are done of how many.
Told: TypeAlias = Callable[[str, int, int], None]

#: Cases that one call measures: few, so that the time left is known and a crash is found soon.
_CASES_A_CALL = 32

#: Crashes after which something else than a shape is to blame.
_MOST_CRASHES = 32


@dataclass(slots=True, kw_only=True)
class SweptCase:
    """What a sweep has found of one case so far."""

    case: ShapeCase
    #: One a round; none where it could not be measured.
    samples_ns: list[int] = field(default_factory=list)
    #: None where it was not verified.
    deviation: Deviation | None = None
    missing: str | None = None


def measure_sweep(
    meter: ShapeMeter, cases: Sequence[ShapeCase], *, n_rounds: int, seed: int, verifies: bool, told: Told
) -> tuple[SweptCase, ...]:
    """Measure each case once a round, in the order of the cases.

    Each round runs all cases in an order of its own, so that what changes with time is spread over all sizes and makes
    no steps. A case at which the process crashes is left out, and the others go on; `told` hears of each step.

    Raises ShapeError: the subject can compute none of the cases; MeasurementError: the process crashes again and again,
    or cannot be started.
    """
    swept = tuple(SweptCase(case=case, missing=meter.problem(case)) for case in cases)
    if all(each.missing is not None for each in swept):
        raise ShapeError(f"{cases[0].case_id}: {swept[0].missing}")
    sweep = _Sweep(meter=meter, draws=random.Random(seed))
    present = _present(swept) if verifies else []
    for n_done, each in enumerate(present):
        told("verifying", n_done, len(present))
        try:
            each.deviation = meter.verify(each.case)
        except ShapeCrashError as crash:
            sweep.crashed(crash)
            each.missing = str(crash)
    if verifies:
        told("verifying", len(present), len(present))
    for number in range(n_rounds):
        present = _present(swept)
        sweep.draws.shuffle(present)
        n_present = max(1, len(present))
        for first in range(0, len(present), _CASES_A_CALL):
            told("measuring", number * n_present + first, n_rounds * n_present)
            sweep.run(present[first : first + _CASES_A_CALL])
        told("measuring", (number + 1) * n_present, n_rounds * n_present)
    for each in swept:
        if each.missing is not None:
            each.samples_ns.clear()
    return swept


def _present(swept: Sequence[SweptCase]) -> list[SweptCase]:
    return [each for each in swept if each.missing is None]


@dataclass(slots=True, kw_only=True)
class _Sweep:
    meter: ShapeMeter
    draws: random.Random
    n_crashes: int = 0

    def run(self, swept: Sequence[SweptCase]) -> None:
        """Run cases; after a crash each half of them, until it is clear which case it was, if it still is one."""
        try:
            times_ns = self.meter.round([each.case for each in swept], order_seed=self.draws.randrange(1 << 32))
        except ShapeCrashError as crash:
            self.crashed(crash)
            if len(swept) == 1:
                swept[0].missing = str(crash)
                return
            for half in (swept[: len(swept) // 2], swept[len(swept) // 2 :]):
                self.run(half)
            return
        for each, time_ns in zip(swept, times_ns, strict=True):
            each.samples_ns.append(time_ns)

    def crashed(self, crash: ShapeCrashError) -> None:
        self.n_crashes += 1
        if self.n_crashes > _MOST_CRASHES:
            raise MeasurementError(f"{self.n_crashes} crashes in one sweep, the last: {crash}") from crash
