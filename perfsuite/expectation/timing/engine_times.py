"""Forecasts whole phases: operators from their unit tests, and what the engine adds when it puts them together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import OPERATORS
from perfsuite.expectation.timing.calibration import Calibration, Composition
from perfsuite.expectation.timing.engine_factors import (
    PhaseFactor,
    factor_of,
    is_product,
    phase_factor,
    streamed_bytes,
)
from perfsuite.expectation.timing.features import family, shape_of
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import Family, OperatorTimes
from perfsuite.records.case import REST_ROLE
from perfsuite.records.events import EMBEDDING_ROLE, PROMPT_PHASES, Phase

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
            phase: phase_factor(found, self.operators, calibration.spread_bytes) for phase, found in by_phase.items()
        }

    def phase(self, shapes: Mapping[OperatorShape, int], phase: str, *, n_elsewhere: int = 0) -> TimeForecast:
        """Forecast a phase that computes each of the shapes so many times, the engine's own share included.

        That share is of the whole graph: `n_elsewhere` of its operators are told apart from the phase.
        """
        factor = self._factor(phase)
        within_ns, fit_spread, _ = self._within(shapes, factor, streamed_bytes(shapes), known=factor.families)
        rest_ns = _rest_ns(factor, sum(shapes.values()) + n_elsewhere)
        return _interval(within_ns + rest_ns, factor, fit_spread, factor.spread_ratio)

    def part(self, shapes: Mapping[OperatorShape, int], phase: str, *, n_bytes: int = 0) -> TimeForecast:
        """Forecast some operators of a phase, without the engine's share.

        All matrices of the phase are `n_bytes`; 0 says that it is not known what of them a cache holds.
        """
        factor = self._factor(phase)
        within_ns, fit_spread, kind_spread = self._within(shapes, factor, n_bytes)
        return _interval(within_ns, factor, fit_spread, kind_spread)

    def rest(self, n_operators: int, phase: str) -> TimeForecast:
        """Forecast what a phase spends outside its operators; it differs more than they do."""
        factor = self._factor(phase)
        return _interval(_rest_ns(factor, n_operators), factor, REST_SPREAD_RATIO)

    def token_phase(self, phase: str, n_vocab: int) -> TimeForecast | None:
        """Forecast what follows an evaluation, in proportion to the vocabulary; None where nothing was measured."""
        found = [each for each in self._token_phases if each.phase == phase]
        if not found:
            return None
        per_logit = factor_of([median(each.rounds_ns) / each.n_vocab for each in found])
        return _interval(per_logit.ratio * n_vocab, PhaseFactor(n_compositions=len(found)), per_logit.spread_ratio)

    def _factor(self, phase: str) -> PhaseFactor:
        """Return the factor of a phase; prompts of any kind have that of a prefill, which alone is calibrated."""
        known = Phase.DECODE.value if phase == Phase.DECODE.value else Phase.PREFILL.value
        return self.factors.get(known, UNKNOWN_PHASE)

    def _within(
        self,
        shapes: Mapping[OperatorShape, int],
        factor: PhaseFactor,
        n_bytes: int,
        *,
        known: frozenset[Family] = frozenset(),
    ) -> tuple[float, float, float]:
        """Sum the operators within the engine, ns; with what their fits and their factors may be wrong by.

        Operators of one fit err together, and so do those of one kind. What is `known` of is left out of the fits.
        """
        total_ns, uncached = 0.0, factor.cache.uncached_ratio(n_bytes)
        fit_errors: dict[Family, float] = defaultdict(float)
        kind_errors: dict[str, float] = defaultdict(float)
        for shape, count in shapes.items():
            time, kind = self.operators.time(shape), family(shape)[0]
            alone_ns = time.time_ns * count * (uncached if is_product(kind) else 1.0)
            within_ns = factor.kind(kind).within_ns(alone_ns, count)
            total_ns += within_ns
            if time.family not in known:
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
    return tuple(shape for shape in phase_nodes(workload, phase) if shape is not None)


def phase_nodes(workload: LlamaWorkload, phase: Phase) -> tuple[OperatorShape | None, ...]:
    """List the same with None for an operator of no rows, as a micro-batch without logits has."""
    return tuple(
        shape_of(operator, batch) if operator.output.n_elements else None
        for batch in workload.batches(phase)
        for operator in workload.operators(batch)
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


def case_forecasts(workload: LlamaWorkload, times: EngineTimes) -> dict[str, TimeForecast]:
    """Forecast the phases and the operators of a workload; what has no forecast is left out, as is what is not known.

    A phase is the sum of its operators as they run within the engine, and the engine's own share. The end to end adds
    the phases as often as they occur; with an image it has none, of which no operators are measured alone.
    """
    if not workload.has_graph:
        return {}
    forecasts: dict[str, TimeForecast] = {}
    phases: dict[Phase, TimeForecast] = {}
    for phase in workload.graph_phases():
        roles = _shapes_by_role(workload, phase)
        prefix = f"operator/{workload.prefix}/{phase.value}"
        known = {role: shapes for role, shapes in roles.items() if all(shape.op in OPERATORS for shape in shapes)}
        n_bytes = sum(map(streamed_bytes, roles.values()))
        for role, shapes in known.items():
            forecasts[f"{prefix}/{role}"] = times.part(shapes, phase.value, n_bytes=n_bytes)
        n_operators = sum(sum(shapes.values()) for shapes in roles.values())
        forecasts[f"{prefix}/{REST_ROLE}"] = times.rest(n_operators, phase.value)
        if known.keys() == roles.keys():
            phases |= _graph_phases(phase, roles, times)
    phases |= draft_forecasts(workload, times)
    for phase in workload.token_phases:
        forecast = times.token_phase(phase.value, workload.n_vocab) if workload.n_vocab else None
        if forecast is not None:
            phases[phase] = forecast
    if workload.projector is None and {*workload.graph_phases(), *workload.token_phases} <= set(phases):
        # Each bound with its like: what is wrong with one is likely to be wrong with all.
        phases[Phase.END_TO_END] = _added((each, workload.occurrences(phase)) for phase, each in phases.items())
    return forecasts | {f"phase/{workload.prefix}/{phase.value}": each for phase, each in phases.items()}


def _shapes_by_role(workload: LlamaWorkload, phase: Phase) -> Mapping[str, Counter[OperatorShape]]:
    roles: dict[str, Counter[OperatorShape]] = defaultdict(Counter)
    for batch in workload.batches(phase):
        for operator in workload.operators(batch):
            if operator.output.n_elements:
                roles[operator.role][shape_of(operator, batch)] += 1
    return roles


def _graph_phases(
    phase: Phase, roles: Mapping[str, Counter[OperatorShape]], times: EngineTimes
) -> dict[Phase, TimeForecast]:
    """Return a phase without its gather of embeddings, and of a prompt that gather for itself."""
    embedding = roles.get(EMBEDDING_ROLE, Counter())
    others = sum((shapes for role, shapes in roles.items() if role != EMBEDDING_ROLE), start=Counter[OperatorShape]())
    found = {phase: times.phase(others, phase.value, n_elsewhere=sum(embedding.values()))}
    if phase in PROMPT_PHASES and embedding:
        found[Phase.EMBEDDING] = times.part(embedding, phase.value)
    return found


def _added(weighted: Iterable[tuple[TimeForecast, int]]) -> TimeForecast:
    taken = tuple(weighted)
    return TimeForecast(
        expected_ns=sum(each.expected_ns * times for each, times in taken),
        lower_ns=sum(each.lower_ns * times for each, times in taken),
        upper_ns=sum(each.upper_ns * times for each, times in taken),
    )


def draft_forecasts(workload: LlamaWorkload, times: EngineTimes) -> dict[Phase, TimeForecast]:
    """Forecast what a draft does: it reads the prompt, and proposes a round's tokens one after the other."""
    draft = workload.draft
    if draft is None or not draft.has_graph:
        return {}
    found = {phase: times.phase(phase_shapes(draft, phase), phase.value) for phase in draft.graph_phases()}
    sampling = times.token_phase(Phase.SAMPLING.value, draft.weights.architecture.n_vocab)
    steps = [found[Phase.DECODE]] if Phase.DECODE in found else []
    steps += [sampling] if steps and sampling else []
    return {
        **({Phase.DRAFT_PREFILL: found[Phase.PREFILL]} if Phase.PREFILL in found else {}),
        **({Phase.DRAFT: _added((each, workload.n_draft) for each in steps)} if steps else {}),
    }
