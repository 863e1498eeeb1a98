"""What the kernels of the OpenCL ceilings do: how it is cut for a device, and what they must compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, Ceiling, Rate, Resource
from perfsuite.measure.opencl_platform import OpenClDevice

#: Passes of a launch that is verified.
TRIED_PASSES = 3
#: The operands of ``acc = acc * x + y``: it converges, so that no number of passes overflows.
X, Y = np.float32(0.5), np.float32(1.0)
#: The operand of a dot product: the signed bytes -5, 2, -3, 1, the first the lowest.
BYTES = np.uint32(0x01FD02FB)
#: What small starts are multiplied by where all four bytes count: 2³² over the golden ratio.
SPREAD = np.uint32(0x9E3779B1)

SOURCE = "ceilings.cl"
#: Values of a vector that are tried: the widest is not always the fastest.
WIDTHS = (4, 8, 16)
#: Arrays of each use of memory.
ARRAYS = {"read": 1, "copy": 2, "triad": 3}
#: Parts of the source that do each kind of arithmetic, with the widths tried, and the extension that a part needs.
ARITHMETIC = {"fp32": (("FP32", WIDTHS),), "f16": (("F16", WIDTHS),), "int8": (("DOT", (4,)), ("INT8", WIDTHS))}
EXTENSIONS = {"F16": "cl_khr_fp16", "DOT": "cl_khr_integer_dot_product"}

FLOAT_BYTES = 4
#: Small whole numbers begin again at this prime, so that no shift by a vector goes unseen.
SMALL_LIMIT = 251
#: FLOPs of one step of one chain, of which INT8 and DOT do four multiplications and four additions.
_STEP_FLOPS = {"FP32": 2, "F16": 2, "INT8": 8, "DOT": 8}
#: Four arrays of the widest vector: the least that a stream can be verified with.
ALIGNMENT_BYTES = 4 * WIDTHS[-1] * FLOAT_BYTES
#: Groups of items that stream when a kernel is verified.
_TRIED_GROUPS = 2

_KIB = 1024
#: Both ends of the ladder, all of whose steps are multiples of the first.
_LEAST_BYTES, _MOST_BYTES = 64 * _KIB, 512 * _KIB * _KIB
_LADDER_STEP = 4
#: Working sets take no more of the device's memory than this.
_MEMORY_SHARE = 8


class Kind(NamedTuple):
    """What a ceiling is of."""

    resource: Resource
    kind: str
    working_set_bytes: int | None = None


def all_kinds(sets: Sequence[int]) -> Iterator[tuple[Kind, list[tuple[str, int]]]]:
    """Yield each kind of work at these working sets, with the parts of the source that do it and their widths."""
    for size in sets:
        for kind in BANDWIDTH_KINDS:
            yield Kind(Resource.BANDWIDTH, kind, size), [("STREAM", width) for width in WIDTHS]
    for kind in COMPUTE_KINDS:
        parts = [(part, width) for part, widths in ARITHMETIC[kind] for width in widths]
        yield Kind(Resource.COMPUTE, kind), parts


def ceiling_of(device: OpenClDevice, kind: Kind, measured: Rate | str) -> Ceiling:
    """Return the ceiling of a kind of work by its rate, or why it has none."""
    return Ceiling(
        processor=device.device_name,
        **kind._asdict(),
        rate=measured if isinstance(measured, Rate) else None,
        missing=measured if isinstance(measured, str) else "",
    )


def standard_working_sets(device: OpenClDevice, most_allocation_bytes: int) -> tuple[int, ...]:
    """Return the powers of four from 64 KiB, and at their end 512 MiB or the most that the device's memory allows."""
    top = max(_LEAST_BYTES, min(_MOST_BYTES, device.global_memory_bytes // _MEMORY_SHARE, most_allocation_bytes))
    top -= top % _LEAST_BYTES
    steps = [_LEAST_BYTES]
    while steps[-1] * _LADDER_STEP < top:
        steps.append(steps[-1] * _LADDER_STEP)
    return tuple(sorted({*steps, top}))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How work is cut for one device."""

    in_chunks: bool
    #: Items of a work-group, of a launch that streams, and of one that computes.
    group: int
    stream_items: int
    arithmetic_items: int
    accumulators: int

    def options(self, part: str, width: int) -> list[str]:
        """Return the options that a part of the source is built with."""
        defines = {
            f"PART_{part}": 1,
            "WIDTH": width,
            "ACCUMULATORS": self.accumulators,
            "IN_CHUNKS": int(self.in_chunks),
        }
        standard = "CL3.0" if part == "DOT" else "CL1.2"
        return [f"-cl-std={standard}", *(f"-D{name}={value}" for name, value in defines.items())]

    def tried_items(self) -> int:
        """Return the items of a stream that is verified."""
        return _TRIED_GROUPS * self.group

    def tried_count(self, width: int, memory_bytes: int) -> int:
        """Return the vectors of an array of that: each item has four, which it takes together, and one or two more."""
        n_items = self.tried_items()
        return min(5 * n_items + n_items // 3 + 1, memory_bytes // 4 // (width * FLOAT_BYTES))

    def chain_flops(self, part: str, width: int) -> int:
        """Return the FLOPs of one pass of chains."""
        return self.arithmetic_items * self.accumulators * width * _STEP_FLOPS[part]


def cut_for(device: OpenClDevice, most_group_items: int) -> Cut:
    """Return how work is cut for a device, a group of which has so many items at most."""
    shape = _CPU_SHAPE if device.is_cpu else _GPU_SHAPE
    group = min(shape.group, most_group_items)
    stream, arithmetic = (
        -(-device.compute_units * each // group) * group for each in (shape.stream_items, shape.arithmetic_items)
    )
    return Cut(
        in_chunks=shape.in_chunks,
        group=group,
        stream_items=stream,
        arithmetic_items=arithmetic,
        accumulators=shape.accumulators,
    )


def aligned(memory_bytes: int) -> int:
    """Return the most that can be streamed over of so much memory."""
    return memory_bytes // ALIGNMENT_BYTES * ALIGNMENT_BYTES


def stream_count(kind: str, width: int, working_set_bytes: int) -> int:
    """Return the vectors of an array, all of which take the working set together."""
    return working_set_bytes // ARRAYS[kind] // (width * FLOAT_BYTES)


def stream_bytes(kind: str, width: int, count: int) -> int:
    """Return what one pass over arrays of so many vectors moves."""
    return ARRAYS[kind] * count * width * FLOAT_BYTES


def operands(part: str) -> tuple[Any, ...]:
    """Return the operands of chains."""
    return (X, Y) if part in ("FP32", "F16") else (BYTES,)


def streamed(before: NDArray[np.float32], kind: str, size: int) -> NDArray[np.float32]:
    """Return what memory holds after a stream over arrays of a size: what must not be written is as before."""
    after = before.copy()
    if kind == "copy":
        after[size : 2 * size] = before[:size]
    elif kind == "triad":
        after[2 * size : 3 * size] = before[:size] + before[size : 2 * size] / np.float32(1024)
    return after


def is_sum_right(kind: str, sums: NDArray[np.float32], before: NDArray[np.float32], size: int) -> bool:
    """Return whether the items of a stream have summed up what they should; all but a read sum nothing up."""
    expected = TRIED_PASSES * before[:size].sum(dtype=np.float64)
    return kind != "read" or bool(sums.sum(dtype=np.float64) == expected)


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
