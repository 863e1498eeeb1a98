"""Processes that only keep processors busy, for as long as somebody wants to see what that does."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field

from perfsuite.records.own_files import own_python

_BUSY_LOOP = "while True: pass"


@dataclass(slots=True)
class BusyLoops:
    """Those that run now; none of them outlives `end`."""

    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self, n_processes: int) -> None:
        """Start so many."""
        for _ in range(n_processes):
            self.processes.append(subprocess.Popen(own_python("-c", _BUSY_LOOP)))

    def end(self) -> None:
        """End all that run."""
        while self.processes:
            process = self.processes.pop()
            process.kill()
            process.wait()
