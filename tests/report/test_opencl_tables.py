"""OpenCL commands on the terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from perfsuite.records.opencl_commands import CommandFlag, CommandType
from perfsuite.report.opencl_summary import summarize
from perfsuite.report.opencl_tables import count_lines, gap_table, idle_line, kernel_line, kernel_table

from ..synthetic_opencl import DEVICE, drifting, queue, steady_commands, trace


def printed(table: Table) -> list[str]:
    """Return a table's lines at the width that a pipe gets."""
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    return out.getvalue().splitlines()


def test_counts_are_told_in_words() -> None:
    """Commands by type, what is missing or failed, and each device with its clock's error and its steps."""
    commands = steady_commands(200, drifting())
    commands[9]["type"], commands[9]["name"] = CommandType.MARKER, 0
    commands[9]["queued_ns"] = 0
    lines = list(count_lines(summarize(trace(commands), n_gaps=1)))
    assert lines[:3] == [
        "process 4711: 200 OpenCL commands: 199 kernels, 1 marker",
        "  none lost; none unfinished; 1 with an anomaly: 1 marker without a time",
        "  A platform, A device, driver 1.2",
    ]
    assert lines[3].startswith("  clock: tick not known, error at most 1.")
    assert lines[3].endswith(" ppm, by enqueue calls (199 readings)")
    assert lines[4] == "  times that are missing or cannot be right: 1 QUEUED"
    commands = steady_commands(3, drifting())
    commands[1]["status"], commands[1]["flags"] = -14, CommandFlag.NO_PROFILE
    lines = list(count_lines(summarize(trace(commands), n_gaps=1)))
    assert lines[1].endswith("; 1 with an anomaly: 1 kernel failed")
    jumping = np.concatenate(steady_commands(200, int))
    for field in ("queued_ns", "submit_ns", "start_ns", "end_ns"):
        jumping[field][100:] += 9_000_000
    lines = list(count_lines(summarize(trace([jumping]), n_gaps=1)))
    assert " ppm, 1 step, by enqueue calls (200 readings)" in lines[3]


@pytest.mark.parametrize(
    ("n_lost", "n_unfinished", "expected"),
    [
        (0, 0, "  none lost; none unfinished; no anomaly"),
        (3, 2, "  3 lost; 2 unfinished; no anomaly"),
        (0, None, "  lost: not known; the process was killed or still runs, so what came last is missing; no anomaly"),
        (
            3,
            None,
            "  lost: not known, 3 at least; the process was killed or still runs, so what came last is missing; "
            "no anomaly",
        ),
    ],
)
def test_what_is_missing_is_told(n_lost: int, n_unfinished: int | None, expected: str) -> None:
    """Losses, unfinished commands and an end that is missing are each told."""
    found = summarize(trace(steady_commands(3, drifting()), n_lost=n_lost, n_unfinished=n_unfinished), n_gaps=1)
    assert list(count_lines(found))[1] == expected


def test_the_top_kernels_are_shown_with_their_times() -> None:
    """The kernels with the longest totals come first; of more than were asked for the line says so."""
    commands = steady_commands(6, drifting())
    for each, name in zip(commands, (1, 1, 1, 2, 2, 3), strict=True):
        each["name"] = name
    found = summarize(trace(commands), n_gaps=1)
    assert kernel_line(found, 2).startswith("3 kernels, the 2 with the longest total; ")
    assert kernel_line(found, 3).startswith("3 kernels; ")
    header, *rows = printed(kernel_table(found, 2))
    assert header.split() == [
        "kernel",
        "n",
        "total",
        "share",
        "median",
        "p95",
        "tick",
        "queueing",
        "dispatch",
        "occupied",
    ]
    assert [row.split()[:6] for row in rows] == [
        ["alpha", "3", "75.0", "µs", "50.0%", "25.0"],
        ["beta", "2", "50.0", "µs", "33.3%", "25.0"],
    ]


def test_names_are_whole_within_the_width_and_no_markup() -> None:
    """A long name is folded, not cut, and the figures stay in one line; a kernel may be called as it likes."""
    name = "kernel_" + "mul_mat_" * 9 + "f32"
    lines = printed(kernel_table(summarize(trace(steady_commands(3, drifting()), names=(name,)), n_gaps=1), 5))
    assert max(map(len, lines)) <= 100
    assert "".join(line.split()[0] for line in lines[1:]) == name
    lines = printed(kernel_table(summarize(trace(steady_commands(3, drifting()), names=("[red]x[/]",)), n_gaps=1), 5))
    assert lines[1].startswith("[red]x[/]")


def test_idle_time_and_gaps_are_told() -> None:
    """The share counts from first to last command, gaps from the first's begin; a device may have done nothing."""
    found = summarize(trace(steady_commands(11, int)), n_gaps=2)
    (device,) = found.devices
    assert device.idle is not None
    assert (
        idle_line(device, found) == "A device: idle 73.2% of the 1.02 ms from its first command to its last, in 10 gaps"
    )
    lines = printed(gap_table(device.idle))
    assert lines[0].split() == ["longest", "gaps", "begin", "at", "after", "before"]
    assert len(lines) == 3
    assert lines[1].split() == ["75.0", "µs", "25.0", "µs", "alpha", "alpha"]
    two = trace(steady_commands(3, drifting()), devices=(DEVICE, DEVICE), queues=(queue(1), queue(2, device=1)))
    summary = summarize(two, n_gaps=1)
    assert idle_line(summary.devices[1], summary) == "A device: executed nothing"
    assert list(count_lines(summary))[-1] == "  its clock could not be read"


@pytest.mark.parametrize(
    ("n_lost", "n_unfinished", "expected"),
    [
        (1, 0, "1 command was lost"),
        (12, 0, "12 commands were lost"),
        (0, None, "the process did not end in order"),
        (12, None, "the process did not end in order"),
    ],
)
def test_idle_time_over_holes_is_not_told(n_lost: int, n_unfinished: int | None, expected: str) -> None:
    """Where commands are missing the reason is in place of the share, and kernels are of the recorded launches."""
    found = summarize(trace(steady_commands(3, int), n_lost=n_lost, n_unfinished=n_unfinished), n_gaps=1)
    assert idle_line(found.devices[0], found) == f"A device: idle time not known: {expected}"
    assert kernel_line(found, 3).startswith("1 kernel, of the recorded launches alone; ")
