"""Pairs of builds in order, each made when a search asks for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from perfsuite.device.profile import Profile
from perfsuite.errors import EngineError, MeasurementError, NativeBuildError
from perfsuite.experiments.pairs import EnginePair, outputs_problem, pair_series, pairs_by_case
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import binds_threads
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Series
from perfsuite.records.case import Case, Expectation
from perfsuite.verdict.change_search import UnusableBuildError
from perfsuite.verdict.compare import physics

#: So many pairs more than those that were asked for may have competition before it is given up.
_MOST_LEFT_OUT = 20


@dataclass(kw_only=True)
class BuildPairs:
    """Takes pairs of any two of the builds, and keeps them."""

    board: Board
    profile: Profile
    #: How a process is run, whichever build it has.
    plan: LlamaPlan
    case: Case
    #: As their user calls them, oldest first.
    names: Sequence[str]
    make: Callable[[str], Engine]
    #: Hears what becomes of the search.
    remark: Callable[[str], None]
    #: The least that physics allows the case; None where that is not known.
    floor_ns: int | None = None
    #: Why builds cannot be measured, by their places.
    broken: dict[int, str] = field(default_factory=dict)
    _plans: dict[int, LlamaPlan] = field(default_factory=dict)
    _series: dict[tuple[int, int], Series[EnginePair]] = field(default_factory=dict)

    def is_made(self, build: int) -> bool:
        """Whether a build was measured before."""
        return build in self._plans

    def plan_of(self, build: int) -> LlamaPlan:
        """Return how a build is run; it is made, and tried once, where it was not yet.

        Raises `UnusableBuildError` where it does not compile, or does not run.
        """
        if build not in self._plans:
            try:
                engine = self.make(self.names[build])
                plan = replace(
                    self.plan,
                    library_dir=str(engine.library_dir),
                    engine_build_id=engine.build_id,
                    binds_threads=binds_threads(engine),
                )
                self.board.run(plan)
            except (EngineError, NativeBuildError, MeasurementError) as error:
                self.broken[build] = str(error)
                self.remark(f"{self.names[build]} is left out: {error}")
                raise UnusableBuildError(build) from error
            self._plans[build] = plan
        return self._plans[build]

    def take(self, old: int, new: int, n_pairs: int) -> list[float]:
        """Take more pairs of two builds, and return the ratios of the case's times, new over old.

        Raises MeasurementError: others have so much of the device that there are none, or one is faster than physics
        allows.
        """
        if (old, new) not in self._series:
            plans = (self.plan_of(old), self.plan_of(new))
            self._series[old, new] = pair_series(self.board, plans)
        series = self._series[old, new]
        n_had = len(series.valid)
        taken = series.extend(n_had + n_pairs, most_left_out=len(series.complaints) + n_pairs + _MOST_LEFT_OUT)[n_had:]
        if n_had == 0:
            for problem in outputs_problem(taken):
                self.remark(f"{self.names[old]} and {self.names[new]}: {problem}")
        sides = pairs_by_case([self.case], taken).get(self.case.case_id)
        if sides is None:
            why = series.complaints[-1] if series.complaints else f"they do not both measure {self.case.case_id}"
            raise MeasurementError(f"{self.names[old]} and {self.names[new]} cannot be compared: {why}")
        for build, times_ns in zip((old, new), sides, strict=True):
            taken_ns = round(median(times_ns))
            for finding in physics(taken_ns, Expectation(floor_ns=self.floor_ns)):
                raise MeasurementError(f"{self.names[build]}: {self.case.case_id}: {finding.reason}")
        return [new_ns / old_ns for old_ns, new_ns in zip(*sides, strict=True)]
