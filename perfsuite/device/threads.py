"""How many threads the engine gets where nobody said otherwise."""

from __future__ import annotations

import os

from perfsuite.device.machine import Machine


def default_threads() -> int:
    """Return one for each physical core that this process may use, the default of a run and of its calibration."""
    return Machine.here().default_threads


def usable_threads() -> int:
    """Return the number of logical processors that this process may use."""
    return len(os.sched_getaffinity(0))
