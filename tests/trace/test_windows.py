"""Parts of a trace."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.windows import within
from tests.synthetic_opencl import EPOCH_NS, steady_commands, trace

PERIOD_NS = 100_000
ALIGNED = align(trace(steady_commands(10, int, period_ns=PERIOD_NS)))


def test_only_what_was_enqueued_within_is_left() -> None:
    """By where its call began, the end outside; touching windows share out all, and none leaves none."""
    first, last = EPOCH_NS + 2 * PERIOD_NS, EPOCH_NS + 4 * PERIOD_NS
    part = within(ALIGNED, [(first, last), (last + PERIOD_NS, last + PERIOD_NS + 1)])
    assert part.trace.commands["sequence"].tolist() == [2, 3, 5]
    assert np.array_equal(part.start_ns, ALIGNED.start_ns[[2, 3, 5]])
    assert part.anomalies.shape == part.device.shape == part.queued_ns.shape == (3,)
    edges = [EPOCH_NS + step * PERIOD_NS for step in range(11)]
    part = within(ALIGNED, list(pairwise(edges)))
    assert (part.trace.commands.size, within(ALIGNED, []).trace.commands.size) == (10, 0)
