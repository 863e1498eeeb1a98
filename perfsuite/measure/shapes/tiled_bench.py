"""The suite's tiled OpenCL kernels at any shape: each verified against NumPy, timed by its events.

For a process of its own: it holds a context, and a driver that crashes takes it down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyopencl as cl

from perfsuite.errors import OpenClError, ShapeError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_programs import first_line, opencl_errors
from perfsuite.measure.kernel_references import error_norm
from perfsuite.measure.launches.plan import DeviceLimits
from perfsuite.measure.opencl import KernelBench, PlacedLaunch, execution_ns
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.measure.shapes.shape_inputs import ShapeInputs, draw_inputs
from perfsuite.measure.shapes.shape_references import shape_reference
from perfsuite.measure.shapes.tiled_launches import kernels_digest, tiled_description, tiled_launch, tiled_problem
from perfsuite.workload.shapes.shape_case import ShapeCase


class TiledBench:
    """The tiled kernels on one device; a program is built when a case first needs it."""

    def __init__(self, device: OpenClDevice, *, log_dir: Path, kernels_dir: Path = KERNELS_DIR) -> None:
        """Open the device; kernels of another directory than the suite's own are measured as variants."""
        self._device = device
        self._kernels = kernels_digest(kernels_dir)
        try:
            self._bench = KernelBench(device, log_dir=log_dir, kernels_dir=kernels_dir)
        except cl.Error as error:
            raise OpenClError(f"{first_line(error)} on {device}") from None

    @property
    def description(self) -> BenchDescription:
        return tiled_description(self._device, self._kernels)

    def problem(self, case: ShapeCase) -> str | None:
        device = self._bench.queue.device
        limits = DeviceLimits(
            extensions="",
            allocation_bytes=device.max_mem_alloc_size,
            group_items=device.max_work_group_size,
            axis_items=tuple(device.max_work_item_sizes),
        )
        return tiled_problem(case, self._device, limits)

    def bound(self, case: ShapeCase, *, seed: int) -> TiledOperation:
        """Draw a case's inputs and place them; `ShapeError` where there is a problem with it."""
        problem = self.problem(case)
        if problem or case.tiling is None:
            raise ShapeError(f"{case.case_id}: {problem}")
        inputs = draw_inputs(case.shape, seed=seed)
        with opencl_errors(case.case_id):
            placed = self._bench.placed(tiled_launch(inputs, case.tiling), n_outputs=case.shape.n_outputs)
        return TiledOperation(case, inputs, placed)

    def samples(self, operations: Sequence[TiledOperation], n_launches: int) -> Iterator[int]:
        """Take each sample when it is asked for, so that whoever asks marks which one that is."""
        for operation in operations:
            yield min(operation.run_ns() for _ in range(n_launches))


class TiledOperation:
    """A tiled kernel with its inputs on the device."""

    def __init__(self, case: ShapeCase, inputs: ShapeInputs, placed: PlacedLaunch) -> None:
        self._case, self._inputs, self._placed = case, inputs, placed

    def verify(self) -> Deviation:
        reference = shape_reference(self._inputs)
        with opencl_errors(self._case.case_id):
            self._placed.bind()
            out = self._placed.outputs()
        expected = reference.expected
        norm = math.inf if out is None else error_norm(out.reshape(expected.shape), expected)
        return Deviation(error_norm=norm, tolerance=reference.f32_tolerance)

    def launched_ns(self, most_launches: int, until_ns: int) -> int:
        times_ns = [self._waited_ns()]
        while len(times_ns) < most_launches and sum(times_ns) < until_ns:
            times_ns.append(self._waited_ns())
        return min(times_ns)

    def _waited_ns(self) -> int:
        """Run once by this process's clock: what the device says of itself leaves out how it was started."""
        start_ns = time.perf_counter_ns()
        self.run_ns()
        return max(1, time.perf_counter_ns() - start_ns)

    def run_ns(self) -> int:
        """Run once, wait, and return what it took on the device's clock."""
        with opencl_errors(self._case.case_id):
            self._placed.bind()
            return execution_ns(self._placed.run, self._case.case_id)

    def close(self) -> None:
        self._placed.release()
