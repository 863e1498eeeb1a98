"""The kernels of the OpenCL ceilings on a device: built, verified, and ready to be timed by their events."""

from __future__ import annotations

from dataclasses import dataclass
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
from perfsuite.measure.opencl_platform import OpenClDevice

#: Passes of a launch that is verified.
TRIED_PASSES = 3
#: The operands of ``acc = acc * x + y``: it converges, so that no number of passes overflows.
X, Y = np.float32(0.5), np.float32(1.0)
#: The operand of a dot product: the signed bytes -5, 2, -3, 1, the first the lowest.
BYTES = np.uint32(0x01FD02FB)
#: What small starts are multiplied by where all four bytes count: 2³² over the golden ratio.
SPREAD = np.uint32(0x9E3779B1)


def small_numbers(count: int) -> NDArray[np.float32]:
    """Return whole numbers that repeat after a prime, so that no shift by a vector goes unseen."""
    return np.asarray(np.arange(count) % 251, dtype=np.float32)


def streamed(before: NDArray[np.float32], kind: str, size: int) -> NDArray[np.float32]:
    """Return what memory holds after a stream over arrays of a size: what was not to be written as before."""
    after = before.copy()
    if kind == "copy":
        after[size : 2 * size] = before[:size]
    elif kind == "triad":
        after[2 * size : 3 * size] = before[:size] + before[size : 2 * size] / np.float32(1024)
    return after


def chained(part: str, n_items: int, n_accumulators: int, width: int) -> NDArray[Any]:
    """Return each item's sum over its chains, each begun as the source says; every value is exact."""
    start = np.arange(n_items)[:, None, None] % 8 + np.arange(n_accumulators)[:, None] + np.arange(width)
    if part in ("FP32", "F16"):
        floats = start.astype(np.float64)
        for _ in range(TRIED_PASSES):
            floats = floats * float(X) + float(Y)
        return np.asarray(floats.sum(axis=(1, 2)), dtype=np.float32)
    acc = start.astype(np.uint32) * SPREAD
    weights = np.array([BYTES]).view(np.int8).astype(np.int64)
    for _ in range(TRIED_PASSES):
        products = acc[..., None].view(np.int8).astype(np.int64) @ weights
        acc = acc + products.astype(np.uint32)
    return np.asarray(acc.sum(axis=(1, 2), dtype=np.uint32))


SOURCE = "ceilings.cl"
#: Values of a vector that are tried: the widest is not always the fastest.
WIDTHS = (4, 8, 16)
#: Arrays of each use of memory.
ARRAYS = {"read": 1, "copy": 2, "triad": 3}
#: Parts of the source that do each kind of arithmetic, with the widths tried, and the extension that a part needs.
ARITHMETIC = {"fp32": (("FP32", WIDTHS),), "f16": (("F16", WIDTHS),), "int8": (("DOT", (4,)), ("INT8", WIDTHS))}
_EXTENSIONS = {"F16": "cl_khr_fp16", "DOT": "cl_khr_integer_dot_product"}

#: FLOPs of one step of one chain, of which INT8 and DOT do four multiplications and four additions.
_STEP_FLOPS = {"FP32": 2, "F16": 2, "INT8": 8, "DOT": 8}
_FLOAT_BYTES = 4
#: Four arrays of the widest vector: the least that a stream can be verified with.
_ALIGNMENT_BYTES = 4 * WIDTHS[-1] * _FLOAT_BYTES
#: Groups of items that stream when a kernel is verified.
_TRIED_GROUPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """How work is cut for a kind of device."""

    in_chunks: bool
    group: int
    #: Items for each compute unit, of a stream and of arithmetic.
    stream_items: int
    arithmetic_items: int
    #: Independent chains of an item: what hides the latency of an instruction, and fits in the registers.
    accumulators: int


#: Streams: one item a thread, all of which run at once. With more, one part of the working set after the other would be
#: passed over many times, and a smaller cache measured than the one that holds the whole.
_CPU_SHAPE = _Shape(in_chunks=True, group=1, stream_items=1, arithmetic_items=4, accumulators=12)
_GPU_SHAPE = _Shape(in_chunks=False, group=256, stream_items=2048, arithmetic_items=2048, accumulators=8)


class CeilingKernels:
    """A device with a profiling queue, memory to stream over, and the programs built for it."""

    def __init__(
        self, device: OpenClDevice, *, memory_bytes: int, log_dir: Path, kernels_dir: Path = KERNELS_DIR
    ) -> None:
        """Open the device and fill as much of ``memory_bytes`` as it gives, halving what it refuses."""
        handle = cl.get_platforms()[device.platform_index].get_devices()[device.device_index]
        self._source, self._log_dir = kernels_dir / SOURCE, log_dir
        self._shape = _CPU_SHAPE if device.is_cpu else _GPU_SHAPE
        self._extensions = frozenset(handle.extensions.split())
        self._n_units = device.compute_units
        self._group = min(self._shape.group, int(handle.max_work_group_size))
        self._programs: dict[tuple[str, int], cl.Program] = {}
        self._streams: dict[tuple[str, int], cl.Kernel | OpenClError] = {}
        try:
            self._context = cl.Context([handle])
            self._queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            n_sums = max(self._n_items(self._shape.stream_items), self._n_items(self._shape.arithmetic_items))
            self._sums = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, n_sums * _FLOAT_BYTES)
        except cl.Error as error:
            raise OpenClError(f"{device} cannot be opened: {first_line(error)}; try another platform") from None
        #: What there is to stream over, a multiple of `_ALIGNMENT_BYTES`.
        self.memory_bytes = -(-memory_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        self._memory = self._filled_memory()

    def stream(self, kind: str, width: int, working_set_bytes: int) -> Way:
        """Return a use of memory with vectors of a width, verified; all arrays together take the working set."""
        if working_set_bytes > self.memory_bytes:
            raise OpenClError(f"the device gave {self.memory_bytes} bytes of memory, {working_set_bytes} are needed")
        kernel = self._verified_stream(kind, width)
        vector_bytes = width * _FLOAT_BYTES
        count = working_set_bytes // ARRAYS[kind] // vector_bytes
        return Way(
            amount=ARRAYS[kind] * count * vector_bytes,
            launch_ns=lambda passes: self._stream_ns(kernel, count, passes, self._n_items(self._shape.stream_items)),
        )

    def arithmetic(self, kind: str, part: str, width: int) -> Way:
        """Return chains of multiplications and additions by a part of the source, verified."""
        if (extension := _EXTENSIONS.get(part)) and extension not in self._extensions:
            raise OpenClError(f"the device has no {extension}")
        kernel = self._kernel(part, f"chains_{kind}", width)
        n_chains = self._n_items(self._shape.arithmetic_items) * self._shape.accumulators * width
        self._verify_arithmetic(kernel, part, width)
        return Way(
            amount=n_chains * _STEP_FLOPS[part], launch_ns=lambda passes: self._arithmetic_ns(kernel, part, passes)
        )

    def _stream_ns(self, kernel: cl.Kernel, count: int, passes: int, n_items: int) -> int:
        arguments = (self._memory, self._sums, np.uint32(count), np.uint32(passes))
        return self._launch_ns(kernel, n_items, arguments)

    def _arithmetic_ns(self, kernel: cl.Kernel, part: str, passes: int) -> int:
        operands = (X, Y) if part in ("FP32", "F16") else (BYTES,)
        arguments = (self._sums, *operands, np.uint32(passes))
        return self._launch_ns(kernel, self._n_items(self._shape.arithmetic_items), arguments)

    def _launch_ns(self, kernel: cl.Kernel, n_items: int, arguments: tuple[Any, ...]) -> int:
        try:
            kernel.set_args(*arguments)
            return execution_ns(lambda: self._launched(kernel, n_items), kernel.function_name)
        except cl.Error as error:
            raise OpenClError(f"the device refused kernel {kernel.function_name}: {first_line(error)}") from None

    def _launched(self, kernel: cl.Kernel, n_items: int) -> cl.Event:
        event = cl.enqueue_nd_range_kernel(self._queue, kernel, (n_items,), (self._group,))
        event.wait()
        return event

    def _n_items(self, items_per_unit: int) -> int:
        return -(-self._n_units * items_per_unit // self._group) * self._group

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
        """Run over small whole numbers, of which every sum and product is exact, and compare all that was written.

        Each item has four vectors, which it takes together, and one or two more.
        """
        n_items = _TRIED_GROUPS * self._group
        count = min(5 * n_items + n_items // 3 + 1, self.memory_bytes // 4 // (width * _FLOAT_BYTES))
        size = count * width
        before = small_numbers(4 * size)
        cl.enqueue_copy(self._queue, self._memory, before)
        self._stream_ns(kernel, count, TRIED_PASSES, n_items)
        after = np.empty_like(before)
        cl.enqueue_copy(self._queue, after, self._memory)
        total = self._sums_of(n_items, np.float32).sum(dtype=np.float64)
        is_right = (after == streamed(before, kind, size)).all()
        if not is_right or (kind == "read" and total != TRIED_PASSES * before[:size].sum(dtype=np.float64)):
            raise OpenClError(f"kernel {kernel.function_name} with vectors of {width} computes wrongly")

    def _verify_arithmetic(self, kernel: cl.Kernel, part: str, width: int) -> None:
        self._arithmetic_ns(kernel, part, TRIED_PASSES)
        n_items = self._n_items(self._shape.arithmetic_items)
        expected = chained(part, n_items, self._shape.accumulators, width)
        if not np.array_equal(self._sums_of(n_items, expected.dtype), expected):
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
                self.memory_bytes = self.memory_bytes // 2 // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
                if not self.memory_bytes:
                    raise OpenClError(f"the device gives no memory: {first_line(error)}") from None

    def _kernel(self, part: str, entry: str, width: int) -> cl.Kernel:
        if (part, width) not in self._programs:
            self._programs[part, width] = self._build(part, width)
        return cl.Kernel(self._programs[part, width], entry)

    def _build(self, part: str, width: int) -> cl.Program:
        defines = {
            f"PART_{part}": 1,
            "WIDTH": width,
            "ACCUMULATORS": self._shape.accumulators,
            "IN_CHUNKS": int(self._shape.in_chunks),
        }
        standard = "CL3.0" if part == "DOT" else "CL1.2"
        options = [f"-cl-std={standard}", *(f"-D{name}={value}" for name, value in defines.items())]
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
