"""What a machine says of itself that is in none of its files, and how it must be while it is measured."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a run asks of a device before and while it is measured: ``[conditions]`` of its profile.

    All fields are plain, so that they can be sent to the device.
    """

    #: Processors that the workers may use; () leaves all.
    processors: tuple[int, ...] = ()
    #: Frequency governor of the processors, and of the GPU; None leaves what is set.
    governor: str | None = None
    gpu_governor: str | None = None
    #: A run begins no hotter than this; None asks for nothing.
    start_below_celsius: float | None = None
    #: Longest to wait for that.
    cooling_limit_s: float = 300.0
    #: Types of thermal zones that count, as ``/sys/class/thermal/thermal_zone*/type`` has them; () counts all.
    thermal_zones: tuple[str, ...] = ()
    #: Least charge of a battery that is not being charged; None asks for nothing.
    least_battery_ratio: float | None = None


NO_CONDITIONS = Conditions()


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


def default_threads() -> int:
    """Return one for each physical core that this process may use, the default of a run and of its calibration."""
    return Machine.here().default_threads


def usable_threads() -> int:
    """Return the number of logical processors that this process may use."""
    return len(os.sched_getaffinity(0))
