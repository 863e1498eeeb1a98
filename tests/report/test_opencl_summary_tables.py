"""OpenCL commands on the terminal."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from perfsuite.records.opencl_commands import CommandFlag, CommandType, OpenClTrace
from perfsuite.report.opencl_summary import count_lines, gap_table, idle_line, kernel_line, kernel_table, summarize
from perfsuite.report.sheet import Sheet
from tests.conftest import Golden

from ..synthetic_opencl import DEVICE, drifting, queue, steady_commands, trace


def printed(table: Sheet) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=100).print(table.table())
    return out.getvalue().splitlines()


def told(traced: OpenClTrace, n_top: int = 2) -> str:
    """All that is shown of a process, with its two longest gaps."""
    found = summarize(traced, n_gaps=2)
    lines = [*count_lines(found), kernel_line(found, n_top), *printed(kernel_table(found, n_top))]
    for device in found.devices:
        lines.append(idle_line(device, found))
        if device.longest_gaps:
            lines += printed(gap_table(device))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def test_a_process_is_told_in_words_and_tables(golden: Golden) -> None:
    """Whole; with a failed command and three kernels; with a clock that steps; on one of two devices."""
    marked = steady_commands(200, drifting())
    marked[9]["type"], marked[9]["name"], marked[9]["queued_ns"] = CommandType.MARKER, 0, 0
    failed = steady_commands(6, int)
    failed[1]["status"], failed[1]["flags"] = -14, CommandFlag.NO_PROFILE
    for each, name in zip(failed, (1, 1, 1, 2, 2, 3), strict=True):
        each["name"] = name
    jumping = np.concatenate(steady_commands(200, int))
    for field in ("queued_ns", "submit_ns", "start_ns", "end_ns"):
        jumping[field][100:] += 9_000_000
    two = trace(steady_commands(3, drifting()), devices=(DEVICE, DEVICE), queues=(queue(1), queue(2, device=1)))
    shown = (trace(marked), trace(failed), trace([jumping]), two)
    golden("report/opencl.txt", "\n".join(map(told, shown)))


def test_names_are_whole_within_the_width_and_no_markup() -> None:
    """A long name is folded, not cut, and the figures stay in one line; a kernel may be called as it likes."""
    name = "kernel_" + "mul_mat_" * 9 + "f32"
    lines = printed(kernel_table(summarize(trace(steady_commands(3, drifting()), names=(name,)), n_gaps=1), 5))
    assert max(map(len, lines)) <= 100
    assert "".join(line.split()[0] for line in lines[1:]) == name
    lines = printed(kernel_table(summarize(trace(steady_commands(3, drifting()), names=("[red]x[/]",)), n_gaps=1), 5))
    assert lines[1].startswith("[red]x[/]")


@pytest.mark.parametrize(
    ("n_lost", "n_unfinished", "expected"),
    [
        (12, 0, "12 commands were lost"),
        (12, None, "the process did not end in order"),
    ],
)
def test_idle_time_over_holes_is_not_told(n_lost: int, n_unfinished: int | None, expected: str) -> None:
    """Where commands are missing the reason is in place of the share, and kernels are of the recorded launches."""
    found = summarize(trace(steady_commands(3, int), n_lost=n_lost, n_unfinished=n_unfinished), n_gaps=1)
    assert idle_line(found.devices[0], found) == f"A device: idle time not known: {expected}"
    assert kernel_line(found, 3).startswith("1 kernel, of the recorded launches alone; ")
