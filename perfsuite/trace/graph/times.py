"""How long the operators of one graph take: medians over its evaluations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING
from perfsuite.trace.statistics.operator_runs import OperatorRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTimes:
    """One operator over all evaluations of its graph."""

    n_evaluations: int
    #: From the first thread's entry to the last one's return.
    time_ns: float
    #: From the graph's first entry to this operator's.
    start_ns: float
    #: By counter, summed over threads; None where it was not counted.
    counters: tuple[float | None, ...]


def node_times(runs: OperatorRuns, graph: int) -> tuple[dict[int, NodeTimes], float | None]:
    """Return the medians of each node that was computed, and of the evaluations from first entry to last return."""
    at = np.flatnonzero(runs.graph == graph)
    if not len(at):
        return {}, None
    evaluation = runs.evaluation[at]
    first = np.flatnonzero(np.diff(evaluation, prepend=evaluation[0] - 1))
    begin_ns = np.minimum.reduceat(runs.start_ns[at], first)
    wall_ns = np.maximum.reduceat(runs.end_ns[at], first) - begin_ns
    offset_ns = runs.start_ns[at] - np.repeat(begin_ns, np.diff(first, append=len(at)))
    order = np.argsort(runs.node[at], kind="stable")
    bounds = np.flatnonzero(np.diff(runs.node[at][order])) + 1
    found = {}
    for members in np.split(order, bounds):
        found[int(runs.node[at[members[0]]])] = NodeTimes(
            n_evaluations=len(members),
            time_ns=float(np.median(runs.duration_ns[at[members]])),
            start_ns=float(np.median(offset_ns[members])),
            counters=tuple(_counted(column) for column in runs.counters[at[members]].T),
        )
    return found, float(np.median(wall_ns))


def _counted(values: npt.NDArray[np.int64]) -> float | None:
    known = values[values != NOTHING]
    return float(np.median(known)) if len(known) else None
