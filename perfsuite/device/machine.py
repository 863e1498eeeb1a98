"""What a machine says of itself that is in none of its files, or that every system tells in its own way."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine, and what the process that asks may use of it."""

    hostname: str
    #: As ``uname -m`` has it.
    architecture: str
    #: Logical processors that are on.
    n_processors: int
    #: Physical cores; None where the system does not say.
    n_cores: int | None
    memory_bytes: int
    #: The numbers of the logical processors that may be used.
    usable_processors: tuple[int, ...]

    @classmethod
    def here(cls) -> Machine:
        """Return the machine that this process runs on."""
        return cls(
            hostname=socket.gethostname(),
            architecture=platform.machine(),
            n_processors=psutil.cpu_count(logical=True) or 1,
            n_cores=psutil.cpu_count(logical=False),
            memory_bytes=psutil.virtual_memory().total,
            usable_processors=tuple(sorted(os.sched_getaffinity(0))),
        )

    @property
    def default_threads(self) -> int:
        """One for each physical core that may be used, the default of a run and of its calibration."""
        return max(1, min(self.usable_threads, self.n_cores or self.usable_threads))

    @property
    def usable_threads(self) -> int:
        """The number of logical processors that may be used."""
        return len(self.usable_processors)
