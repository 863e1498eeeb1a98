"""Whether experts that were not used for long cost time: reuse distance against operator time and major faults.

For each evaluation of a layer's products with experts: the mean reuse distance of the experts that it read (a first use
counts as longer than all others), the time of those products, and the major faults of all threads within them. Their
rank correlation is Spearman's. Only steps of one token count: a prompt reads nearly all experts, and its time is
arithmetic.

*Source*: ProfInfer, section on experts: the reuse distance tracks page faults when the weights are larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from statistics import fmean

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EngineTrace
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.trace.statistics.operator_runs import (
    OperatorRuns,
    OperatorTable,
    expert_products,
    operator_runs,
    operator_table,
)

#: What the counter of major faults is called.
MAJOR_FAULTS = "page-faults-major"

#: Fewer evaluations have no correlation worth reporting.
LEAST_EVALUATIONS = 20

_BINS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertEvaluation:
    """The products with experts of one layer in one step."""

    iteration: int
    layer: int
    #: Mean distance of the experts that it read, in iterations; None where one of them was never active before.
    distance: float | None
    time_ns: int
    n_major_faults: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceBin:
    """Evaluations of similar distance; None for what reads an expert for the first time."""

    least_distance: float | None
    most_distance: float | None
    n: int
    mean_time_ns: float
    mean_major_faults: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCorrelation:
    """Spearman's: of -1 to 1, and the chance of so much where there is none."""

    rho: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRelation:
    """How distance, time and faults go together; a correlation is None where it cannot be known."""

    evaluations: tuple[ExpertEvaluation, ...]
    n_major_faults: int | None
    distance_to_time: RankCorrelation | None
    distance_to_faults: RankCorrelation | None
    faults_to_time: RankCorrelation | None
    bins: tuple[DistanceBin, ...]


def fault_relation(trace: EngineTrace) -> FaultRelation:
    """Relate reuse distance, time and major faults of a trace's products with experts."""
    runs, table = operator_runs(trace), operator_table(trace)
    layers = expert_reuse(trace.experts, trace.n_experts)
    found = tuple(_evaluations(layers, _measured(trace, runs, table)))
    faults = [each.n_major_faults for each in found if each.n_major_faults is not None]
    far = max((each.distance for each in found if each.distance is not None), default=0.0) + 1.0
    distances = [far if each.distance is None else each.distance for each in found]
    times = [float(each.time_ns) for each in found]
    has_faults = bool(found) and len(faults) == len(found)
    return FaultRelation(
        evaluations=found,
        n_major_faults=sum(faults) if has_faults else None,
        distance_to_time=rank_correlation(distances, times),
        distance_to_faults=rank_correlation(distances, faults) if has_faults else None,
        faults_to_time=rank_correlation(faults, times) if has_faults else None,
        bins=tuple(_bins(found)),
    )


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> RankCorrelation | None:
    """Return Spearman's correlation; None for fewer than `LEAST_EVALUATIONS` pairs, or where one side is constant."""
    if len(first) < LEAST_EVALUATIONS or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    from scipy.stats import spearmanr  # takes a third of a second to load

    found = spearmanr(first, second)
    return RankCorrelation(rho=float(found.statistic), p=float(found.pvalue))


_Measured = dict[tuple[int, int], tuple[int, int | None]]


def _measured(trace: EngineTrace, runs: OperatorRuns, table: OperatorTable) -> _Measured:
    """Return time and major faults of the products with experts by step and layer, decoding alone."""
    column = trace.counter_names.index(MAJOR_FAULTS) if MAJOR_FAULTS in trace.counter_names else None
    durations_ns, found = runs.duration_ns, _Measured()
    for at, step, layer in expert_products(runs, table):
        if runs.is_decode[at]:
            time_ns, faults = found.get((step, layer), (0, 0))
            counted = NOTHING if column is None else int(runs.counters[at, column])
            faults = None if faults is None or counted == NOTHING else faults + counted
            found[step, layer] = time_ns + int(durations_ns[at]), faults
    return found


def _evaluations(layers: Sequence[LayerReuse], measured: _Measured) -> Iterator[ExpertEvaluation]:
    for layer in layers:
        for iteration, group in groupby(layer.activations, key=attrgetter("iteration")):
            if (iteration, layer.layer) in measured:
                time_ns, faults = measured[iteration, layer.layer]
                distances = [each.distance for each in group]
                known = [each for each in distances if each is not None]
                yield ExpertEvaluation(
                    iteration=iteration,
                    layer=layer.layer,
                    distance=fmean(known) if len(known) == len(distances) else None,
                    time_ns=time_ns,
                    n_major_faults=faults,
                )


def _bins(found: Sequence[ExpertEvaluation]) -> Iterator[DistanceBin]:
    """Part the evaluations into bins of about as many each, equal distances together; first uses make one bin."""
    known = sorted((each for each in found if each.distance is not None), key=lambda each: each.distance or 0.0)
    values = np.array([each.distance for each in known], dtype=np.float64)
    if values.size:
        edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
        where = np.searchsorted(edges, values, side="left")
        for place in np.unique(where):
            yield _bin([known[at] for at in np.flatnonzero(where == place)])
    if firsts := [each for each in found if each.distance is None]:
        yield _bin(firsts)


def _bin(members: Sequence[ExpertEvaluation]) -> DistanceBin:
    distances = [each.distance for each in members if each.distance is not None]
    faults = [each.n_major_faults for each in members if each.n_major_faults is not None]
    return DistanceBin(
        least_distance=min(distances, default=None),
        most_distance=max(distances, default=None),
        n=len(members),
        mean_time_ns=fmean(each.time_ns for each in members),
        mean_major_faults=fmean(faults) if len(faults) == len(members) else None,
    )
