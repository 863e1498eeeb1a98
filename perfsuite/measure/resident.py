"""What of a process is resident, as the kernel tells it in ``/proc/PID/status``."""

from __future__ import annotations

import time
from pathlib import Path

from perfsuite.records.memory_timeline import MemorySample

_OWN_STATUS = Path("/proc/self/status")
_KIB = 1024
_SPLIT = ("RssAnon", "RssFile", "RssShmem")
_HIGH_WATER = "VmHWM"
#: All that is read of a status.
FIELDS = (*_SPLIT, _HIGH_WATER)


def resident_sample(status: Path = _OWN_STATUS) -> tuple[MemorySample, int] | None:
    """Return what is resident now and the high-water mark in bytes, of this process unless told otherwise.

    None where the process is gone, or the kernel tells no such fields, as of a zombie or before Linux 4.5.
    """
    at_ns = time.monotonic_ns()
    try:
        return sample_of_status(status.read_text(), at_ns)
    except OSError:
        return None


def sample_of_status(text: str, at_ns: int) -> tuple[MemorySample, int] | None:
    """Return what a status tells, as `resident_sample` does."""
    lines = text.splitlines()
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    if any(name not in values for name in FIELDS):
        return None
    anonymous, file, shared, mark = (int(values[name].split()[0]) * _KIB for name in FIELDS)
    sample = MemorySample(at_ns=at_ns, anonymous_bytes=anonymous, file_bytes=file, shared_bytes=shared)
    return sample, mark
