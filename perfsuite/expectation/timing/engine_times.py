"""Forecasts whole phases: operators from their unit tests, and what the engine adds when it puts them together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType

from perfsuite.expectation.cases import REST_ROLE
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import OPERATORS
from perfsuite.expectation.timing.calibration import Calibration, Composition
from perfsuite.expectation.timing.features import family, shape_of
from perfsuite.expectation.timing.least_squares import nonnegative_weights
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import Family, OperatorTimes
from perfsuite.records.events import EMBEDDING_ROLE, PROMPT_PHASES, Phase

#: What nothing was measured for may be wrong by a third.
UNKNOWN_SPREAD_RATIO = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Time within the engine over time alone."""

    ratio: float = 1.0
    #: Standard deviation of its logarithm from one architecture to the next.
    spread_ratio: float = UNKNOWN_SPREAD_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFactor:
    """What the engine makes of the operators of a phase, and what it spends beside them."""

    #: All operators together: for the kinds that no architecture of the calibration has.
    overall: Factor = field(default_factory=Factor)
    #: By kind of operator, read-only. Elementwise ones find their operands in another core's cache and take several
    #: times as long as alone; products hardly differ.
    kinds: Mapping[str, Factor] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    #: Standard deviation of the logarithm of a whole phase once every kind has its factor.
    spread_ratio: float = UNKNOWN_SPREAD_RATIO
    #: The same from one process to the next.
    process_spread_ratio: float = 0.0
    #: Beside the operators: for each evaluation, and for each operator in it, ns.
    rest_ns: float = 0.0
    rest_ns_per_operator: float = 0.0
    n_compositions: int = 0

    def kind(self, name: str) -> Factor:
        """Return the factor of a kind of operator."""
        return self.kinds.get(name, self.overall)


def phase_factor(compositions: Sequence[Composition], times: OperatorTimes) -> PhaseFactor:
    """Learn the factors of one phase: geometric means over the architectures."""
    within, alone = ([_by_kind(each, times)[side] for each in compositions] for side in (0, 1))
    kinds = {
        kind: factor_of([w[kind] / a[kind] for w, a in zip(within, alone, strict=True) if kind in w])
        for kind in dict.fromkeys(kind for each in within for kind in each)
    }
    overall = [sum(w.values()) / sum(a.values()) for w, a in zip(within, alone, strict=True)]
    left = [
        math.log(sum(w.values()) / sum(kinds[kind].ratio * time_ns for kind, time_ns in a.items()))
        for w, a in zip(within, alone, strict=True)
    ]
    rest_ns, rest_ns_per_operator = _rest(compositions)
    return PhaseFactor(
        overall=factor_of(overall),
        kinds=MappingProxyType(kinds),
        spread_ratio=_spread(left),
        process_spread_ratio=_process_spread(compositions),
        rest_ns=rest_ns,
        rest_ns_per_operator=rest_ns_per_operator,
        n_compositions=len(compositions),
    )


def _by_kind(composition: Composition, times: OperatorTimes) -> tuple[dict[str, float], dict[str, float]]:
    """Sum the operators of each kind, as they were within the engine and as they are forecast alone, ns."""
    within: dict[str, float] = defaultdict(float)
    alone: dict[str, float] = defaultdict(float)
    for shape, count, rounds_ns in zip(composition.shapes, composition.counts, composition.shapes_ns, strict=True):
        kind, _ = family(shape)
        within[kind] += median(rounds_ns)
        alone[kind] += times.time(shape).time_ns * count
    return within, alone


def factor_of(ratios: Sequence[float]) -> Factor:
    """Return the geometric mean of some ratios with their spread."""
    logs = [math.log(ratio) for ratio in ratios]
    return Factor(ratio=math.exp(sum(logs) / len(logs)), spread_ratio=_spread(logs))


def _spread(logs: Sequence[float]) -> float:
    """Return the standard deviation; one value alone has that of what is unknown."""
    center = sum(logs) / len(logs)
    squares = sum((log - center) ** 2 for log in logs)
    return math.sqrt(squares / (len(logs) - 1)) if len(logs) > 1 else UNKNOWN_SPREAD_RATIO


def _process_spread(compositions: Sequence[Composition]) -> float:
    """Return by how much the same operators differ from process to process, pooled over the architectures."""
    squares, n_free = 0.0, 0
    for composition in compositions:
        logs = [math.log(time_ns) for time_ns in composition.operators_ns]
        center = sum(logs) / len(logs)
        squares += sum((log - center) ** 2 for log in logs)
        n_free += len(logs) - 1
    return math.sqrt(squares / n_free) if n_free else 0.0


def _rest(compositions: Sequence[Composition]) -> tuple[float, float]:
    """Fit what lies beside the operators: so much for an evaluation, and so much for each operator."""
    terms = [(1.0, float(each.n_operators)) for each in compositions]
    rest_ns, rest_ns_per_operator = nonnegative_weights(terms, [median(each.rest_ns) for each in compositions])
    return rest_ns, rest_ns_per_operator


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
        factor = self._factor(phase)
        within_ns, fit_spread, _ = self._within(shapes, factor)
        rest_ns = _rest_ns(factor, sum(shapes.values()) + n_elsewhere)
        return _interval(within_ns + rest_ns, factor, fit_spread, factor.spread_ratio)

    def part(self, shapes: Mapping[OperatorShape, int], phase: str) -> TimeForecast:
        """Forecast some operators of a phase, without the engine's share."""
        factor = self._factor(phase)
        within_ns, fit_spread, kind_spread = self._within(shapes, factor)
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
        for role, shapes in known.items():
            forecasts[f"{prefix}/{role}"] = times.part(shapes, phase.value)
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
        phases[Phase.END_TO_END] = _end_to_end(workload, phases)
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


def _end_to_end(workload: LlamaWorkload, phases: Mapping[Phase, TimeForecast]) -> TimeForecast:
    """Add the phases, each bound with its like: what is wrong with one is likely to be wrong with all."""
    return _added((each, workload.occurrences(phase)) for phase, each in phases.items())


def _added(weighted: Iterable[tuple[TimeForecast, int]]) -> TimeForecast:
    """Add forecasts, each as often as it says."""
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
