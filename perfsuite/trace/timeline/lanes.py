"""Lanes: rows beside one another for what happens at the same time."""

from __future__ import annotations

import heapq

import numpy as np

from perfsuite.records.engine_trace import Ints


def lanes(start_ns: Ints, end_ns: Ints) -> Ints:
    """Give each stretch of time the lowest lane that is free at its start, so that none overlaps another of its lane.

    Starts are in ascending order, and no end is before its start.
    """
    found = np.zeros(len(start_ns), dtype=np.int64)
    if len(start_ns) < 2 or bool((start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]).all()):
        return found
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for position, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, lane))
        found[position] = lane
    return found
