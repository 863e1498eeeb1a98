"""How operators within the engine compare with their unit tests, from the calibration's own architectures."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType

from perfsuite.expectation.timing.calibration import Composition
from perfsuite.expectation.timing.features import family
from perfsuite.expectation.timing.least_squares import nonnegative_weights
from perfsuite.expectation.timing.operator_times import OperatorTimes

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
