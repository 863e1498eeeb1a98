"""Builds what the suite's own recorders keep of a run, evaluation by evaluation."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_columns import RING_DTYPE
from perfsuite.records.engine_trace import NOTHING


def evaluation(launch_ns: int, *ends_ns: int, graph: int = 0, first_start_ns: int | None = None) -> bytes:
    """Return the events of one evaluation, whose operators end at these times."""
    entry = [] if first_start_ns is None else [(first_start_ns, graph, NOTHING)]
    ends = [(end_ns, graph, 1 + place) for place, end_ns in enumerate(ends_ns)]
    return np.array([*entry, (launch_ns, graph, 0), *ends], RING_DTYPE).tobytes()
