"""Measuring a sweep: every shape correct, then rounds over all of them in drawn orders."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
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

VERIFYING = "verifying"
MEASURING = "measuring"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptCase:
    """What a sweep found of one case."""

    case: ShapeCase
    #: One a round; none where it could not be measured.
    samples_ns: tuple[int, ...]
    #: None where it was not verified.
    deviation: Deviation | None
    missing: str | None


def measure_sweep(
    meter: ShapeMeter, cases: Sequence[ShapeCase], *, n_rounds: int, seed: int, verifies: bool, told: Told
) -> tuple[SweptCase, ...]:
    """Measure each case once a round, in the order of the cases.

    Each round runs all cases in an order of its own, so that what changes with time is spread over all sizes and makes
    no steps. A case at which the process crashes is left out, and the others go on; `told` hears of each step.

    Raises ShapeError: the subject can compute none of the cases; MeasurementError: the process crashes again and again,
    or cannot be started.
    """
    sweep = _Sweep(meter=meter, cases=tuple(cases), told=told)
    sweep.leave_out_what_cannot_be_computed()
    if verifies:
        sweep.verify()
    draws = random.Random(seed)
    for number in range(n_rounds):
        sweep.run_round(number, n_rounds, draws)
    return tuple(sweep.swept())


@dataclass(slots=True, kw_only=True)
class _Sweep:
    meter: ShapeMeter
    cases: tuple[ShapeCase, ...]
    told: Told
    #: By the place of a case.
    missing: dict[int, str] = field(default_factory=dict)
    deviations: dict[int, Deviation] = field(default_factory=dict)
    samples_ns: dict[int, list[int]] = field(default_factory=dict)
    n_crashes: int = 0

    def leave_out_what_cannot_be_computed(self) -> None:
        """Ask the subject about each case; refuse a sweep of which nothing is left."""
        problems = {place: self.meter.problem(case) for place, case in enumerate(self.cases)}
        self.missing = {place: why for place, why in problems.items() if why is not None}
        if len(self.missing) == len(self.cases):
            raise ShapeError(f"{self.cases[0].case_id}: {self.missing[0]}")

    def verify(self) -> None:
        present = self._present()
        for n_done, place in enumerate(present):
            self.told(VERIFYING, n_done, len(present))
            try:
                self.deviations[place] = self.meter.verify(self.cases[place])
            except ShapeCrashError as crash:
                self._crashed(crash)
                self.missing[place] = str(crash)
        self.told(VERIFYING, len(present), len(present))

    def run_round(self, number: int, n_rounds: int, draws: random.Random) -> None:
        places = self._present()
        draws.shuffle(places)
        n_places = max(1, len(places))
        for first in range(0, len(places), _CASES_A_CALL):
            self.told(MEASURING, number * n_places + first, n_rounds * n_places)
            self._run(places[first : first + _CASES_A_CALL], draws)
        self.told(MEASURING, (number + 1) * n_places, n_rounds * n_places)

    def swept(self) -> Iterator[SweptCase]:
        for place, case in enumerate(self.cases):
            missing = self.missing.get(place)
            samples_ns = () if missing else tuple(self.samples_ns[place])
            yield SweptCase(case=case, samples_ns=samples_ns, deviation=self.deviations.get(place), missing=missing)

    def _present(self) -> list[int]:
        return [place for place in range(len(self.cases)) if place not in self.missing]

    def _run(self, places: Sequence[int], draws: random.Random) -> None:
        """Run cases; after a crash each half of them, until it is clear which case it was, if it still is one."""
        try:
            seed = draws.randrange(1 << 32)
            times_ns = self.meter.round([self.cases[place] for place in places], order_seed=seed)
        except ShapeCrashError as crash:
            self._crashed(crash)
            if len(places) == 1:
                self.missing[places[0]] = str(crash)
                return
            for half in (places[: len(places) // 2], places[len(places) // 2 :]):
                self._run(half, draws)
            return
        for place, time_ns in zip(places, times_ns, strict=True):
            self.samples_ns.setdefault(place, []).append(time_ns)

    def _crashed(self, crash: ShapeCrashError) -> None:
        self.n_crashes += 1
        if self.n_crashes > _MOST_CRASHES:
            raise MeasurementError(f"{self.n_crashes} crashes in one sweep, the last: {crash}") from crash
