"""Whether a process is there."""

from __future__ import annotations

import os
import time
from pathlib import Path

_LIMIT_S = 10.0


def is_running(pid: int) -> bool:
    """Tell whether a process is there that has not ended."""
    try:
        os.kill(pid, 0)
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def has_ended(pid: int) -> bool:
    """Tell whether a process has ended or is about to: one that was killed may take a moment."""
    deadline_s = time.monotonic() + _LIMIT_S
    while is_running(pid):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True
