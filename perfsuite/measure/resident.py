"""What of a process is resident, as the kernel tells it in ``/proc/PID/status``."""

from __future__ import annotations

import time
from pathlib import Path

from perfsuite.records.memory_timeline import MemorySample

_OWN_STATUS = Path("/proc/self/status")
_KIB = 1024
_SPLIT = ("RssAnon", "RssFile", "RssShmem")
_HIGH_WATER = "VmHWM"


def resident_sample(status: Path = _OWN_STATUS) -> tuple[MemorySample, int] | None:
    """Return what is resident now and the high-water mark in bytes, of this process unless told otherwise.

    None where the process is gone, or the kernel tells no such fields, as of a zombie or before Linux 4.5.
    """
    at_ns = time.monotonic_ns()
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return None
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    if any(name not in values for name in (*_SPLIT, _HIGH_WATER)):
        return None
    anonymous, file, shared, mark = (int(values[name].split()[0]) * _KIB for name in (*_SPLIT, _HIGH_WATER))
    sample = MemorySample(at_ns=at_ns, anonymous_bytes=anonymous, file_bytes=file, shared_bytes=shared)
    return sample, mark
