"""Statistics by kernel, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.records.opencl_commands import Commands, CommandType
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.kernel_samples import filled
from perfsuite.trace.opencl.kernel_statistics import Spread, kernel_statistics, occupied_times

from ...synthetic_opencl import EPOCH_NS, command, queue, trace


def launch(sequence: int, *times: int, **fields: int) -> Commands:
    return command(sequence, EPOCH_NS + times[0] - 1, [EPOCH_NS + each for each in times], **fields)


def test_kernels_come_by_their_share() -> None:
    commands = [launch(i, 1000 * i, 1000 * i + 10 + i, 1000 * i + 50, 1000 * i + 150 + 100 * i) for i in range(3)]
    (found,) = kernel_statistics(align(trace(commands)))
    assert (found.name, found.n, found.n_left_out, found.share_ratio) == ("alpha", 3, 0, 1.0)
    assert found.queueing == Spread(total_ns=33, median_ns=11, p95_ns=12)
    assert found.dispatch == Spread(total_ns=117, median_ns=39, p95_ns=40)
    assert found.execution == Spread(total_ns=600, median_ns=200, p95_ns=290)
    commands = [
        launch(0, 0, 1, 2, 102, name=1),
        launch(1, 200, 201, 202, 502, name=2),
        launch(2, 600, 601, 602, 702, name=2),
        launch(3, 800, 801, 802, 9802, name=0, type=CommandType.READ),
    ]
    found = kernel_statistics(align(trace(commands)))
    assert [(each.name, each.n, each.share_ratio) for each in found] == [("beta", 2, 0.8), ("alpha", 1, 0.2)]
    commands = [launch(0, 0, 1, 2, 102), launch(1, 200, 201, 402, 302), launch(2, 500, 501, 502, 602)]
    (found,) = kernel_statistics(align(trace(commands)))
    assert (found.n, found.n_left_out, found.execution) == (2, 1, Spread(total_ns=200, median_ns=100, p95_ns=100))


def test_what_a_launch_adds_to_its_queue_begins_with_the_end_of_the_one_before() -> None:
    """Occupied counts from the END before, or from QUEUED where the queue was empty."""
    commands = [
        launch(0, 0, 5, 10, 110),
        launch(1, 20, 25, 130, 180),
        launch(2, 1000, 1005, 1010, 1050, type=CommandType.WRITE, name=0),
        launch(3, 1020, 1030, 1070, 1100),
    ]
    occupied_ns, is_known = occupied_times(align(trace(commands)))
    assert occupied_ns.tolist() == [110, 70, 50, 50]
    assert is_known.all()
    (found,) = kernel_statistics(align(trace(commands)))
    assert (found.occupied, found.n_occupied) == (Spread(total_ns=230, median_ns=70, p95_ns=106), 3)


def test_each_queue_is_occupied_by_its_own_commands() -> None:
    commands = [launch(0, 0, 5, 10, 110), launch(1, 20, 25, 30, 90, queue=2), launch(2, 40, 45, 120, 150)]
    occupied_ns, _ = occupied_times(align(trace(commands, queues=(queue(1), queue(2)))))
    assert occupied_ns.tolist() == [110, 70, 40]
    aligned = align(trace([launch(0, 0, 5, 10, 110)], queues=(queue(1, is_out_of_order=True),)))
    (found,) = kernel_statistics(aligned)
    assert (found.occupied, found.n_occupied, kernel_statistics(align(trace([])))) == (None, 0, ())
    assert kernel_statistics(align(trace([launch(0, 0, 1, 2, 3, type=CommandType.MARKER, name=0)]))) == ()


@pytest.mark.parametrize("case", ["anomaly", "lost", "lost first"])
def test_what_follows_an_unknown_command_is_not_known(case: str) -> None:
    odd = {"anomaly": launch(1, 200, 205, 310, 300), "lost": launch(2, 200, 205, 210, 300)}
    first = launch(1 if case == "lost first" else 0, 0, 5, 10, 110)
    second = odd.get(case, launch(2, 200, 205, 210, 300))
    last = launch(int(second["sequence"][0]) + 1, 400, 405, 410, 500)
    _, is_known = occupied_times(align(trace([first, second, last])))
    expected = {"anomaly": [True, False, False], "lost": [True, False, True], "lost first": [False, True, True]}
    assert is_known.tolist() == expected[case]


def test_times_are_those_of_the_devices_own_clock() -> None:
    """The alignment touches no duration, and a marker takes nothing from the launch after it."""
    commands = np.concatenate(
        [launch(i, 10_000 * i, 10_000 * i + 100, 10_000 * i + 200, 10_000 * i + 1200) for i in range(9)]
    )
    for field in ("queued_ns", "submit_ns", "start_ns", "end_ns"):
        commands[field] += 10**15
    (found,) = kernel_statistics(align(trace([commands])))
    assert found.execution == Spread(total_ns=9000, median_ns=1000, p95_ns=1000)
    first, last = EPOCH_NS, EPOCH_NS + 10_000
    marker = command(1, first + 1500, [0, 0, 0, 0], type=CommandType.MARKER, name=0)
    marker["end_ns"] = first + 8000
    commands = [
        command(0, first, [first + 500, first + 600, first + 700, first + 5000]),
        marker,
        command(2, first + 3000, [first + 3500, first + 3600, first + 9000, last]),
    ]
    occupied_ns, is_known = occupied_times(align(trace(commands)))
    assert (is_known.tolist(), occupied_ns[2]) == ([True, False, True], last - (first + 5000))


@pytest.mark.parametrize(("share", "unknown"), [(0.0, set()), (0.05, set()), (0.5, {"odd", "even"})])
def test_the_mean_stands_for_a_launch_that_was_dropped(share: float, unknown: set[str]) -> None:
    """Above a tenth of the launches, or where none of those alike is known, nothing is reported."""
    names = ["odd" if place % 2 else "even" for place in range(300)]
    times_ns = np.random.default_rng(3).normal(1000, 50, 300).astype(np.int64)
    is_known = np.random.default_rng(7).random(300) >= share
    found = filled(times_ns, is_known, names, names)
    assert (found.n_unknown.keys(), sum(found.n_known.values())) == (unknown, is_known.sum())
    assert found.times_ns.sum() == pytest.approx(times_ns.sum(), rel=0.01)
    alone = filled(times_ns, np.arange(300) != 7, [*names[:7], "alone", *names[8:]], names)
    assert alone.n_unknown == {"odd": 1}
