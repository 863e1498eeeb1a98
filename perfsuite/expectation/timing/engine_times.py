"""Forecasts whole phases: operators from their unit tests, and what the engine adds when it puts them together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType
from typing import Any, TypeAlias

from perfsuite.expectation.cases import REST_ROLE
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import OPERATORS, rule_of
from perfsuite.expectation.timing.calibration import Calibration, Composition
from perfsuite.expectation.timing.features import family, shape_cost, shape_of
from perfsuite.expectation.timing.least_squares import nonnegative_weights
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import Family, OperatorTimes
from perfsuite.records.events import EMBEDDING_ROLE, PROMPT_PHASES, Phase

#: Fewer architectures do not show whether an operator takes longer by a ratio or by a time; then a time is taken for
#: one that is so short alone.
_FEWEST_TO_CHOOSE = 3
_SMALL_NS = 5_000.0

#: What matrices are multiplied by, as `rule_of` calls it; how exactly a cache is known, and what it holds at most.
_PRODUCTS = "gemm"
_CACHE_STEP_BYTES = 1 << 20
#: How much less architectures must differ by it for a cache to be believed.
_LEAST_GAIN_RATIO = 0.01
_MOST_CACHED_RATIO = 0.5

#: What nothing was measured for may be wrong by a third.
UNKNOWN_SPREAD_RATIO = 0.3


@dataclass(slots=True, kw_only=True)
class _Side:
    """The operators of one kind in one architecture: within the engine, alone, and how many."""

    within_ns: float = 0.0
    alone_ns: float = 0.0
    n_operators: int = 0


#: By kind of operator.
_Sides: TypeAlias = Mapping[str, _Side]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Time within the engine against time alone: so many times as long, and so much longer."""

    ratio: float = 1.0
    #: For each operator.
    extra_ns: float = 0.0
    #: Standard deviation of its logarithm from one architecture to the next.
    spread_ratio: float = UNKNOWN_SPREAD_RATIO

    def within_ns(self, alone_ns: float, n_operators: int) -> float:
        """Return the time within the engine of so many operators, from what all of them take alone."""
        return alone_ns * self.ratio + n_operators * self.extra_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFactor:
    """What the engine makes of the operators of a phase, and what it spends beside them."""

    #: All operators together: for the kinds that no architecture of the calibration has.
    overall: Factor = field(default_factory=Factor)
    #: By kind of operator, read-only. Small ones wait for their operands, out of another core's cache, and take some
    #: microseconds more or several times as long as alone; products hardly differ.
    kinds: Mapping[str, Factor] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    #: The same by what `rule_of` calls their kinds together, for an operator that no architecture has.
    groups: Mapping[str, Factor] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    #: Bytes of the matrices that a cache still holds from one evaluation to the next, and over which the matrices of an
    #: operator alone were spread.
    cached_bytes: int = 0
    spread_bytes: int = 1
    #: What the logarithm of a whole phase is wrong by of an architecture that the factors were not learned from.
    spread_ratio: float = UNKNOWN_SPREAD_RATIO
    #: The same from one process to the next.
    process_spread_ratio: float = 0.0
    #: Beside the operators: for each evaluation, and for each operator in it, ns.
    rest_ns: float = 0.0
    rest_ns_per_operator: float = 0.0
    n_compositions: int = 0
    #: The fits of which some architecture has operators: what they are wrong by is in that spread.
    families: frozenset[Family] = frozenset()

    def kind(self, name: str) -> Factor:
        """Return the factor of a kind of operator, or of those that are like it."""
        return self.kinds.get(name) or self.groups.get(_group(name), self.overall)

    def uncached_ratio(self, n_bytes: float) -> float:
        """Return the share of the matrices of a phase that comes from memory, over that of an operator alone."""
        cached = min(self.cached_bytes, _MOST_CACHED_RATIO * n_bytes)
        return (1.0 - cached / n_bytes) / (1.0 - self.cached_bytes / self.spread_bytes) if n_bytes else 1.0


def phase_factor(compositions: Sequence[Composition], times: OperatorTimes, spread_bytes: int) -> PhaseFactor:
    """Learn the factors of one phase from several architectures."""
    cached_bytes = _cached_bytes(compositions, times, spread_bytes)
    cache = PhaseFactor(cached_bytes=cached_bytes, spread_bytes=spread_bytes)
    sides = [_by_kind(each, times, cache) for each in compositions]
    rest_ns, rest_ns_per_operator = _rest(compositions)
    return PhaseFactor(
        **_learned(sides),
        cached_bytes=cached_bytes,
        spread_bytes=spread_bytes,
        spread_ratio=_left_out_spread(sides),
        process_spread_ratio=_process_spread(compositions),
        rest_ns=rest_ns,
        rest_ns_per_operator=rest_ns_per_operator,
        n_compositions=len(compositions),
        families=frozenset(times.time(shape).family for each in compositions for shape in each.shapes),
    )


def _cached_bytes(compositions: Sequence[Composition], times: OperatorTimes, spread_bytes: int) -> int:
    """Return what a cache holds by how products of large and of small models differ; 0 where that is not to be seen.

    Only matrices that are multiplied by one row each are read for longer than they are computed with.
    """
    sizes = [streamed_bytes(dict(zip(each.shapes, each.counts, strict=True))) for each in compositions]
    streaming = [each for each, size in zip(compositions, sizes, strict=True) if size]
    is_decode = all(each.phase == Phase.DECODE.value for each in streaming)
    if not is_decode or len(streaming) < _FEWEST_TO_CHOOSE or max(sizes) < 2 * min(filter(None, sizes)):
        return 0

    def spread(cached_bytes: int) -> float:
        cache = PhaseFactor(cached_bytes=cached_bytes, spread_bytes=spread_bytes)
        products = [_summed(_by_kind(each, times, cache), _group)[_PRODUCTS] for each in streaming]
        return factor_of([side.within_ns / side.alone_ns for side in products]).spread_ratio

    found = min(range(0, spread_bytes // 2, _CACHE_STEP_BYTES), key=spread)
    return found if spread(found) < spread(0) - _LEAST_GAIN_RATIO else 0


def streamed_bytes(shapes: Mapping[OperatorShape, int]) -> int:
    """Count the bytes of all matrices that are multiplied by, and of the rows that are."""
    return sum(shape_cost(shape).read_bytes * count for shape, count in shapes.items() if _is_product(shape))


def _is_product(shape: OperatorShape) -> bool:
    return _group(shape.op) == _PRODUCTS and not shape.n_heads


def _group(name: str) -> str:
    """Return what operators that are alike share, of one that stands apart as well."""
    return rule_of(name if name in OPERATORS else name.partition("/")[0]).kind


def _learned(sides: Sequence[_Sides]) -> dict[str, Any]:
    """Return the factor of all operators, those of each kind, and those of the kinds that are alike."""
    whole = [_summed(each, lambda _: "") for each in sides]
    return {
        "overall": factor_of([each[""].within_ns / each[""].alone_ns for each in whole]),
        "kinds": _factors(sides),
        "groups": _factors([_summed(each, _group) for each in sides]),
    }


def _factors(sides: Sequence[_Sides]) -> Mapping[str, Factor]:
    names = dict.fromkeys(name for each in sides for name in each)
    return MappingProxyType({name: _factor([each[name] for each in sides if name in each]) for name in names})


def _factor(sides: Sequence[_Side]) -> Factor:
    """Return a ratio, or how much longer an operator takes: what differs less between the architectures."""
    by_ratio = factor_of([side.within_ns / side.alone_ns for side in sides])
    extra_ns = median((side.within_ns - side.alone_ns) / side.n_operators for side in sides)
    longer = Factor(extra_ns=extra_ns)
    if len(sides) < _FEWEST_TO_CHOOSE or extra_ns <= 0.0:
        is_small = max(side.alone_ns / side.n_operators for side in sides) < _SMALL_NS
        return longer if is_small and extra_ns > 0.0 else by_ratio
    errors = [math.log(side.within_ns / longer.within_ns(side.alone_ns, side.n_operators)) for side in sides]
    spread = math.sqrt(sum(error**2 for error in errors) / (len(errors) - 1))
    return replace(longer, spread_ratio=spread) if spread < by_ratio.spread_ratio else by_ratio


def _left_out_spread(sides: Sequence[_Sides]) -> float:
    """Return what the logarithm of a phase is wrong by where the factors are learned from the other architectures."""
    if len(sides) < 2:
        return UNKNOWN_SPREAD_RATIO
    squares = 0.0
    for at, each in enumerate(sides):
        others = PhaseFactor(**_learned([*sides[:at], *sides[at + 1 :]]))
        expected_ns = sum(others.kind(name).within_ns(side.alone_ns, side.n_operators) for name, side in each.items())
        squares += math.log(sum(side.within_ns for side in each.values()) / expected_ns) ** 2
    return math.sqrt(squares / len(sides))


def _summed(sides: _Sides, name_of: Callable[[str], str]) -> _Sides:
    """Add up the kinds that have one name."""
    found: dict[str, _Side] = defaultdict(_Side)
    for name, side in sides.items():
        into = found[name_of(name)]
        into.within_ns += side.within_ns
        into.alone_ns += side.alone_ns
        into.n_operators += side.n_operators
    return found


def _by_kind(composition: Composition, times: OperatorTimes, cache: PhaseFactor) -> _Sides:
    """Sum the operators of each kind, as they were within the engine and as they are forecast alone."""
    uncached = cache.uncached_ratio(streamed_bytes(dict(zip(composition.shapes, composition.counts, strict=True))))
    found: dict[str, _Side] = defaultdict(_Side)
    for shape, count, rounds_ns in zip(composition.shapes, composition.counts, composition.shapes_ns, strict=True):
        into = found[family(shape)[0]]
        into.within_ns += median(rounds_ns)
        into.alone_ns += times.time(shape).time_ns * count * (uncached if _is_product(shape) else 1.0)
        into.n_operators += count
    return found


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
        total_ns, uncached = 0.0, factor.uncached_ratio(n_bytes)
        fit_errors: dict[Family, float] = defaultdict(float)
        kind_errors: dict[str, float] = defaultdict(float)
        for shape, count in shapes.items():
            time, kind = self.operators.time(shape), family(shape)[0]
            alone_ns = time.time_ns * count * (uncached if _is_product(shape) else 1.0)
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
