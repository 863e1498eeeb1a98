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
from perfsuite.measure.opencl import KernelBench, PlacedLaunch, execution_ns
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.measure.shapes.shape_inputs import ShapeInputs, draw_inputs
from perfsuite.measure.shapes.shape_references import shape_reference
from perfsuite.measure.shapes.tiled_launches import (
    MOST_HEAD,
    buffer_bytes,
    kernels_digest,
    local_bytes,
    local_size,
    tiled_launch,
)
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling

#: Kernels count in 32 bits with a sign, up to the end of the last tile.
_MOST_SIZE = 2**30


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
        device = self._device
        texts = ("platform_name", "platform_version", "device_name", "device_version", "driver_version")
        return BenchDescription(
            device=f"{device.device_name} ({device.platform_name}, driver {device.driver_version})",
            n_compute_units=device.compute_units,
            fingerprint=(
                *((name, str(getattr(device, name))) for name in (*texts, "compute_units")),
                ("kernels", self._kernels),
            ),
        )

    def problem(self, case: ShapeCase) -> str | None:
        if case.subject is not Subject.TILED or case.tiling is None:
            return f"subject {case.subject.value}; expected {Subject.TILED.value}"
        limits = self._limits(case, case.tiling)
        return next(
            (f"{what}: {wanted}; expected {most} at most" for what, wanted, most in limits if wanted > most), None
        )

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

    def _limits(self, case: ShapeCase, tiling: Tiling) -> Iterator[tuple[str, int, int]]:
        """Yield what the kernels are written for, and what the device holds: wanted, and at most."""
        yield "the largest size", max(case.shape.sizes), _MOST_SIZE
        if case.operation is Operation.ATTENTION:
            yield "head", case.shape.of("head"), MOST_HEAD
        device, buffers = self._bench.queue.device, buffer_bytes(case.shape)
        items = local_size(case.shape, tiling)
        yield "items of a work-group", math.prod(items), device.max_work_group_size
        for axis, (wanted, most) in enumerate(zip(items, device.max_work_item_sizes, strict=False)):
            yield f"items of a work-group along axis {axis}", wanted, most
        yield "bytes of local memory", local_bytes(case.shape, tiling), device.local_mem_size
        yield "bytes of a buffer", max(buffers), device.max_mem_alloc_size
        yield "bytes of memory", sum(buffers), device.global_mem_size


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
