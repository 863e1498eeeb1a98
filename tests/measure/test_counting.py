"""The counting tool: what a program did between two readings of its clock, to the instruction."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.measure.counting import build_counting_tool, counted_command
from perfsuite.records.counts import METRICS, read_rows

#: Each piece lies between two readings of the time stamp counter.
_PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define CLOCK() __asm__ volatile("lfence; rdtsc; lfence" ::: "rax", "rdx", "memory")
static uint64_t place[8] __attribute__((aligned(32)));
int main(void) {
    volatile char *made;
    __asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
    CLOCK();
    __asm__ volatile("nop; nop; nop");
    CLOCK();
    __asm__ volatile("mov %0, %%rax; mov %%rax, %0" : "+m"(place[0]) : : "rax");
    CLOCK();
    __asm__ volatile("vmovdqa %%ymm0, %0; addq $1, %0" : "+m"(place[0]));
    CLOCK();
    __asm__ volatile("mov $99, %%ecx; 1: dec %%ecx; jnz 1b" ::: "rcx");
    CLOCK();
    __asm__ volatile("lock cmpxchgq %%rcx, %0" : "+m"(place[0]) : : "rax", "rcx", "cc");
    CLOCK();
    made = malloc(1000);
    made[0] = 1;
    CLOCK();
    made = calloc(10, 20);
    made[0] = 1;
    CLOCK();
    struct timespec begun, ended;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%lld\n", (long long)(ended.tv_sec - begun.tv_sec) * 1000000000 + ended.tv_nsec - begun.tv_nsec);
    return 0;
}
"""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="counting is for x86-64")


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build_counting_tool(tmp_path_factory.mktemp("cache"))
    except NativeBuildError as error:
        if "does not build" in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def rows_and_output(tool: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[npt.NDArray[np.int64], str]:
    """What each piece did, a row each; and what the program printed."""
    folder = tmp_path_factory.mktemp("counted")
    (folder / "program.c").write_text(_PROGRAM)
    subprocess.run(["cc", "-O1", "-o", "program", "program.c"], cwd=folder, check=True, timeout=60)
    command, environment = counted_command(tool, ["./program"])
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True)
    rows = read_rows(folder / "rows")
    counters = np.array([rows[name] for name in METRICS], np.int64).T
    last = len(rows) - 1 - 2 - 1  # two readings of the system's clock, and the end
    return np.diff(counters, axis=0)[last - 7 : last], done.stdout


def _piece(rows: npt.NDArray[np.int64], number: int) -> dict[str, int]:
    return dict(zip(METRICS, rows[number].tolist(), strict=True))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(0, {"instructions": 6}, id="three instructions and the clock's three"),
        pytest.param(1, {"instructions": 5, "reads": 1, "bytes_read": 8, "writes": 1, "bytes_written": 8}, id="move"),
        pytest.param(
            2, {"instructions": 5, "reads": 1, "bytes_read": 8, "writes": 2, "bytes_written": 40}, id="32 and 8 bytes"
        ),
        pytest.param(3, {"instructions": 202, "branches": 99}, id="a loop of 99"),
        pytest.param(4, {"reads": 1, "bytes_read": 8, "bytes_written": 8}, id="compare and swap"),
        pytest.param(5, {"allocations": 1, "bytes_allocated": 1000}, id="malloc"),
        pytest.param(6, {"allocations": 1, "bytes_allocated": 200}, id="calloc"),
    ],
)
def test_what_a_piece_does_is_counted(
    rows_and_output: tuple[npt.NDArray[np.int64], str], number: int, expected: dict[str, int]
) -> None:
    """Instructions, loads and stores with their bytes, branches and allocations are those that the code has."""
    found = _piece(rows_and_output[0], number)
    assert {name: found[name] for name in expected} == expected
    if number < 4:
        assert all(found[name] == 0 for name in METRICS if name not in expected)


def test_the_systems_clock_counts_as_well(rows_and_output: tuple[npt.NDArray[np.int64], str]) -> None:
    """Between two readings of the monotonic clock lie some instructions, and no time."""
    assert 0 < int(rows_and_output[1]) < 10_000


def test_the_same_program_does_the_same_again(tool: Path, tmp_path: Path) -> None:
    """Two processes leave the same rows."""
    (tmp_path / "program.c").write_text(_PROGRAM)
    subprocess.run(["cc", "-O1", "-o", "program", "program.c"], cwd=tmp_path, check=True, timeout=60)
    command, environment = counted_command(tool, ["./program"])
    contents = []
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=60, check=True)
        contents.append((tmp_path / "rows").read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize("content", [b"", b"x" * 71, bytes(144)])
def test_rows_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    """A cut file, and one whose instructions do not rise."""
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(MeasurementError, match="count again"):
        read_rows(tmp_path / "rows")


def test_no_rows_are_refused(tmp_path: Path) -> None:
    """A process that left none."""
    with pytest.raises(MeasurementError, match="No such file"):
        read_rows(tmp_path / "rows")
