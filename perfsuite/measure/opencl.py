"""Measuring OpenCL kernels on the device: each checked against its reference first, then timed by its events.

For a process of its own: it holds a context, and a driver that crashes takes it down.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyopencl as cl

from perfsuite.errors import OpenClError
from perfsuite.measure.kernel_launches import CPU_TUNING, GPU_TUNING, KernelLaunch, Launch, Tuning, prepare
from perfsuite.measure.kernel_programs import KERNELS_DIR, KernelPrograms
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_references import TOLERANCES, error_norm
from perfsuite.measure.opencl_platform import OpenClDevice, choose_device
from perfsuite.measure.placed_launch import PlacedLaunch
from perfsuite.workload.kernel_catalog import KernelCase

#: One kernel is repeated for no longer than this, once it has `MIN_REPETITIONS`.
BUDGET_NS = 150_000_000
MIN_REPETITIONS = 5
#: Launches after the verified one and before the timed ones.
WARM_UP_LAUNCHES = 2

_Stamps = tuple[int, int, int, int]


def measure_kernels(
    cases: Sequence[KernelCase],
    *,
    platform: str | None,
    repetitions: int,
    seed: int,
    log_dir: Path,
    kernels_dir: Path = KERNELS_DIR,
    budget_ns: int = BUDGET_NS,
) -> tuple[KernelRecord, ...]:
    """Measure kernels in this process and return a record for each, in the order of the cases.

    Every launch is waited for before the next; all use the same buffers, so that inputs which fit in the device's
    caches are read from there.

    Parameters
    ----------
    cases
        What to measure.
    platform
        The OpenCL platform, as `choose_device` takes it.
    repetitions
        Timed launches of each kernel, less where they take longer than ``budget_ns``.
    seed
        Draws the inputs, of each case independently of the others.
    log_dir
        Where the log of a failed build goes.
    kernels_dir
        The directory of the kernels' sources; another than the suite's own measures a variant of them.
    budget_ns
        What a kernel's timed launches may take before they are cut short, at `MIN_REPETITIONS` or more.

    Raises
    ------
    OpenClError
        There is no such platform, a kernel does not build, or the device refuses a launch.
    """
    bench = KernelBench(choose_device(platform), kernels_dir=kernels_dir, log_dir=log_dir)
    return tuple(bench.measure(case, repetitions=repetitions, seed=seed, budget_ns=budget_ns) for case in cases)


class KernelBench:
    """A device with a profiling queue and the programs built for it."""

    def __init__(
        self, device: OpenClDevice, *, log_dir: Path, kernels_dir: Path = KERNELS_DIR, tuning: Tuning | None = None
    ) -> None:
        """Open the device; the tuning is that of its kind unless given."""
        handle = cl.get_platforms()[device.platform_index].get_devices()[device.device_index]
        self._device = device
        self._tuning = tuning or (CPU_TUNING if device.is_cpu else GPU_TUNING)
        self._context = cl.Context([handle])
        self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._programs = KernelPrograms(self._context, kernels_dir=kernels_dir, log_dir=log_dir)

    @property
    def queue(self) -> cl.CommandQueue:
        """The profiling queue, on which launches run in order."""
        return self._queue

    def bound(self, case: KernelCase, *, seed: int) -> BoundLaunch:
        """Return a kernel with inputs drawn for it, ready to be launched."""
        launch = prepare(case, self._tuning, np.random.default_rng([seed, zlib.crc32(case.case_id.encode())]))
        return BoundLaunch(self._queue, self._programs.kernel(launch), launch)

    def placed(self, launch: Launch, *, n_outputs: int) -> PlacedLaunch:
        """Return a launch of any kernel, its program built and its buffers in place."""
        return PlacedLaunch(self._queue, self._programs.kernel(launch), launch, n_outputs=n_outputs)

    def measure(self, case: KernelCase, *, repetitions: int, seed: int, budget_ns: int = BUDGET_NS) -> KernelRecord:
        """Verify one kernel, then time it if its output was right."""
        tolerance = TOLERANCES[case.type]
        try:
            bound = self.bound(case, seed=seed)
            deviation = bound.verify()
            stamps = bound.time(repetitions, budget_ns) if deviation <= tolerance else []
        except cl.Error as error:
            raise OpenClError(f"{case.case_id}: {first_line(error)} on {self._device}") from None
        queued, submit, start, end = zip(*stamps, strict=True) if stamps else ((), (), (), ())
        return KernelRecord(
            case_id=case.case_id,
            error_norm=deviation,
            tolerance=tolerance,
            queued_ns=queued,
            submit_ns=submit,
            start_ns=start,
            end_ns=end,
        )


class BoundLaunch(PlacedLaunch):
    """A kernel of the catalogue with its arguments set, which is verified and timed."""

    def __init__(self, queue: cl.CommandQueue, kernel: cl.Kernel, launch: KernelLaunch) -> None:
        """Copy the inputs to the device."""
        super().__init__(queue, kernel, launch, n_outputs=launch.expected.size)
        self._expected = launch.expected

    def verify(self) -> float:
        """Run once and return the error norm, infinite where the kernel wrote behind its output or left any of it."""
        values = self.outputs()
        return math.inf if values is None else error_norm(values.reshape(self._expected.shape), self._expected)

    def time(self, repetitions: int, budget_ns: int) -> list[_Stamps]:
        """Warm up, then return the timestamps of the repetitions."""
        for _ in range(WARM_UP_LAUNCHES):
            self.run()
        stamps: list[_Stamps] = []
        began_ns = time.monotonic_ns()
        while not has_enough(len(stamps), repetitions, time.monotonic_ns() - began_ns, budget_ns):
            profile = self.run().profile
            stamps.append((profile.queued, profile.submit, profile.start, profile.end))
        return stamps


def has_enough(done: int, repetitions: int, elapsed_ns: int, budget_ns: int) -> bool:
    """Return whether a kernel has all its repetitions, or `MIN_REPETITIONS` of them and no time left."""
    return done >= repetitions or (done >= MIN_REPETITIONS and elapsed_ns > budget_ns)


def first_line(error: cl.Error) -> str:
    """Return what an error of OpenCL says first."""
    return (str(error).splitlines() or [type(error).__name__])[0]
