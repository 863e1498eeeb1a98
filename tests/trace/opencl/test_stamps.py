"""Each of a command's four times judged by itself."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from perfsuite.records.opencl_commands import CommandFlag, Commands
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.stamps import (
    DISPATCH,
    EXECUTION,
    QUEUEING,
    Anomaly,
    Stamp,
    duration_ns,
    judge_stamps,
)
from tests.synthetic_opencl import EPOCH_NS, command, drifting, queue, steady_commands, timer_point, trace

FIELD = Path(__file__).parents[2] / "data" / "field"
NONE = Stamp(0)
ALL = QUEUEING | EXECUTION


@pytest.mark.parametrize(
    ("times", "fields", "expected", "missing"),
    [
        ((10, 20, 30, 40), {}, Anomaly(0), NONE),
        ((10, 10, 10, 10), {}, Anomaly(0), NONE),
        ((10, 20, 30, 0), {}, Anomaly.ZERO_TIME, Stamp.END),
        ((0, 20, 30, 40), {}, Anomaly.ZERO_TIME, Stamp.QUEUED),
        ((10, 20, 30, 40), {"flags": CommandFlag.NO_PROFILE}, Anomaly.ZERO_TIME, ALL),
        ((21, 20, 30, 40), {}, Anomaly.SUBMIT_BEFORE_QUEUED, NONE),
        ((31, 20, 30, 40), {}, Anomaly.SUBMIT_BEFORE_QUEUED, Stamp.QUEUED),
        ((10, 31, 30, 40), {}, Anomaly.START_BEFORE_SUBMIT, Stamp.SUBMIT),
        ((10, 55, 30, 40), {}, Anomaly.START_BEFORE_SUBMIT, Stamp.SUBMIT),
        ((10, 20, 41, 40), {}, Anomaly.END_BEFORE_START, EXECUTION),
        ((10, 20, 30, 15), {}, Anomaly.END_BEFORE_START, Stamp.END),
        ((25, 20, 41, 40), {}, Anomaly.SUBMIT_BEFORE_QUEUED | Anomaly.END_BEFORE_START, EXECUTION),
        (((1 << 32) - 9, (1 << 32) - 5, 30, 40), {}, Anomaly.WRAPPED, NONE),
        ((10, 20, 30, 40), {"status": -5}, Anomaly.FAILED, ALL),
        ((0, 0, 0, 0), {"status": -36}, Anomaly.ZERO_TIME | Anomaly.FAILED, ALL),
    ],
)
def test_each_time_is_missing_for_itself(
    times: tuple[int, ...], fields: dict[str, int], expected: Anomaly, missing: Stamp
) -> None:
    found = judge_stamps(command(0, EPOCH_NS, times, **fields))
    assert (Anomaly(int(found.anomalies[0])), Stamp(int(found.missing[0]))) == (expected, missing)


@pytest.mark.parametrize(
    ("missing", "known"),
    [
        (NONE, {QUEUEING: 10, DISPATCH: 20, EXECUTION: 30}),
        (Stamp.QUEUED, {DISPATCH: 20, EXECUTION: 30}),
        (Stamp.SUBMIT, {EXECUTION: 30}),
        (Stamp.END, {QUEUEING: 10, DISPATCH: 20}),
    ],
)
def test_a_duration_needs_two_times(missing: Stamp, known: dict[Stamp, int]) -> None:
    commands, flags = command(0, EPOCH_NS, (10, 20, 40, 70)), np.array([missing], np.uint16)
    durations = {each: duration_ns(commands, flags, each) for each in (QUEUEING, DISPATCH, EXECUTION)}
    assert {each: int(found[0]) for each, (found, is_known) in durations.items() if is_known[0]} == known


def busy() -> Commands:
    return np.concatenate(
        [command(i, EPOCH_NS + i, [each + 10 for each in (i, i + 1, 1000 * i + 50, 1000 * i + 1050)]) for i in range(9)]
    )


@pytest.mark.parametrize(
    ("stamp", "moved_ns", "missing"),
    [
        ("start_ns", -400, Stamp.START | Stamp.END),
        ("start_ns", -4045, Stamp.START),
        ("start_ns", +1200, Stamp.START),
        ("end_ns", -1200, Stamp.END),
        ("end_ns", +1500, Stamp.END),
    ],
)
def test_neighbours_tell_which_time_is_wrong(stamp: str, moved_ns: int, missing: Stamp) -> None:
    """On an in-order queue a time out of the order of its kind is wrong; out of order, nothing is known of it."""
    commands = busy()
    commands[stamp][4] += moved_ns
    found = judge_stamps(commands, [queue()])
    assert Stamp(int(np.bitwise_or.reduce(found.missing))) == missing
    others = np.delete(found.missing, [3, 4, 5])
    assert (found.missing[4] != 0, others.any()) == (True, False)
    free = judge_stamps(commands, [queue(is_out_of_order=True)])
    assert (free.anomalies & Anomaly.OVERLAPS == 0).all()


def test_a_start_before_submit_is_not_believed_of_a_driver_that_starts_too_early() -> None:
    """Where neighbours show it again and again, no START before SUBMIT counts; where they never do, all count."""
    early = np.concatenate([command(i, EPOCH_NS + i, (i + 10, i + 900, i + 50, i + 1050)) for i in range(8)])
    assert set(judge_stamps(early, [queue()]).missing.tolist()) == {Stamp.START}
    late = busy()
    late["submit_ns"] = late["end_ns"] + 300
    assert set(judge_stamps(late, [queue()]).missing.tolist()) == {Stamp.SUBMIT}


def test_what_takes_many_ticks_does_not_end_when_it_starts() -> None:
    commands = busy()
    commands["start_ns"][4] = commands["end_ns"][4]
    found = judge_stamps(commands, [queue()])
    assert (Anomaly(int(found.anomalies[4])), Stamp(int(found.missing[4]))) == (Anomaly.NO_LENGTH, EXECUTION)
    assert not judge_stamps(commands, [queue()], tick_ns=1000).anomalies.any()


def test_times_of_drivers_in_the_field() -> None:
    with (FIELD / "21-clinfo-odd-drivers/times.csv").open() as lines:
        rows = [(row.pop("driver").split(" ")[0], row.pop("kernel"), row.values()) for row in csv.DictReader(lines)]
    missing, executed_ns = [], []
    for driver in dict.fromkeys(each for each, _, _ in rows):
        times = [[int(each) for each in four] for name, _, four in rows if name == driver]
        commands = np.concatenate([command(i, EPOCH_NS + i, four) for i, four in enumerate(times)])
        found = judge_stamps(commands, [queue()])
        missing += [Stamp(int(each)) for each in found.missing]
        executed_ns += duration_ns(commands, found.missing, EXECUTION)[0].tolist()
    assert missing == [NONE, NONE, EXECUTION, Stamp.SUBMIT, Stamp.SUBMIT, NONE, NONE]
    assert executed_ns[3:] == [11_000, 11_000, 52, 13_000]


def test_the_hosts_clock_tells_queued_from_submit_and_a_start_that_cannot_be() -> None:
    """Of the two it is the one outside of the call, and no START is before the call."""
    clock = drifting(offset_ns=10**12)
    points = [timer_point(EPOCH_NS + i * 100_000, clock) for i in range(100)]
    commands = steady_commands(100, clock)
    commands[10]["queued_ns"] = commands[10]["start_ns"] - 1
    commands[20]["submit_ns"] = commands[20]["queued_ns"] - 300
    commands[30]["start_ns"] -= 60_000
    aligned = align(trace(commands, clock_points=points))
    missing = {int(each): Stamp(int(aligned.missing[each])) for each in np.flatnonzero(aligned.missing)}
    assert missing[10] == Stamp.QUEUED
    assert missing[20] == Stamp.SUBMIT
    assert Stamp.START in missing[30]
    assert aligned.anomalies[30] & Anomaly.START_BEFORE_CALL
    assert missing.keys() == {10, 20, 30}
