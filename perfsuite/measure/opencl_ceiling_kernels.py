"""The kernels of the OpenCL ceilings on a device: built, verified, and ready to be timed by their events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from perfsuite.errors import OpenClError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_programs import first_line, quietly_built
from perfsuite.measure.opencl import execution_ns
from perfsuite.measure.opencl_ceiling_rounds import Way
from perfsuite.measure.opencl_ceiling_work import (
    ALIGNMENT_BYTES,
    EXTENSIONS,
    FLOAT_BYTES,
    SOURCE,
    TRIED_PASSES,
    aligned,
    chained,
    cut_for,
    is_sum_right,
    operands,
    small_numbers,
    stream_bytes,
    stream_count,
    streamed,
)
from perfsuite.measure.opencl_platform import OpenClDevice


class CeilingKernels:
    """A device with a profiling queue, memory to stream over, and the programs built for it."""

    def __init__(
        self, device: OpenClDevice, *, memory_bytes: int, log_dir: Path, kernels_dir: Path = KERNELS_DIR
    ) -> None:
        """Open the device and fill as much of ``memory_bytes`` as it gives, halving what it refuses."""
        handle = cl.get_platforms()[device.platform_index].get_devices()[device.device_index]
        self._source, self._log_dir = kernels_dir / SOURCE, log_dir
        self._extensions = frozenset(handle.extensions.split())
        self._cut = cut_for(device, int(handle.max_work_group_size))
        self._programs: dict[tuple[str, int], cl.Program] = {}
        self._streams: dict[tuple[str, int], cl.Kernel | OpenClError] = {}
        try:
            self._context = cl.Context([handle])
            self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            n_sums = max(self._cut.stream_items, self._cut.arithmetic_items)
            self._sums = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, n_sums * FLOAT_BYTES)
        except cl.Error as error:
            raise OpenClError(f"{device} cannot be opened: {first_line(error)}; try another platform") from None
        #: What there is to stream over.
        self.memory_bytes = aligned(memory_bytes + ALIGNMENT_BYTES - 1)
        self._memory = self._filled_memory()

    def stream(self, kind: str, width: int, working_set_bytes: int) -> Way:
        """Return a use of memory with vectors of a width, verified; all arrays together take the working set."""
        if working_set_bytes > self.memory_bytes:
            raise OpenClError(f"the device gave {self.memory_bytes} bytes of memory, {working_set_bytes} are needed")
        kernel = self._verified_stream(kind, width)
        count = stream_count(kind, width, working_set_bytes)
        return Way(
            amount=stream_bytes(kind, width, count),
            launch_ns=lambda passes: self._stream_ns(kernel, count, passes, self._cut.stream_items),
        )

    def arithmetic(self, kind: str, part: str, width: int) -> Way:
        """Return chains of multiplications and additions by a part of the source, verified."""
        if (extension := EXTENSIONS.get(part)) and extension not in self._extensions:
            raise OpenClError(f"the device has no {extension}")
        kernel = self._kernel(part, f"chains_{kind}", width)
        self._verify_arithmetic(kernel, part, width)
        return Way(
            amount=self._cut.chain_flops(part, width),
            launch_ns=lambda passes: self._arithmetic_ns(kernel, part, passes),
        )

    def _stream_ns(self, kernel: cl.Kernel, count: int, passes: int, n_items: int) -> int:
        arguments = (self._memory, self._sums, np.uint32(count), np.uint32(passes))
        return self._launch_ns(kernel, n_items, arguments)

    def _arithmetic_ns(self, kernel: cl.Kernel, part: str, passes: int) -> int:
        arguments = (self._sums, *operands(part), np.uint32(passes))
        return self._launch_ns(kernel, self._cut.arithmetic_items, arguments)

    def _launch_ns(self, kernel: cl.Kernel, n_items: int, arguments: tuple[Any, ...]) -> int:
        try:
            kernel.set_args(*arguments)
            return execution_ns(lambda: self._launched(kernel, n_items), kernel.function_name)
        except cl.Error as error:
            raise OpenClError(f"the device refused kernel {kernel.function_name}: {first_line(error)}") from None

    def _launched(self, kernel: cl.Kernel, n_items: int) -> cl.Event:
        event = cl.enqueue_nd_range_kernel(self._queue, kernel, (n_items,), (self._cut.group,))
        event.wait()
        return event

    def _verified_stream(self, kind: str, width: int) -> cl.Kernel:
        """Return a kernel that was tried once for all working sets, or raise what was wrong with it then."""
        if (kind, width) not in self._streams:
            self._streams[kind, width] = self._tried_stream(kind, width)
        kernel = self._streams[kind, width]
        if isinstance(kernel, OpenClError):
            raise kernel
        return kernel

    def _tried_stream(self, kind: str, width: int) -> cl.Kernel | OpenClError:
        try:
            kernel = self._kernel("STREAM", f"stream_{kind}", width)
            self._verify_stream(kernel, kind, width)
        except OpenClError as error:
            return error
        return kernel

    def _verify_stream(self, kernel: cl.Kernel, kind: str, width: int) -> None:
        """Run over small whole numbers, of which every sum and product is exact, and compare all that was written."""
        n_items, count = self._cut.tried_items(), self._cut.tried_count(width, self.memory_bytes)
        size = count * width
        before = small_numbers(4 * size)
        cl.enqueue_copy(self._queue, self._memory, before)
        self._stream_ns(kernel, count, TRIED_PASSES, n_items)
        after = np.empty_like(before)
        cl.enqueue_copy(self._queue, after, self._memory)
        sums = self._sums_of(n_items, np.float32)
        is_right = (after == streamed(before, kind, size)).all() and is_sum_right(kind, sums, before, size)
        if not is_right:
            raise OpenClError(f"kernel {kernel.function_name} with vectors of {width} computes wrongly")

    def _verify_arithmetic(self, kernel: cl.Kernel, part: str, width: int) -> None:
        self._arithmetic_ns(kernel, part, TRIED_PASSES)
        expected = chained(part, self._cut.arithmetic_items, self._cut.accumulators, width)
        if not np.array_equal(self._sums_of(len(expected), expected.dtype), expected):
            raise OpenClError(f"kernel {kernel.function_name} with vectors of {width} computes wrongly")

    def _sums_of(self, n_items: int, dtype: Any) -> NDArray[Any]:
        sums = np.empty(n_items, dtype=dtype)
        cl.enqueue_copy(self._queue, sums, self._sums)
        return sums

    def _filled_memory(self) -> cl.Buffer:
        """Return memory of which every page was written, and no value is special."""
        while True:
            try:
                memory = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, self.memory_bytes)
                cl.enqueue_fill_buffer(self._queue, memory, np.ones(1, dtype=np.float32), 0, self.memory_bytes).wait()
                return memory
            except cl.Error as error:
                self.memory_bytes = aligned(self.memory_bytes // 2)
                if not self.memory_bytes:
                    raise OpenClError(f"the device gives no memory: {first_line(error)}") from None

    def _kernel(self, part: str, entry: str, width: int) -> cl.Kernel:
        if (part, width) not in self._programs:
            self._programs[part, width] = self._build(part, width)
        return cl.Kernel(self._programs[part, width], entry)

    def _build(self, part: str, width: int) -> cl.Program:
        options = self._cut.options(part, width)
        try:
            text = self._source.read_text(encoding="utf-8")
        except OSError as error:
            raise OpenClError(f"{error.filename}: {error.strerror}; expected the kernels' sources there") from None
        try:
            return quietly_built(cl.Program(self._context, text), options)
        except cl.Error as error:
            path = self._log_dir / f"{self._source.stem}-{part.lower()}{width}.build.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"options: {' '.join(options)}\n{error}\n", encoding="utf-8")
            raise OpenClError(f"part {part} of {SOURCE} does not build; see {path}") from None
