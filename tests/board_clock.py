"""The clock of a test board: libfaketime, by which its date can be wrong while its monotonic clock goes on."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

from .board_keys import INSTALL

_FAKETIME = "libfaketimeMT.so.1"

#: ``clock_nanosleep`` as the kernel has it: libfaketime 0.9.10 lets it fail for monotonic times (Python's sleep).
_SLEEP = """\
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
    return syscall(SYS_clock_nanosleep, clock, flags, wanted, left) == 0 ? 0 : errno;
}
"""


def clock_library() -> Path | None:
    """Return libfaketime, with which a board's clock can be wrong; None where it is not installed."""
    return next(iter(sorted(Path("/usr/lib").glob(f"**/faketime/{_FAKETIME}"))), None)


def clock_variables(folder: Path) -> dict[str, str]:
    """Return the variables of processes whose date is off by what the file ``clock`` of a folder says."""
    library = clock_library()
    assert library is not None, f"libfaketime is not installed; {INSTALL}"
    (folder / "clock").write_text("+0\n")
    return {
        "LD_PRELOAD": f"{_sleep_library(folder)}:{library}",
        "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _sleep_library(folder: Path) -> Path:
    source, library = folder / "sleep.c", folder / "sleep.so"
    source.write_text(_SLEEP)
    compiler = str(sysconfig.get_config_var("CC") or "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, source], check=True, timeout=20)
    return library
