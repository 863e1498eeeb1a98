"""OpenCL commands as the layer saw them: which kernel, on which queue, enqueued when, and the device's four times."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

#: Sizes of buffers that are kept for each command, the first ones in the order of the arguments.
MAX_BUFFERS = 8

#: One command, as ``ps_cl_command`` of ``native/include/perfsuite/cl_log.h`` lays it out, without its prefix.
COMMAND_DTYPE = np.dtype(
    [
        ("sequence", "<u8"),
        ("host_start_ns", "<i8"),
        ("host_end_ns", "<i8"),
        ("queued_ns", "<i8"),
        ("submit_ns", "<i8"),
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("queue", "<u4"),
        ("name", "<u4"),
        ("thread", "<u4"),
        ("status", "<i4"),
        ("type", "<u2"),
        ("flags", "<u2"),
        ("work_dim", "<u2"),
        ("n_buffers", "<u2"),
        ("global", "<u8", (3,)),
        ("moved_bytes", "<u8"),
        ("local", "<u4", (3,)),
        ("reserved", "<u4"),
        ("buffer_bytes", "<u8", (MAX_BUFFERS,)),
    ]
)

Commands = npt.NDArray[np.void]


class CommandType(IntEnum):
    """What a command does."""

    KERNEL = 1
    READ = 2
    WRITE = 3
    COPY = 4
    FILL = 5
    MAP = 6
    UNMAP = 7
    MIGRATE = 8
    MARKER = 9
    SVM = 10
    NATIVE = 11
    OTHER = 12


class CommandFlag(IntFlag):
    """How a command was enqueued."""

    BLOCKING = 1
    CALLERS_EVENT = 2
    #: The layer's own duplicate of a launch, not the program's command.
    REPLAYED = 4
    WAITS = 8
    #: The driver gave no times.
    NO_PROFILE = 16


class ClockSource(IntEnum):
    """How a device's clock was read."""

    #: ``clGetDeviceAndHostTimer``, between two readings of the host's clock.
    TIMER = 1
    #: The QUEUED time of an empty command, between the two host times around its enqueue call.
    MARKER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDevice:
    """A device that commands ran on."""

    platform_name: str
    device_name: str
    driver_version: str
    #: ``CL_DEVICE_PROFILING_TIMER_RESOLUTION``; `None` where the driver does not say.
    timer_resolution_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedQueue:
    """A command queue."""

    #: The id that commands name it by.
    queue: int
    context: int
    #: Position among the trace's devices.
    device: int
    is_out_of_order: bool
    #: Whether the program itself asked for profiling.
    caller_profiles: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockPoint:
    """One reading of a device's clock: `device_ns` lies between the two host times."""

    #: Position among the trace's devices.
    device: int
    source: ClockSource
    device_ns: int
    host_before_ns: int
    host_after_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClTrace:
    """All that one process enqueued, in the order of its enqueue calls; device times in the device's own clock."""

    pid: int
    #: `COMMAND_DTYPE`, sorted by ``sequence``, the layer's duplicates left out.
    commands: Commands
    #: The duplicates, in the order of their enqueue calls.
    replayed: Commands
    #: Names of kernels; a command's ``name`` is the position, position 0 is the empty name of what is no kernel.
    names: tuple[str, ...]
    devices: tuple[TracedDevice, ...]
    queues: tuple[TracedQueue, ...]
    clock_points: tuple[ClockPoint, ...]
    #: Commands that found no room to be recorded.
    n_lost: int
    #: Commands that were not complete when the process ended; `None` where it did not end in order.
    n_unfinished: int | None
    #: When the log was closed, on the host's clock; `None` where the process did not end in order.
    ended_ns: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every command of the program is here and the process ended in order."""
        return self.n_lost == 0 and self.n_unfinished == 0
