"""Learns what the engine makes of its operators: against how long each takes alone, from models that ran whole."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType
from typing import TypeAlias

from perfsuite.expectation.op_rules import OPERATORS, rule_of
from perfsuite.expectation.timing.calibration import Composition
from perfsuite.expectation.timing.features import family, shape_cost
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import Family, OperatorTimes, nonnegative_weights
from perfsuite.records.events import Phase

#: What nothing was measured for may be wrong by a third.
UNKNOWN_SPREAD_RATIO = 0.3

#: Fewer architectures do not show whether an operator takes longer by a ratio or by a time; then a time is taken for
#: one that is so short alone.
_FEWEST_TO_CHOOSE = 3
_SMALL_NS = 5_000.0

#: What `rule_of` calls products with matrices of the model.
_PRODUCTS = "gemm"
#: How exactly a cache is known, what it holds of a model at most, and how much less architectures must differ by it for
#: it to be believed.
_CACHE_STEP_BYTES = 1 << 20
_MOST_CACHED_RATIO = 0.5
_LEAST_GAIN_RATIO = 0.01


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
class Cache:
    """What a cache keeps of the matrices of a model from one evaluation to the next."""

    kept_bytes: int = 0
    #: What the matrices of an operator alone were spread over, of which it keeps as much.
    spread_bytes: int = 1

    def uncached_ratio(self, n_bytes: int) -> float:
        """Return the share that comes from memory of matrices of so many bytes, over that of an operator alone."""
        kept = min(self.kept_bytes, _MOST_CACHED_RATIO * n_bytes)
        return (1.0 - kept / n_bytes) / (1.0 - self.kept_bytes / self.spread_bytes) if n_bytes else 1.0


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
    cache: Cache = field(default_factory=Cache)
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


def phase_factor(compositions: Sequence[Composition], times: OperatorTimes, spread_bytes: int) -> PhaseFactor:
    """Learn the factors of one phase from several architectures; matrices alone were spread over `spread_bytes`."""
    sizes = [streamed_bytes(dict(zip(each.shapes, each.counts, strict=True))) for each in compositions]
    cold = [_sides(each, times) for each in compositions]
    is_decode = all(each.phase == Phase.DECODE.value for each in compositions)
    cache = _learned_cache(sizes, cold, spread_bytes) if is_decode else Cache()
    sides = [_scaled(each, cache.uncached_ratio(size)) for each, size in zip(cold, sizes, strict=True)]
    rest_ns, rest_ns_per_operator = _rest(compositions)
    return replace(
        _learned(sides),
        cache=cache,
        spread_ratio=_left_out_spread(sides),
        process_spread_ratio=_process_spread(compositions),
        rest_ns=rest_ns,
        rest_ns_per_operator=rest_ns_per_operator,
        n_compositions=len(compositions),
        families=frozenset(times.time(shape).family for each in compositions for shape in each.shapes),
    )


def streamed_bytes(shapes: Mapping[OperatorShape, int]) -> int:
    """Count the bytes of all matrices that are multiplied by, and of the rows that are."""
    return sum(shape_cost(shape).read_bytes * n for shape, n in shapes.items() if is_product(family(shape)[0]))


def is_product(kind: str) -> bool:
    """Whether a kind of operator multiplies by matrices of the model; attention's products stand apart."""
    return rule_of(kind).kind == _PRODUCTS


def _group(kind: str) -> str:
    """Return what operators that are alike share, of one that stands apart as well."""
    return rule_of(kind if kind in OPERATORS else kind.partition("/")[0]).kind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """The operators of one kind in one architecture: within the engine, alone, and how many."""

    within_ns: float
    alone_ns: float
    n_operators: int

    @property
    def ratio(self) -> float:
        return self.within_ns / self.alone_ns


#: By kind of operator.
_Sides: TypeAlias = Mapping[str, _Side]


def _sides(composition: Composition, times: OperatorTimes) -> _Sides:
    """Sum the operators of each kind, as they were within the engine and as they are forecast alone."""
    found: dict[str, list[_Side]] = defaultdict(list)
    for shape, count, rounds_ns in zip(composition.shapes, composition.counts, composition.shapes_ns, strict=True):
        alone_ns = times.time(shape).time_ns * count
        found[family(shape)[0]].append(_Side(within_ns=median(rounds_ns), alone_ns=alone_ns, n_operators=count))
    return {kind: _summed(sides) for kind, sides in found.items()}


def _summed(sides: Iterable[_Side]) -> _Side:
    taken = tuple(sides)
    return _Side(
        within_ns=sum(each.within_ns for each in taken),
        alone_ns=sum(each.alone_ns for each in taken),
        n_operators=sum(each.n_operators for each in taken),
    )


def _merged(sides: _Sides, name_of: Callable[[str], str]) -> _Sides:
    found: dict[str, list[_Side]] = defaultdict(list)
    for kind, side in sides.items():
        found[name_of(kind)].append(side)
    return {name: _summed(members) for name, members in found.items()}


def _scaled(sides: _Sides, ratio: float) -> _Sides:
    return {
        kind: replace(side, alone_ns=side.alone_ns * ratio) if is_product(kind) else side
        for kind, side in sides.items()
    }


def _learned_cache(sizes: Sequence[int], sides: Sequence[_Sides], spread_bytes: int) -> Cache:
    """Learn what a cache keeps from how products of large and of small models differ; nothing where that is not seen.

    Only matrices that are multiplied by few rows are read for longer than they are computed with, as in decoding.
    """
    products = [
        (size, _summed(side for kind, side in each.items() if is_product(kind)).ratio)
        for size, each in zip(sizes, sides, strict=True)
        if size
    ]
    streamed = [size for size, _ in products]
    if len(products) < _FEWEST_TO_CHOOSE or max(streamed) < 2 * min(streamed):
        return Cache()

    def spread(cache: Cache) -> float:
        return factor_of([ratio / cache.uncached_ratio(size) for size, ratio in products]).spread_ratio

    none, *others = (
        Cache(kept_bytes=kept_bytes, spread_bytes=spread_bytes)
        for kept_bytes in range(0, spread_bytes // 2, _CACHE_STEP_BYTES)
    )
    best = min(others, key=spread)
    return best if spread(best) < spread(none) - _LEAST_GAIN_RATIO else none


def _learned(sides: Sequence[_Sides]) -> PhaseFactor:
    return PhaseFactor(
        overall=factor_of([_summed(each.values()).ratio for each in sides]),
        kinds=_factors(sides),
        groups=_factors([_merged(each, _group) for each in sides]),
    )


def _factors(sides: Sequence[_Sides]) -> Mapping[str, Factor]:
    names = dict.fromkeys(name for each in sides for name in each)
    return MappingProxyType({name: _factor([each[name] for each in sides if name in each]) for name in names})


def _factor(sides: Sequence[_Side]) -> Factor:
    """Return a ratio, or how much longer an operator takes: what differs less between the architectures."""
    by_ratio = factor_of([side.ratio for side in sides])
    longer = Factor(extra_ns=median((side.within_ns - side.alone_ns) / side.n_operators for side in sides))
    if longer.extra_ns <= 0.0:
        return by_ratio
    if len(sides) < _FEWEST_TO_CHOOSE:
        is_small = max(side.alone_ns / side.n_operators for side in sides) < _SMALL_NS
        return longer if is_small else by_ratio
    errors = [math.log(side.within_ns / longer.within_ns(side.alone_ns, side.n_operators)) for side in sides]
    spread = math.sqrt(sum(error**2 for error in errors) / (len(errors) - 1))
    return replace(longer, spread_ratio=spread) if spread < by_ratio.spread_ratio else by_ratio


def _left_out_spread(sides: Sequence[_Sides]) -> float:
    """Return what the logarithm of a phase is wrong by where the factors are learned from the other architectures."""
    if len(sides) < 2:
        return UNKNOWN_SPREAD_RATIO
    squares = 0.0
    for at, each in enumerate(sides):
        others = _learned([*sides[:at], *sides[at + 1 :]])
        expected_ns = sum(others.kind(kind).within_ns(side.alone_ns, side.n_operators) for kind, side in each.items())
        squares += math.log(_summed(each.values()).within_ns / expected_ns) ** 2
    return math.sqrt(squares / len(sides))


def factor_of(ratios: Sequence[float]) -> Factor:
    """Return the geometric mean of some ratios with their spread."""
    logs = [math.log(ratio) for ratio in ratios]
    return Factor(ratio=math.exp(sum(logs) / len(logs)), spread_ratio=_spread(logs))


def _spread(logs: Sequence[float]) -> float:
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
    """Fit what is beside the operators: so much for an evaluation, and so much for each operator."""
    terms = [(1.0, float(each.n_operators)) for each in compositions]
    rest_ns, rest_ns_per_operator = nonnegative_weights(terms, [median(each.rest_ns) for each in compositions])
    return rest_ns, rest_ns_per_operator
