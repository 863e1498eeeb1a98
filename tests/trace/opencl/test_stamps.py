"""Commands whose times cannot be right."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfsuite.records.opencl_commands import CommandFlag, CommandType
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.stamps import Anomaly, anomaly_text, is_kept, judge_stamps
from tests.synthetic_opencl import EPOCH_NS, command, drifting, steady_commands, timer_point, trace

FIELD = Path(__file__).parents[2] / "data" / "field"


@pytest.mark.parametrize(
    ("times", "fields", "expected", "kept"),
    [
        ((10, 20, 30, 40), {}, Anomaly.NONE, True),
        ((10, 10, 10, 11), {}, Anomaly.NONE, True),
        ((10, 10, 10, 10), {}, Anomaly.END_BEFORE_START, False),
        ((10, 10, 10, 10), {"type": CommandType.UNMAP}, Anomaly.NONE, True),
        ((10, 20, 30, 0), {}, Anomaly.ZERO_TIME, False),
        ((10, 20, 30, 40), {"flags": CommandFlag.NO_PROFILE}, Anomaly.ZERO_TIME, False),
        ((10, 20, 41, 40), {}, Anomaly.END_BEFORE_START, False),
        (((1 << 32) - 9, (1 << 32) - 5, (1 << 32) - 3, 40), {}, Anomaly.END_BEFORE_START, False),
        ((10, 20, 30, 40), {"status": -5}, Anomaly.FAILED, False),
        ((0, 20, 30, 40), {}, Anomaly.NO_QUEUED_OR_SUBMIT, True),
        ((21, 20, 30, 40), {}, Anomaly.SUBMIT_BEFORE_QUEUED, True),
        ((10, 55, 30, 40), {}, Anomaly.START_BEFORE_SUBMIT, True),
    ],
)
def test_times_in_the_wrong_order_are_odd(
    times: tuple[int, ...], fields: dict[str, int], expected: Anomaly, kept: bool
) -> None:
    """What START and END contradict is dropped; what QUEUED or SUBMIT alone does has an execution."""
    found = judge_stamps(command(0, EPOCH_NS, times, **fields))
    assert (Anomaly(int(found[0])), bool(is_kept(found)[0])) == (expected, kept)


def test_times_of_drivers_in_the_field() -> None:
    with (FIELD / "21-clinfo-odd-drivers/times.csv").open() as lines:
        rows = [[int(row[each]) for each in ("queued", "submit", "start", "end")] for row in csv.DictReader(lines)]
    aligned = align(trace([command(i, EPOCH_NS + i, four) for i, four in enumerate(rows)]))
    found, kept = aligned.execution
    assert kept.tolist() == [True, True, False, True, True, True, True]
    assert found[3:].tolist() == [11_000, 11_000, 52, 13_000]
    assert aligned.dispatch[1].tolist() == [True, True, False, False, False, True, True]
    assert anomaly_text(aligned.anomalies) == (
        "1 did not end after the start, 1 without QUEUED or SUBMIT, 1 started before submitted"
    )


def test_nothing_starts_before_its_call_or_ends_after_its_process() -> None:
    clock = drifting(offset_ns=10**12)
    points = [timer_point(EPOCH_NS + i * 100_000, clock) for i in range(100)]
    commands = steady_commands(100, clock)
    for name in ("queued_ns", "submit_ns", "start_ns"):
        commands[30][name] -= 60_000
    commands[50]["end_ns"] += 10**9
    whole = replace(trace(commands, clock_points=points), ended_ns=EPOCH_NS + 10_000_000)
    anomalies = align(whole).anomalies
    assert np.flatnonzero(anomalies).tolist() == [30, 50]
    assert anomalies[[30, 50]].tolist() == [Anomaly.START_BEFORE_CALL, Anomaly.IN_FUTURE]
    assert align(replace(whole, ended_ns=None)).anomalies[50] == Anomaly.NONE
