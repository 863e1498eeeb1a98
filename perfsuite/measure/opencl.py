"""Measuring OpenCL kernels on the device: each checked against its reference first, then timed by its events.

For a process of its own: it holds a context, and a driver that crashes takes it down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
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
from perfsuite.measure.kernel_repetition import MIN_ROUNDS, WARM_UP_LAUNCHES, launches_within, least_launches
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
    the device's caches are read from there. A seed draws the inputs of each case independently of the others. An
    `OpenClError` says that a kernel does not build, with the log in `log_dir`, or that the device refuses a launch.
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
        self._programs = KernelPrograms(self._context, kernels_dir=kernels_dir, log_dir=log_dir, built_dir=built_dir)

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

    def measure(
        self,
        cases: Sequence[KernelCase],
        *,
        repetitions: int,
        seed: int,
        budget_ns: int,
        old_kernels_dir: Path | None = None,
        leaders: Sequence[Sequence[int]] = (),
    ) -> tuple[tuple[KernelRecord, ...], tuple[KernelRecord, ...]]:
        """Verify kernels, each of the old sources too where there are any, then time those that are right in rounds.

        The records of both sides are returned, the old ones first. `leaders` says round by round which side of each
        kernel is first, 0 is the old one; one round without any. Rounds end when the budget would, verifying included.

        Both sides are launched in ABBA order on the same buffers of one queue: what disturbs the device for longer than
        a launch disturbs both, and where buffers lie is no difference between them. Where the code of a program lies is
        drawn once a process, and belongs to a difference; sources that are alike have one program.
        """
        until_ns = time.monotonic_ns() + budget_ns
        timed = [self._verified(case, old_kernels_dir, seed) for case in cases]
        _time_in_rounds(timed, leaders or ((0,) * len(timed),), repetitions, until_ns)
        old = timed if old_kernels_dir else []
        return tuple(each.record(0) for each in old), tuple(each.record(-1) for each in timed)

    def _verified(self, case: KernelCase, old_kernels_dir: Path | None, seed: int) -> _TimedKernel:
        timed = _TimedKernel(case=case, device=self._device)
        with timed.errors():
            new = self.bound(case, seed=seed)
            deviation = new.verify()
            if old_kernels_dir is not None:
                old = new.with_kernel(self._programs.kernel(new.launch, old_kernels_dir))
                timed.add(old, deviation if old.is_like(new) else old.verify())
            timed.add(new, deviation)
        return timed


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

    def is_like(self, other: BoundLaunch) -> bool:
        """Whether both launch the same kernel of the same program."""
        return self._kernel is other._kernel

    def verify(self) -> float:
        """Run once and return the error norm, infinite where the kernel wrote behind its output or left any of it."""
        values = self.outputs()
        return (
            math.inf if values is None else error_norm(values.reshape(self.launch.expected.shape), self.launch.expected)
        )

    def forget_contents(self) -> None:
        """Give back this process's own copy of what the buffers hold, and what to expect of it."""
        self._launch = self.launch = replace(self.launch, inputs=(), expected=np.empty(0))

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


@dataclass(kw_only=True)
class _TimedKernel:
    """A kernel that was verified, and the launches of its sides."""

    case: KernelCase
    device: OpenClDevice
    sides: list[BoundLaunch] = field(default_factory=list)
    deviations: list[float] = field(default_factory=list)
    stamps: list[list[_Stamps]] = field(default_factory=list)
    n_per_round: int = 0

    def add(self, side: BoundLaunch, deviation: float) -> None:
        """Add a side that was verified."""
        side.forget_contents()
        self.sides.append(side)
        self.deviations.append(deviation)
        self.stamps.append([])

    @property
    def is_right(self) -> bool:
        """Whether all sides compute what they should: how fast it is counts only then."""
        return all(deviation <= TOLERANCES[self.case.type] for deviation in self.deviations)

    def errors(self) -> AbstractContextManager[None]:
        """Say that OpenCL refused this kernel, where it does."""
        return opencl_errors(self.case.case_id, f" on {self.device}")

    def warm_up(self) -> int:
        """Launch all sides a few times, and return how long the last launches took, ns."""
        with self.errors():
            for _ in range(WARM_UP_LAUNCHES):
                began_ns = time.monotonic_ns()
                for side in self.sides:
                    side.bind()
                    side.run()
        return (time.monotonic_ns() - began_ns) // len(self.sides)

    def take_round(self, leader: int) -> None:
        """Let the sides take turns, after a launch that does not count: it brings the buffers back into caches."""
        with self.errors():
            for side in self.sides:
                side.bind()
            self.sides[-1 - leader % len(self.sides)].run()
            for turn in range(self.n_per_round):
                ordered = zip(self.sides, self.stamps, strict=True)
                for side, stamps in reversed(list(ordered)) if (turn + leader) % 2 else ordered:
                    stamps.append(side.stamped())

    def record(self, side: int) -> KernelRecord:
        """Return what was found of a side."""
        stamps = self.stamps[side]
        queued, submit, start, end = zip(*stamps, strict=True) if stamps else ((), (), (), ())
        return KernelRecord(
            case_id=self.case.case_id,
            error_norm=self.deviations[side],
            tolerance=TOLERANCES[self.case.type],
            queued_ns=queued,
            submit_ns=submit,
            start_ns=start,
            end_ns=end,
            n_per_round=self.n_per_round,
        )


def _time_in_rounds(
    kernels: Sequence[_TimedKernel], leaders: Sequence[Sequence[int]], most: int, until_ns: int
) -> None:
    """Warm all up, then go round by round through those that are right until the time is up, `MIN_ROUNDS` at least."""
    lengths_ns = [each.warm_up() for each in kernels]
    n_blocks = len(leaders) * sum(len(each.sides) for each in kernels) or 1
    share_ns = (until_ns - time.monotonic_ns()) / n_blocks
    for each, launch_ns in zip(kernels, lengths_ns, strict=True):
        least, n_sides = least_launches(len(leaders)), len(each.sides)
        each.n_per_round = launches_within(share_ns, launch_ns, least=least, most=most, n_sides=n_sides)
    round_ns = 0
    for place, led in enumerate(leaders):
        began_ns = time.monotonic_ns()
        if place >= MIN_ROUNDS and began_ns + round_ns > until_ns:
            break
        for each, leader in zip(kernels, led, strict=True):
            if each.is_right:
                each.take_round(leader)
        round_ns = time.monotonic_ns() - began_ns
