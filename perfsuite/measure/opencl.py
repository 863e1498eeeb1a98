"""Measuring OpenCL kernels on the device: each checked against its reference first, then timed by its events.

For a process of its own: it holds a context, and a driver that crashes takes it down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_launches import CPU_TUNING, GPU_TUNING, KernelLaunch, Launch, Tuning, prepare
from perfsuite.measure.kernel_programs import KernelPrograms, opencl_errors
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_references import TOLERANCES, error_norm
from perfsuite.measure.kernel_repetition import BUDGET_NS, MIN_REPETITIONS, WARM_UP_LAUNCHES
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.workload.kernel_catalog import KernelCase

#: Values behind the output that a kernel must leave alone.
GUARD_VALUES = 64
#: What output and guard hold before a launch whose output is read: as F32, NaN.
POISON = 0xFFFFFFFF


class PlacedLaunch:
    """A kernel with its arguments set; it holds their buffers, which OpenCL does not."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        kernel: cl.Kernel,
        launch: Launch,
        *,
        n_outputs: int,
        beside: PlacedLaunch | None = None,
    ) -> None:
        """Copy the inputs to the device, and make room for so many outputs and the guard.

        A launch `beside` another, of the same inputs, has its buffers: where these lie is no difference between them.
        """
        flags = cl.mem_flags
        self._queue, self._kernel, self._launch = queue, kernel, launch
        self._poison = np.full(n_outputs + GUARD_VALUES, POISON, dtype=np.uint32)
        self._inputs: list[cl.Buffer]
        self._out: cl.Buffer
        if beside is not None:
            self._inputs, self._out = beside._inputs, beside._out
        else:
            self._inputs = [
                cl.Buffer(queue.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array)
                for array in launch.inputs
            ]
            self._out = cl.Buffer(queue.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=self._poison)
        self.bind()

    def bind(self) -> None:
        """Set the kernel's arguments; again where another launch of the same kernel has set its own since."""
        self._kernel.set_args(*self._inputs, self._out, *self._launch.scalars)

    def enqueue(self) -> cl.Event:
        """Launch once and do not wait."""
        return cl.enqueue_nd_range_kernel(self._queue, self._kernel, self._launch.global_size, self._launch.local_size)

    def run(self) -> cl.Event:
        """Launch once and wait."""
        event = self.enqueue()
        event.wait()
        return event

    def outputs(self) -> NDArray[np.float32] | None:
        """Run once on a poisoned output and return it, NaN where nothing was written; None if the guard was."""
        cl.enqueue_copy(self._queue, self._out, self._poison)
        self.run()
        bits = np.empty_like(self._poison)
        cl.enqueue_copy(self._queue, bits, self._out)
        if (bits[-GUARD_VALUES:] != POISON).any():
            return None
        return bits[:-GUARD_VALUES].view(np.float32)

    def release(self) -> None:
        """Give back the buffers; the launch is of no use afterwards."""
        for buffer in (*self._inputs, self._out):
            buffer.release()


_Stamps = tuple[int, int, int, int]


class KernelBench:
    """A device with a profiling queue and the programs built for it, from a directory of kernels' sources.

    Every launch is waited for before the next; all launches of a case use the same buffers, so that inputs which fit in
    the device's caches are read from there. A seed draws the inputs of each case independently of the others. What is
    timed is cut short where it takes longer than a budget, at `MIN_REPETITIONS` or more. An `OpenClError` says that a
    kernel does not build, with the log in `log_dir`, or that the device refuses a launch.
    """

    def __init__(
        self,
        device: OpenClDevice,
        *,
        log_dir: Path,
        kernels_dir: Path = KERNELS_DIR,
        built_dir: Path | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        """Open the device; the tuning is that of its kind unless given, and programs are kept in `built_dir`."""
        handle = cl.get_platforms()[device.platform_index].get_devices()[device.device_index]
        self._device = device
        self._tuning = tuning or (CPU_TUNING if device.is_cpu else GPU_TUNING)
        self._context = cl.Context([handle])
        self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._log_dir, self._built_dir = log_dir, built_dir
        self._programs = self._programs_of(kernels_dir)
        self._old_programs: dict[Path, KernelPrograms] = {}

    @property
    def queue(self) -> cl.CommandQueue:
        """The profiling queue, on which launches run in order."""
        return self._queue

    def bound(self, case: KernelCase, *, seed: int) -> BoundLaunch:
        """Return a kernel with inputs drawn for it, ready to be launched."""
        launch = prepare(case, self._tuning, seed)
        return BoundLaunch(self._queue, self._programs.kernel(launch), launch)

    def placed(self, launch: Launch, *, n_outputs: int) -> PlacedLaunch:
        """Return a launch of any kernel, its program built and its buffers in place."""
        return PlacedLaunch(self._queue, self._programs.kernel(launch), launch, n_outputs=n_outputs)

    def measure(self, case: KernelCase, *, repetitions: int, seed: int, budget_ns: int = BUDGET_NS) -> KernelRecord:
        """Verify one kernel, then time it if its output was right."""
        tolerance = TOLERANCES[case.type]
        with opencl_errors(case.case_id, f" on {self._device}"):
            bound = self.bound(case, seed=seed)
            deviation = bound.verify()
            stamps = bound.time(repetitions, budget_ns) if deviation <= tolerance else []
        return _record(case, deviation, stamps)

    def measure_pair(
        self,
        case: KernelCase,
        *,
        old_kernels_dir: Path,
        repetitions: int,
        seed: int,
        leader: int,
        budget_ns: int = 2 * BUDGET_NS,
    ) -> tuple[KernelRecord, KernelRecord]:
        """Verify a kernel of two sources, then time them launch by launch; return the records of both.

        They take turns in ABBA order, the `leader` (0 is the old one) first, on the same buffers of one queue: what
        disturbs the device for longer than a launch disturbs both.
        """
        tolerance = TOLERANCES[case.type]
        with opencl_errors(case.case_id, f" on {self._device}"):
            new = self.bound(case, seed=seed)
            old = new.with_kernel(self._old(old_kernels_dir).kernel(new.launch))
            deviations = (old.verify(), new.verify())
            right = all(deviation <= tolerance for deviation in deviations)
            stamps = _time_in_turns((old, new), repetitions, budget_ns, leader) if right else ([], [])
        return _record(case, deviations[0], stamps[0]), _record(case, deviations[1], stamps[1])

    def _old(self, kernels_dir: Path) -> KernelPrograms:
        """Return the programs of other sources, in the same context."""
        if kernels_dir not in self._old_programs:
            self._old_programs[kernels_dir] = self._programs_of(kernels_dir)
        return self._old_programs[kernels_dir]

    def _programs_of(self, kernels_dir: Path) -> KernelPrograms:
        return KernelPrograms(self._context, kernels_dir=kernels_dir, log_dir=self._log_dir, built_dir=self._built_dir)


class BoundLaunch(PlacedLaunch):
    """A kernel of the catalogue with its arguments set, which is verified and timed."""

    def __init__(
        self, queue: cl.CommandQueue, kernel: cl.Kernel, launch: KernelLaunch, beside: PlacedLaunch | None = None
    ) -> None:
        """Copy the inputs to the device, unless they are there with another launch."""
        super().__init__(queue, kernel, launch, n_outputs=launch.expected.size, beside=beside)
        self.launch = launch

    def with_kernel(self, kernel: cl.Kernel) -> BoundLaunch:
        """Return the same launch of another kernel, on the same buffers."""
        return BoundLaunch(self._queue, kernel, self.launch, beside=self)

    def verify(self) -> float:
        """Run once and return the error norm, infinite where the kernel wrote behind its output or left any of it."""
        values = self.outputs()
        return (
            math.inf if values is None else error_norm(values.reshape(self.launch.expected.shape), self.launch.expected)
        )

    def time(self, repetitions: int, budget_ns: int) -> list[_Stamps]:
        """Warm up, then return the timestamps of the repetitions."""
        for _ in range(WARM_UP_LAUNCHES):
            self.run()
        stamps: list[_Stamps] = []
        began_ns = time.monotonic_ns()
        while not has_enough(len(stamps), repetitions, time.monotonic_ns() - began_ns, budget_ns):
            stamps.append(self.stamped())
        return stamps

    def stamped(self) -> _Stamps:
        """Launch once and return its timestamps."""
        event = self.run()
        queued, submit, start, end = (_stamp(event, name) for name in _PROFILED)
        return queued, submit, start, end


_PROFILED = (
    cl.profiling_info.QUEUED,
    cl.profiling_info.SUBMIT,
    cl.profiling_info.START,
    cl.profiling_info.END,
)


#: A launch whose START and END cannot both be right is done again, so many times.
MOST_LAUNCHES = 5


def execution_ns(launch: Callable[[], cl.Event], what: str) -> int:
    """Launch until START and END can be right, and return what lies between them.

    Raises MeasurementError: they cannot, of `MOST_LAUNCHES` launches.
    """
    for _ in range(MOST_LAUNCHES):
        event = launch()
        start, end = (_stamp(event, name) for name in _PROFILED[2:])
        if 0 < start < end:
            return end - start
    raise MeasurementError(
        f"{what}: START is {start} ns and END {end} ns, and so or alike in {MOST_LAUNCHES} launches; expected a START "
        "before END, update the driver or measure on another device"
    )


def _stamp(event: cl.Event, name: int) -> int:
    """Return one time of an event; 0 where the driver has none."""
    try:
        value = event.get_profiling_info(name)
    except cl.Error as error:
        if error.code != cl.status_code.PROFILING_INFO_NOT_AVAILABLE:
            raise
        return 0
    assert isinstance(value, int)
    return value


def _time_in_turns(
    sides: tuple[BoundLaunch, BoundLaunch], repetitions: int, budget_ns: int, leader: int
) -> tuple[list[_Stamps], list[_Stamps]]:
    """Warm both up, then let them take turns: each round has both, and every other one in the other order."""
    for _ in range(WARM_UP_LAUNCHES):
        for each in sides:
            each.run()
    stamps: tuple[list[_Stamps], list[_Stamps]] = ([], [])
    began_ns = time.monotonic_ns()
    while not has_enough(len(stamps[0]), repetitions, time.monotonic_ns() - began_ns, budget_ns):
        first = leader ^ (len(stamps[0]) % 2)
        for side in (first, 1 - first):
            stamps[side].append(sides[side].stamped())
    return stamps


def _record(case: KernelCase, deviation: float, stamps: Sequence[_Stamps]) -> KernelRecord:
    queued, submit, start, end = zip(*stamps, strict=True) if stamps else ((), (), (), ())
    return KernelRecord(
        case_id=case.case_id,
        error_norm=deviation,
        tolerance=TOLERANCES[case.type],
        queued_ns=queued,
        submit_ns=submit,
        start_ns=start,
        end_ns=end,
    )


def has_enough(done: int, repetitions: int, elapsed_ns: int, budget_ns: int) -> bool:
    """Return whether a kernel has all its repetitions, or `MIN_REPETITIONS` of them and no time left."""
    return done >= repetitions or (done >= MIN_REPETITIONS and elapsed_ns > budget_ns)
