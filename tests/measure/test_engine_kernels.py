"""Which launches of an evaluation are duplicated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from perfsuite.measure.engine_kernels import EngineKernel, kernels_since, longest_kernels
from perfsuite.records.opencl_commands import COMMAND_DTYPE, CommandFlag, CommandType, OpenClTrace

NAMES = ("", "kernel_add", "kernel_mul", "kernel_cpy")


def command(number: int, name: str, size: int, duration_ns: int, **changed: Any) -> np.void:
    """Return a launch at host time 100 a number."""
    row = np.zeros(1, COMMAND_DTYPE)[0]
    row["global"] = (size, 1, 1)
    for field, value in {
        "sequence": number,
        "host_start_ns": 100 * number,
        "name": NAMES.index(name),
        "type": CommandType.KERNEL,
        "work_dim": 2,
        "start_ns": 1000 * number,
        "end_ns": 1000 * number + duration_ns,
        **changed,
    }.items():
        row[field] = value
    return row


def trace_of(*commands: np.void) -> OpenClTrace:
    """Return the trace of a process."""
    return OpenClTrace(
        pid=1,
        commands=np.array(list(commands), COMMAND_DTYPE),
        replayed=np.empty(0, COMMAND_DTYPE),
        names=NAMES,
        devices=(),
        queues=(),
        clock_points=(),
        n_lost=0,
        n_unfinished=0,
    )


def kernel(name: str, size: int, skip: int, duration_ns: int) -> EngineKernel:
    """Return a kernel of a decode."""
    return EngineKernel(phase="decode", name=name, global_size=(size, 1), skip=skip, execution_ns=duration_ns)


def test_each_kernel_and_size_is_there_once() -> None:
    """The first launch of a name and size counts, after as many of that name as went before it."""
    trace = trace_of(
        command(1, "kernel_add", 8, 500),
        command(2, "kernel_mul", 8, 600),
        command(3, "kernel_add", 8, 900),
        command(4, "kernel_add", 64, 700),
    )
    expected = (kernel("kernel_add", 8, 0, 500), kernel("kernel_mul", 8, 0, 600), kernel("kernel_add", 64, 2, 700))
    assert kernels_since(trace, 0, "decode") == expected


def test_what_was_launched_before_and_what_is_no_kernel_is_passed_over() -> None:
    """Earlier evaluations and copies neither count nor are skipped."""
    trace = trace_of(
        command(1, "kernel_add", 8, 500),
        command(2, "", 8, 500, type=CommandType.COPY),
        command(3, "kernel_add", 8, 500),
    )
    assert kernels_since(trace, 101, "decode") == (kernel("kernel_add", 8, 0, 500),)


def test_a_launch_without_times_is_counted_and_not_taken() -> None:
    """Where the driver gave no times, the next launch of that kernel is the one."""
    trace = trace_of(command(1, "kernel_add", 8, 500, flags=CommandFlag.NO_PROFILE), command(2, "kernel_add", 8, 600))
    assert kernels_since(trace, 0, "decode") == (kernel("kernel_add", 8, 1, 600),)


KERNELS = (kernel("a", 1, 0, 50), kernel("b", 1, 0, 90), kernel("a", 2, 1, 70), kernel("c", 1, 0, 30))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"least_ns": 0, "n_kernels": 2}, [90, 70]),
        ({"least_ns": 50, "n_kernels": 9}, [90, 70, 50]),
        ({"least_ns": 0, "n_kernels": 9, "names": ("a", "c")}, [70, 50, 30]),
        ({"least_ns": 91, "n_kernels": 9}, []),
    ],
)
def test_the_longest_are_chosen(wanted: dict[str, Any], expected: list[int]) -> None:
    """At most so many, none shorter than the least, of the names given or of all."""
    assert [each.execution_ns for each in longest_kernels(KERNELS, **wanted)] == expected


def test_a_title_has_phase_name_and_size() -> None:
    """Two sizes of one kernel have titles of their own."""
    assert KERNELS[2].title == "kernel/engine/decode/a/2x1"
