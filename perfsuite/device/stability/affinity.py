"""The processors that a run may use."""

from __future__ import annotations

import os
from collections.abc import Sequence

from perfsuite.errors import DeviceError


def bind_to(processors: Sequence[int]) -> None:
    """Let this process, and all that it starts from now on, run on these processors only; () leaves all.

    Raises DeviceError: some of them are not there, or not open to this process.
    """
    wanted, usable = set(processors), os.sched_getaffinity(0)
    if missing := wanted - usable:
        named = ", ".join(map(str, sorted(missing)))
        there = ", ".join(map(str, sorted(usable)))
        raise DeviceError(f"processors {named} are not there; name some of {there} in [conditions] processors")
    if wanted:
        os.sched_setaffinity(0, wanted)
