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
    """A command belongs to the window in which its call began; the end of a window is outside."""
    first, last = EPOCH_NS + 2 * PERIOD_NS, EPOCH_NS + 4 * PERIOD_NS
    part = within(ALIGNED, [(first, last), (last + PERIOD_NS, last + PERIOD_NS + 1)])
    assert part.trace.commands["sequence"].tolist() == [2, 3, 5]
    assert np.array_equal(part.start_ns, ALIGNED.start_ns[[2, 3, 5]])
    assert part.anomalies.shape == part.device.shape == part.queued_ns.shape == (3,)


def test_windows_that_touch_miss_nothing() -> None:
    """Steps that follow one another without a gap share out all commands."""
    edges = [EPOCH_NS + step * PERIOD_NS for step in range(11)]
    part = within(ALIGNED, list(pairwise(edges)))
    assert part.trace.commands.size == 10


def test_no_window_leaves_nothing() -> None:
    """Without windows the trace is empty, and still a trace."""
    assert within(ALIGNED, []).trace.commands.size == 0
