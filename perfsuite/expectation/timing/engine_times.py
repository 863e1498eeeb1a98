"""Forecasts whole phases: operators from their unit tests, and what the engine adds when it puts them together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.timing.calibration import Calibration, Composition
from perfsuite.expectation.timing.features import family, shape_of
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import Family, OperatorTimes
from perfsuite.expectation.timing.phase_factor import PhaseFactor, factor_of, phase_factor
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


#: What the engine spends outside its operators differs by this much: a graph is sometimes built anew.
REST_SPREAD_RATIO = 0.5

#: What nothing was measured for: operators add up as they are, and by a third more or less.
UNKNOWN_PHASE = PhaseFactor()


class EngineTimes:
    """The forecasts of one calibration."""

    def __init__(self, calibration: Calibration) -> None:
        self.operators = OperatorTimes(calibration.points, n_threads=calibration.n_threads)
        by_phase: dict[str, list[Composition]] = defaultdict(list)
        for composition in calibration.compositions:
            by_phase[composition.phase].append(composition)
        self._token_phases = calibration.token_phases
        self.factors: Mapping[str, PhaseFactor] = {
            phase: phase_factor(found, self.operators) for phase, found in by_phase.items()
        }

    def phase(self, shapes: Mapping[OperatorShape, int], phase: str, *, n_elsewhere: int = 0) -> TimeForecast:
        """Forecast a phase that computes each of the shapes so many times, the engine's own share included.

        That share is of the whole graph: `n_elsewhere` of its operators are told apart from the phase.
        """
        factor = self.factors.get(phase, UNKNOWN_PHASE)
        within_ns, fit_spread, _ = self._within(shapes, factor)
        rest_ns = _rest_ns(factor, sum(shapes.values()) + n_elsewhere)
        return _interval(within_ns + rest_ns, factor, fit_spread, factor.spread_ratio)

    def part(self, shapes: Mapping[OperatorShape, int], phase: str) -> TimeForecast:
        """Forecast some operators of a phase, without the engine's share."""
        factor = self.factors.get(phase, UNKNOWN_PHASE)
        within_ns, fit_spread, kind_spread = self._within(shapes, factor)
        return _interval(within_ns, factor, fit_spread, kind_spread)

    def rest(self, n_operators: int, phase: str) -> TimeForecast:
        """Forecast what a phase spends outside its operators; it differs more than they do."""
        factor = self.factors.get(phase, UNKNOWN_PHASE)
        return _interval(_rest_ns(factor, n_operators), factor, REST_SPREAD_RATIO)

    def token_phase(self, phase: str, n_vocab: int) -> TimeForecast | None:
        """Forecast what follows an evaluation, in proportion to the vocabulary; None where nothing was measured."""
        found = [each for each in self._token_phases if each.phase == phase]
        if not found:
            return None
        per_logit = factor_of([median(each.rounds_ns) / each.n_vocab for each in found])
        return _interval(per_logit.ratio * n_vocab, PhaseFactor(n_compositions=len(found)), per_logit.spread_ratio)

    def _within(self, shapes: Mapping[OperatorShape, int], factor: PhaseFactor) -> tuple[float, float, float]:
        """Sum the operators within the engine, ns; with what their fits and their factors may be wrong by.

        Operators of one fit err together, and so do those of one kind.
        """
        total_ns = 0.0
        fit_errors: dict[Family, float] = defaultdict(float)
        kind_errors: dict[str, float] = defaultdict(float)
        for shape, count in shapes.items():
            time, kind = self.operators.time(shape), family(shape)[0]
            within_ns = time.time_ns * count * factor.kind(kind).ratio
            total_ns += within_ns
            fit_errors[time.family] += within_ns * time.spread_ratio
            kind_errors[kind] += within_ns * factor.kind(kind).spread_ratio
        if total_ns == 0.0:
            return 0.0, 0.0, 0.0
        return total_ns, math.hypot(*fit_errors.values()) / total_ns, math.hypot(*kind_errors.values()) / total_ns


def phase_shapes(workload: LlamaWorkload, phase: Phase) -> Counter[OperatorShape]:
    """Count the shapes of the operators that a workload computes in one occurrence of a phase."""
    return Counter(phase_operators(workload, phase))


def phase_operators(workload: LlamaWorkload, phase: Phase) -> tuple[OperatorShape, ...]:
    """List the shapes of these operators in the order in which the engine computes them."""
    return tuple(
        shape_of(operator, batch)
        for batch in workload.batches(phase)
        for operator in workload.operators(batch)
        if operator.output.n_elements  # a micro-batch without logits has operators of no rows
    )


def _rest_ns(factor: PhaseFactor, n_operators: int) -> float:
    return factor.rest_ns + factor.rest_ns_per_operator * n_operators


def _interval(expected_ns: float, factor: PhaseFactor, *spreads: float) -> TimeForecast:
    """Join independent spreads; few architectures leave the spread itself uncertain, so the quantile is Student's."""
    # Imported here because scipy is slow to import and the plugin is loaded by every run of pytest.
    from scipy import stats

    spread = math.hypot(*spreads, factor.process_spread_ratio, LEAST_SPREAD_RATIO)
    quantile = float(stats.t.ppf((1.0 + COVERAGE_RATIO) / 2.0, max(1, factor.n_compositions - 1)))
    width = math.exp(quantile * spread)
    return TimeForecast(expected_ns=expected_ns, lower_ns=expected_ns / width, upper_ns=expected_ns * width)
