"""Timing a kernel that somebody has built with pyopencl, by its profiling events, in the process that has it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyopencl as cl

from perfsuite.errors import MeasurementError
from perfsuite.measure.kernel_record import KernelRecord

#: Launches of a round at least and at most, and what all rounds may take before a round has the least.
_LEAST_LAUNCHES, _MOST_LAUNCHES, _BUDGET_NS = 5, 10, 20_000_000_000
#: Launches after the one that is checked, of which the last says how long the kernel takes.
_WARM_UP_LAUNCHES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClCall:
    """A kernel with all that a launch of it takes."""

    case_id: str
    queue: cl.CommandQueue
    kernel: cl.Kernel
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    arguments: tuple[Any, ...]

    @property
    def fingerprint(self) -> dict[str, str]:
        """What must be equal for two runs to be comparable, beside the machine."""
        device = self.queue.device
        return {
            "opencl_platform": f"{device.platform.name.strip()}, {device.platform.version.strip()}",
            "opencl_device": device.name.strip(),
            "opencl_driver": device.driver_version.strip(),
        }

    def rounds(self, n_rounds: int, check: Callable[[], object] | None) -> tuple[KernelRecord, ...]:
        """Launch once, let `check` look at the outputs, and time so many rounds; none where they are wrong.

        Raises MeasurementError: the queue does not profile, or the device refuses a launch.
        """
        if not self.queue.properties & cl.command_queue_properties.PROFILING_ENABLE:
            raise MeasurementError(
                f"{self.case_id}: its queue does not profile; make it with "
                "properties=pyopencl.command_queue_properties.PROFILING_ENABLE"
            )
        self._stamps()
        if check is not None and (answer := check()) is not None and not answer:
            return ()
        for _ in range(_WARM_UP_LAUNCHES):
            began_ns = time.monotonic_ns()
            self._stamps()
        launch_ns = max(1, time.monotonic_ns() - began_ns)
        n_launches = min(max(_BUDGET_NS // n_rounds // launch_ns, _LEAST_LAUNCHES), _MOST_LAUNCHES)
        return tuple(self._round(n_launches) for _ in range(n_rounds))

    def _round(self, n_launches: int) -> KernelRecord:
        """Time launches, each waited for before the next, after one that does not count."""
        self._stamps()
        stamps = [self._stamps() for _ in range(n_launches)]
        queued, submit, start, end = (tuple(each[place] for each in stamps) for place in range(4))
        times = {"queued_ns": queued, "submit_ns": submit, "start_ns": start, "end_ns": end}
        return KernelRecord.from_plain({"case_id": self.case_id, "error_norm": 0.0, "tolerance": 0.0, **times})

    def _stamps(self) -> tuple[int, ...]:
        """Launch once, wait, and return the times of the event."""
        try:
            self.kernel.set_args(*self.arguments)
            event = cl.enqueue_nd_range_kernel(self.queue, self.kernel, self.global_size, self.local_size)
            event.wait()
            times = event.profile
            return times.queued, times.submit, times.start, times.end
        except cl.Error as error:
            raise MeasurementError(f"{self.case_id}: {str(error).splitlines()[0]}") from None
