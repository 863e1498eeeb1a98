"""Times that cannot be right."""

from __future__ import annotations

import pytest

from perfsuite.records.opencl_commands import CommandFlag
from perfsuite.trace.opencl.command_anomalies import Anomaly, own_anomalies

from ...synthetic_opencl import EPOCH_NS, command


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
