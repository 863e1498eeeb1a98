"""What is reported of a process's OpenCL commands."""

from __future__ import annotations

import csv
import gzip
import json
from itertools import count

import numpy as np
import pytest

from perfsuite.records.opencl_commands import CommandType
from perfsuite.report.opencl_summary import plain_process, summarize
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.stamps import Anomaly

from ..synthetic_opencl import DEVICE, EPOCH_NS, command, drifting, queue, steady_commands, timer_point, trace
from ..sys_trees import FIELD


def test_every_figure_is_there_by_a_key_with_its_unit() -> None:
    """The keys are those that docs/opencl-tracing.md lists, and the values those of the trace."""
    commands = steady_commands(3, int)
    commands[2]["type"], commands[2]["name"], commands[2]["start_ns"] = CommandType.FILL, 0, 0
    points = [timer_point(EPOCH_NS + at, int, before_ns=0, after_ns=0) for at in range(0, 300_001, 1000)]
    plain = json.loads(json.dumps(plain_process(summarize(trace(commands, clock_points=points), n_gaps=5))))
    clock = plain["devices"][0].pop("clock")
    assert plain == {
        "pid": 4711,
        "n_commands": 3,
        "n_lost": 0,
        "n_unfinished": 0,
        "is_complete": True,
        "n_by_type": {"kernel": 2, "fill": 1},
        "n_odd": 1,
        "n_by_anomaly": {"zero_time": {"fill": 1}},
        "devices": [
            {
                "platform_name": "A platform",
                "device_name": "A device",
                "driver_version": "1.2",
                "timer_resolution_ns": None,
                "first_start_ns": EPOCH_NS + 25_000,
                "last_end_ns": EPOCH_NS + 150_000,
                "busy_ns": 50_000,
                "idle_ratio": 0.6,
                "n_left_out": 0,
                "n_gaps": 1,
                "longest_gaps": [
                    {"start_ns": EPOCH_NS + 50_000, "duration_ns": 75_000, "preceding": "alpha", "following": "alpha"}
                ],
            }
        ],
        "kernels": [
            {
                "name": "alpha",
                "n": 2,
                "n_left_out": 0,
                "share_ratio": 1.0,
                "tick_error_ratio": None,
                "execution": {"n": 2, "total_ns": 50_000, "median_ns": 25_000, "p95_ns": 25_000},
                "queueing": {"n": 2, "total_ns": 2000, "median_ns": 1000, "p95_ns": 1000},
                "dispatch": {"n": 2, "total_ns": 46_000, "median_ns": 23_000, "p95_ns": 23_000},
                "occupied": {"n": 2, "total_ns": 98_000, "median_ns": 49_000, "p95_ns": 49_000},
            }
        ],
    }
    assert clock.keys() == {"basis", "n_readings", "drift_ppm", "drift_error_ppm", "error_ns", "tick_ns"}
    assert clock["error_ns"] == 0
    two = trace(
        steady_commands(3, drifting()),
        devices=(DEVICE, DEVICE),
        queues=(queue(1, is_out_of_order=True), queue(2, device=1)),
        n_unfinished=None,
    )
    plain = plain_process(summarize(two, n_gaps=1))
    assert (plain["n_unfinished"], plain["is_complete"]) == (None, False)
    unused = plain["devices"][1]
    names = ("clock", "first_start_ns", "last_end_ns", "busy_ns", "idle_ratio")
    assert [unused[name] for name in names] == [None] * 5
    assert plain["n_lost"] is None
    assert plain["kernels"][0]["occupied"] is None


@pytest.mark.parametrize(("n_lost", "n_unfinished", "told"), [(5, 0, 5), (0, None, None), (5, None, None)])
def test_figures_over_holes_are_null(n_lost: int, n_unfinished: int | None, told: int | None) -> None:
    """Where commands are missing there is neither idle time nor a gap; the first and last recorded times stay."""
    plain = plain_process(summarize(trace(steady_commands(3, int), n_lost=n_lost, n_unfinished=n_unfinished), n_gaps=1))
    assert (plain["n_lost"], plain["is_complete"]) == (told, False)
    (device,) = plain["devices"]
    assert [device[name] for name in ("busy_ns", "idle_ratio", "n_gaps", "longest_gaps")] == [None] * 4
    assert (device["first_start_ns"], device["last_end_ns"]) == (EPOCH_NS + 25_000, EPOCH_NS + 250_000)
    (device,) = plain_process(summarize(trace(steady_commands(3, int), n_unfinished=2), n_gaps=1))["devices"]
    assert device["idle_ratio"] is not None


def test_a_summary_counts_all_and_leaves_out_what_cannot_be_right() -> None:
    """Commands and anomalies are counted by type."""
    commands = steady_commands(20, drifting())
    commands[3]["type"], commands[3]["name"] = CommandType.READ, 0
    commands[3]["start_ns"] = 0
    commands[7]["end_ns"] = commands[7]["start_ns"] - 1
    found = summarize(trace(commands, n_lost=2), n_gaps=3)
    assert (found.pid, found.n_commands, found.n_lost, found.n_unfinished) == (4711, 20, 2, 0)
    assert not found.is_complete
    assert found.n_by_type == {CommandType.KERNEL: 19, CommandType.READ: 1}
    assert found.n_by_anomaly == {
        Anomaly.ZERO_TIME: {CommandType.READ: 1},
        Anomaly.END_BEFORE_START: {CommandType.KERNEL: 1},
    }
    assert found.n_odd == 2
    assert [(each.name, each.n, each.n_left_out) for each in found.kernels] == [("alpha", 18, 1)]


def test_gaps_name_what_is_on_either_side() -> None:
    """By a kernel's name or a command's type."""
    times = [[EPOCH_NS + at + each for each in (100, 200, 300, 400)] for at in (0, 5000, 7000)]
    commands = [command(i, each[0] - 50, each) for i, each in enumerate(times)]
    commands[1]["type"], commands[1]["name"] = CommandType.WRITE, 0
    (device,) = summarize(trace(commands), n_gaps=1).devices
    assert device.longest_gaps is not None
    (gap,) = device.longest_gaps
    assert (gap.preceding, gap.following, gap.gap.duration_ns) == ("alpha", "write", 4900)
    assert device.n_gaps == 2
    assert device.whole is not None
    assert device.whole.busy_ns == 300


def test_a_driver_that_submits_late_is_told_from_slow_kernels() -> None:
    """The device is idle for two fifths, between commands that were queued long before: it waits for the driver."""
    path = FIELD / "22-opencl-driver-on-small-cores" / "launches.csv.gz"
    with gzip.open(path, "rt") as lines:
        rows = list(csv.DictReader(lines))
    ids = dict(zip(dict.fromkeys(each["kernel"] for each in rows), count(1)))
    fields = ("call_ns", "queued_ns", "submit_ns", "start_ns", "end_ns")
    commands = []
    for at, row in enumerate(rows):
        call_ns, *times = (EPOCH_NS + int(row[each]) for each in fields)
        commands.append(command(at, call_ns, times, name=ids[row["kernel"]]))
    last_ns = int(rows[-1]["end_ns"])
    points = [timer_point(EPOCH_NS + at, int, before_ns=0, after_ns=0) for at in range(0, last_ns + 1, 1_000_000)]
    traced = trace(commands, names=tuple(ids), clock_points=points)
    summary = summarize(traced, n_gaps=1568)
    (device,) = summary.devices
    assert device.whole is not None
    assert device.longest_gaps is not None
    assert device.whole.idle_ratio == pytest.approx(0.412, abs=5e-4)
    assert sum(each.gap.duration_ns >= 200_000 for each in device.longest_gaps) == 75
    aligned = align(traced)
    queueing_ns, dispatch_ns = (np.median(found[0]) for found in (aligned.queueing, aligned.dispatch))
    assert (queueing_ns, dispatch_ns) == (pytest.approx(1_240_000, rel=0.01), pytest.approx(9_000, rel=0.01))
    assert (summary.n_odd, sum(each.n for each in summary.kernels)) == (0, 1568)
