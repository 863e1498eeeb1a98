"""Counters over time: how fast each thread counts during each operator.

    rate = count / (end - start)        per second, of one operator on one thread

A rate holds until the thread's next operator; behind the last one of an evaluation it is 0.
"""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EngineTrace, Events
from perfsuite.trace.timeline.tracks import POINT_DTYPE, Points
from perfsuite.units import NS_PER_S


def counter_points(trace: EngineTrace, operators: Events) -> dict[int, tuple[Points, ...]]:
    """Return by thread the points of each counter, in the order of the counters' names; `track` is not set yet."""
    if not len(trace.counters) or not trace.counter_names:
        return {}
    counted = operators[(operators["counters"] != NOTHING) & (operators["end_ns"] > operators["start_ns"])]
    found = {}
    for thread in np.unique(counted["thread"]).tolist():
        own = counted[counted["thread"] == thread]
        found[thread] = tuple(_points(trace, own, column) for column in range(len(trace.counter_names)))
    return found


def _points(trace: EngineTrace, own: Events, column: int) -> Points:
    counts = trace.counters[own["counters"], column]
    own, counts = own[counts != NOTHING], counts[counts != NOTHING]
    rates = counts * (NS_PER_S / (own["end_ns"] - own["start_ns"]))
    last = np.flatnonzero(np.diff(own["evaluation"], append=NOTHING - 1)) if len(own) else np.zeros(0, dtype=np.int64)
    points = np.zeros(len(own) + len(last), POINT_DTYPE)
    behind = np.zeros(len(points), dtype=np.bool_)
    behind[last + 1 + np.arange(len(last))] = True
    points["ns"][~behind], points["value"][~behind] = own["start_ns"], np.rint(rates)
    points["ns"][behind] = own["end_ns"][last]
    return points
