"""Forecasts whole phases: operators from their unit tests, and what the engine adds when it puts them together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from scipy import stats

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import engine_graph
from perfsuite.expectation.timing.calibration import Calibration, Composition
from perfsuite.expectation.timing.operator_shape import OperatorShape, shape_of
from perfsuite.expectation.timing.operator_times import Family, OperatorTimes
from perfsuite.records.events import Phase

#: Share of the cases that an interval is meant to hold.
COVERAGE_RATIO = 0.90
#: No phase is believed to be forecast better than this.
LEAST_SPREAD_RATIO = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeForecast:
    """A forecast with the interval that is meant to hold nine measurements of ten, ns."""

    expected_ns: float
    lower_ns: float
    upper_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFactor:
    """How the operators of a phase within the engine compare with their unit tests."""

    #: Within the engine over alone.
    ratio: float
    #: Standard deviation of its logarithm from one architecture to the next.
    spread_ratio: float
    #: What the engine spends outside of its operators, for each of them, ns.
    rest_ns_per_operator: float
    n_compositions: int


#: What the engine spends outside its operators differs by this much: a graph is sometimes built anew.
REST_SPREAD_RATIO = 0.5

#: What nothing was measured for: operators add up as they are, and by a third more or less.
UNKNOWN_FACTOR = PhaseFactor(ratio=1.0, spread_ratio=0.3, rest_ns_per_operator=0.0, n_compositions=0)


class EngineTimes:
    """The forecasts of one calibration."""

    def __init__(self, calibration: Calibration) -> None:
        self.operators = OperatorTimes(calibration.points, n_threads=calibration.n_threads)
        self._drift_ratio = _drift(calibration)
        by_phase: dict[str, list[Composition]] = defaultdict(list)
        for composition in calibration.compositions:
            by_phase[composition.phase].append(composition)
        self._token_phases = calibration.token_phases
        self.factors: Mapping[str, PhaseFactor] = {phase: self._factor(found) for phase, found in by_phase.items()}

    def phase(self, shapes: Mapping[OperatorShape, int], phase: str, *, n_elsewhere: int = 0) -> TimeForecast:
        """Forecast a phase that computes each of the shapes so many times, the engine's own share included.

        That share is of the whole graph: `n_elsewhere` of its operators are told apart from the phase.
        """
        factor = self.factors.get(phase, UNKNOWN_FACTOR)
        alone_ns, fit_spread = self._alone(shapes)
        rest_ns = factor.rest_ns_per_operator * (sum(shapes.values()) + n_elsewhere)
        return self._interval(alone_ns * factor.ratio + rest_ns, fit_spread, factor)

    def part(self, shapes: Mapping[OperatorShape, int], phase: str) -> TimeForecast:
        """Forecast some operators of a phase, without the engine's share."""
        factor = self.factors.get(phase, UNKNOWN_FACTOR)
        alone_ns, fit_spread = self._alone(shapes)
        return self._interval(alone_ns * factor.ratio, fit_spread, factor)

    def rest(self, n_operators: int, phase: str) -> TimeForecast:
        """Forecast what a phase spends outside its operators; it differs more than they do."""
        factor = self.factors.get(phase, UNKNOWN_FACTOR)
        return self._interval(factor.rest_ns_per_operator * n_operators, REST_SPREAD_RATIO, factor)

    def token_phase(self, phase: str, n_vocab: int) -> TimeForecast | None:
        """Forecast what follows an evaluation, in proportion to the vocabulary; None where nothing was measured."""
        found = [each for each in self._token_phases if each.phase == phase]
        if not found:
            return None
        logs = [math.log(median(each.rounds_ns) / each.n_vocab) for each in found]
        center, spread = _center_and_spread(logs)
        factor = PhaseFactor(ratio=1.0, spread_ratio=spread, rest_ns_per_operator=0.0, n_compositions=len(found))
        return self._interval(math.exp(center) * n_vocab, 0.0, factor)

    def _alone(self, shapes: Mapping[OperatorShape, int]) -> tuple[float, float]:
        """Sum the operators, and the variance of what each fit may be wrong by; those of one fit err together."""
        by_family: dict[Family, list[float]] = defaultdict(list)
        weighted: dict[Family, float] = defaultdict(float)
        for shape, count in shapes.items():
            time = self.operators.time(shape)
            by_family[time.family].append(time.time_ns * count)
            weighted[time.family] += time.time_ns * count * time.spread_ratio
        total_ns = sum(map(sum, by_family.values()))
        if total_ns == 0.0:
            return 0.0, 0.0
        return total_ns, math.sqrt(sum(error * error for error in weighted.values())) / total_ns

    def _interval(self, expected_ns: float, fit_spread: float, factor: PhaseFactor) -> TimeForecast:
        spread = math.hypot(fit_spread, factor.spread_ratio, self._drift_ratio, LEAST_SPREAD_RATIO)
        width = math.exp(_quantile(factor.n_compositions) * spread)
        return TimeForecast(expected_ns=expected_ns, lower_ns=expected_ns / width, upper_ns=expected_ns * width)

    def _factor(self, compositions: Sequence[Composition]) -> PhaseFactor:
        logs = [
            math.log(median(each.operators_ns) / self._alone(dict(zip(each.shapes, each.counts, strict=True)))[0])
            for each in compositions
        ]
        center, spread = _center_and_spread(logs)
        return PhaseFactor(
            ratio=math.exp(center),
            spread_ratio=spread,
            rest_ns_per_operator=median(median(each.rest_ns) / each.n_operators for each in compositions),
            n_compositions=len(logs),
        )


def phase_shapes(workload: LlamaWorkload, phase: Phase) -> Counter[OperatorShape]:
    """Count the shapes of the operators that a workload computes in one occurrence of a phase."""
    weights = workload.weights
    return Counter(
        shape_of(operator, batch)
        for batch in workload.batches(phase)
        for operator in engine_graph(weights.architecture, weights.tensor_types, batch, workload.settings)
        if operator.output.n_elements  # a micro-batch without logits has operators of no rows
    )


def _center_and_spread(logs: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation; one value alone has the spread of what is unknown."""
    center = sum(logs) / len(logs)
    squares = sum((log - center) ** 2 for log in logs)
    return center, math.sqrt(squares / (len(logs) - 1)) if len(logs) > 1 else UNKNOWN_FACTOR.spread_ratio


def _quantile(n_compositions: int) -> float:
    """Return Student's quantile: few compositions leave the spread itself uncertain."""
    return float(stats.t.ppf((1.0 + COVERAGE_RATIO) / 2.0, max(1, n_compositions - 1)))


def _drift(calibration: Calibration) -> float:
    """Return by how much all operators together differed from one round to the next, as a logarithm's deviation."""
    n_rounds = min(len(point.rounds_ns) for point in calibration.points)
    if n_rounds < 2:
        return 0.0
    shifts = [
        median(math.log(point.rounds_ns[at] / median(point.rounds_ns)) for point in calibration.points)
        for at in range(n_rounds)
    ]
    center = sum(shifts) / n_rounds
    return math.sqrt(sum((shift - center) ** 2 for shift in shifts) / (n_rounds - 1))
