"""What a device's clock is read by."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.records.opencl_commands import CommandFlag
from perfsuite.trace.opencl.clock_choice import Anomaly, ClockBasis, best_fit, own_anomalies

from ...synthetic_opencl import EPOCH_NS, command, drifting, steady_commands, timer_point, trace


@pytest.mark.parametrize(
    ("times", "fields", "expected"),
    [
        ((10, 20, 30, 40), {}, Anomaly(0)),
        ((10, 10, 10, 10), {}, Anomaly(0)),
        ((10, 20, 30, 0), {}, Anomaly.ZERO_TIME),
        ((0, 20, 30, 40), {}, Anomaly.ZERO_TIME),
        ((10, 20, 30, 40), {"flags": CommandFlag.NO_PROFILE}, Anomaly.ZERO_TIME),
        ((21, 20, 30, 40), {}, Anomaly.SUBMIT_BEFORE_QUEUED),
        ((10, 31, 30, 40), {}, Anomaly.START_BEFORE_SUBMIT),
        ((10, 20, 41, 40), {}, Anomaly.END_BEFORE_START),
        ((25, 20, 41, 40), {}, Anomaly.SUBMIT_BEFORE_QUEUED | Anomaly.END_BEFORE_START),
        (((1 << 32) - 9, (1 << 32) - 5, 30, 40), {}, Anomaly.WRAPPED),
        ((10, 20, 30, 40), {"status": -5}, Anomaly.FAILED),
        ((0, 0, 0, 0), {"status": -36}, Anomaly.ZERO_TIME | Anomaly.FAILED),
    ],
)
def test_each_anomaly_is_found(times: tuple[int, ...], fields: dict[str, int], expected: Anomaly) -> None:
    """Times of zero, out of order or wrapped, and commands that failed, have each a flag of their own."""
    assert Anomaly(int(own_anomalies(command(0, EPOCH_NS, times, **fields))[0])) == expected


@pytest.mark.parametrize(
    ("call_ns", "timer", "expected"),
    [
        (2000, None, ClockBasis.ENQUEUE_CALLS),
        (24_000, (10, 10, 100_000), ClockBasis.TIMER),
        (2000, (10, 1000, 10_000_000), ClockBasis.TIMER_AND_CALLS),
    ],
)
def test_what_has_the_smallest_error_is_chosen(
    call_ns: int, timer: tuple[int, int, int] | None, expected: ClockBasis
) -> None:
    """Long calls add nothing to a close timer; a rare one that bounds the other side makes calls the closer."""
    clock = drifting(offset_ns=-(10**12), ppm=15.0)
    commands = np.concatenate(steady_commands(300, clock, call_ns=call_ns))
    points = []
    if timer is not None:
        before_ns, after_ns, period_ns = timer
        ats = range(EPOCH_NS, EPOCH_NS + 31_000_000, period_ns)
        points = [timer_point(at, clock, before_ns=before_ns, after_ns=after_ns) for at in ats]
    fit = best_fit(trace([commands], clock_points=points), 0, commands, own_anomalies(commands))
    assert fit is not None
    assert (fit.clock.basis, fit.misfit) == (expected, 0)
    assert not fit.is_outside.any()


def test_a_device_that_nothing_was_heard_of_has_no_fit() -> None:
    """Without a timer's reading and without a command there is nothing to choose."""
    empty = trace([])
    assert best_fit(empty, 0, empty.commands, own_anomalies(empty.commands)) is None
