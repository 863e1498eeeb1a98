"""The counting tool: what a program did between two readings of its clock, to the instruction."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import NativeBuildError
from perfsuite.measure.counting import CountingTool, build_counting_tool, counted_command
from perfsuite.records.counts import METRICS, read_rows

#: Each piece lies between two readings of the processor's counter.
_PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef __x86_64__
#define CLOCK() __asm__ volatile("lfence; rdtsc; lfence" ::: "rax", "rdx", "memory")
#define BEGIN() __asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0" ::: "xmm0")
#define MOVE(at) __asm__ volatile("mov %0, %%rax; mov %%rax, %0" : "+m"(*at) : : "rax")
#define WIDE(at) __asm__ volatile("vmovdqa %%ymm0, %0; addq $1, %0" : "+m"(*at))
#define LOOP() __asm__ volatile("mov $99, %%ecx; 1: dec %%ecx; jnz 1b" ::: "rcx")
#define SWAP(at) __asm__ volatile("lock cmpxchgq %%rcx, %0" : "+m"(*at) : : "rax", "rcx", "cc")
#else
#define CLOCK() __asm__ volatile("isb; mrs x9, cntvct_el0; isb" ::: "x9", "memory")
#define BEGIN() __asm__ volatile("movi v0.4s, #0; movi v1.4s, #0" ::: "v0", "v1")
#define MOVE(at) __asm__ volatile("ldr x9, [%0]; str x9, [%0]" : : "r"(at) : "x9", "memory")
#define WIDE(at) __asm__ volatile("str q0, [%0]; str q0, [%0, #16]; ldr x9, [%0]" : : "r"(at) : "x9", "memory")
#define LOOP() __asm__ volatile("mov w9, #99; 1: subs w9, w9, #1; b.ne 1b" ::: "x9", "cc")
#define SWAP(at) __asm__ volatile("1: ldxr x9, [%0]; stxr w8, x9, [%0]; cbnz w8, 1b" : : "r"(at) : "x8", "x9", "memory")
#endif
static uint64_t place[8] __attribute__((aligned(32)));
int main(void) {
    volatile char *made;
    uint64_t *at = place;
    __asm__ volatile("" : "+r"(at)); /* it stays in a register */
    BEGIN();
    CLOCK();
    __asm__ volatile("nop; nop; nop");
    CLOCK();
    MOVE(at);
    CLOCK();
    WIDE(at);
    CLOCK();
    LOOP();
    CLOCK();
    SWAP(at);
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

#: What compiles the program; for another machine all of it, so that no library is looked for.
_COMPILERS = {"x86_64": ("x86_64-linux-gnu-gcc", "-static"), "aarch64": ("aarch64-linux-gnu-gcc", "-static")}


@pytest.fixture(scope="module", params=["x86_64", pytest.param("aarch64", marks=pytest.mark.long)])
def machine(request: pytest.FixtureRequest) -> str:
    """A machine whose work is counted: this one, or one that is emulated."""
    return str(request.param)


@pytest.fixture(scope="module")
def tool(machine: str) -> CountingTool:
    try:
        return build_counting_tool(user_cache(), machine)
    except NativeBuildError as error:
        if "does not build" in str(error):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def program(machine: str, tool: CountingTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counted")
    (folder / "program.c").write_text(_PROGRAM)
    compiler = ("cc",) if machine == platform.machine() else _COMPILERS[machine]
    subprocess.run([*compiler, "-O1", "-o", "program", "program.c"], cwd=folder, check=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def rows_and_output(tool: CountingTool, program: Path) -> tuple[npt.NDArray[np.int64], str]:
    """What each piece did, a row each; and what the program printed."""
    command, environment = counted_command(tool, ["./program"])
    done = subprocess.run(command, cwd=program, env=environment, capture_output=True, text=True, timeout=60, check=True)
    rows = read_rows(program / "rows")
    counters = np.array([rows[name] for name in METRICS], np.int64).T
    last = len(rows) - 1 - 2 - 1  # two readings of the system's clock, and the end
    return np.diff(counters, axis=0)[last - 7 : last], done.stdout


_MOVE = {"reads": 1, "bytes_read": 8, "writes": 1, "bytes_written": 8}
_WIDE = {"reads": 1, "bytes_read": 8, "writes": 2}


@pytest.mark.parametrize(
    ("number", "n_instructions", "expected"),
    [
        pytest.param(0, {"x86_64": 6, "aarch64": 6}, {}, id="three instructions and the clock's three"),
        pytest.param(1, {"x86_64": 5, "aarch64": 5}, _MOVE, id="move"),
        pytest.param(2, {"x86_64": 5, "aarch64": 6}, _WIDE, id="two stores, of 32 and 8 or of 16 bytes"),
        pytest.param(3, {"x86_64": 202, "aarch64": 202}, {"branches": 99}, id="a loop of 99"),
        pytest.param(4, {}, {"bytes_written": 8}, id="an exchange that no other may see half of"),
        pytest.param(5, {}, {"allocations": 1, "bytes_allocated": 1000}, id="malloc"),
        pytest.param(6, {}, {"allocations": 1, "bytes_allocated": 200}, id="calloc"),
    ],
)
def test_what_a_piece_does_is_counted(
    rows_and_output: tuple[npt.NDArray[np.int64], str],
    machine: str,
    number: int,
    n_instructions: dict[str, int],
    expected: dict[str, int],
) -> None:
    found = dict(zip(METRICS, rows_and_output[0][number].tolist(), strict=True))
    assert {name: found[name] for name in expected} == expected
    if n_instructions:
        assert found["instructions"] == n_instructions[machine]
        rest = {name for name in METRICS if found[name]} - {*expected, "instructions"}
        assert rest <= {"bytes_written"}
    if number == 4:  # Arm's exclusive store is made of a look and an exchange
        assert found["bytes_read"] == {"x86_64": 8, "aarch64": 24}[machine]
    if number == 2:
        assert found["bytes_written"] == {"x86_64": 40, "aarch64": 32}[machine]


def test_the_systems_clock_counts_as_well(rows_and_output: tuple[npt.NDArray[np.int64], str]) -> None:
    assert 0 < int(rows_and_output[1]) < 10_000


def test_the_same_program_does_the_same_again(tool: CountingTool, program: Path) -> None:
    command, environment = counted_command(tool, ["./program"])
    contents = []
    for _ in range(2):
        subprocess.run(command, cwd=program, env=environment, capture_output=True, timeout=60, check=True)
        contents.append((program / "rows").read_bytes())
    assert contents[0] == contents[1]
