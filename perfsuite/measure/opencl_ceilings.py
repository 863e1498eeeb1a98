"""Measuring the ceilings of an OpenCL device: how fast it reads and writes each of several working sets, and computes.

For a process of its own: it holds a context, and a driver that crashes takes it down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyopencl as cl

from perfsuite.errors import OpenClError
from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, Ceiling, Rate, Resource
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_programs import first_line
from perfsuite.measure.opencl_ceiling_kernels import ARITHMETIC, WIDTHS, CeilingKernels
from perfsuite.measure.opencl_ceiling_rounds import Way, rates_in_rounds
from perfsuite.measure.opencl_platform import OpenClDevice, choose_device

_KIB = 1024
#: Both ends of the ladder, all of whose steps are multiples of the first.
_LEAST_BYTES, _MOST_BYTES = 64 * _KIB, 512 * _KIB * _KIB
_LADDER_STEP = 4
#: Working sets take no more of the device's memory than this.
_MEMORY_SHARE = 8


class _Kind(NamedTuple):
    """What a ceiling is of."""

    resource: Resource
    kind: str
    working_set_bytes: int | None = None


def measure_opencl_ceilings(
    *,
    platform: str | None,
    budget_ms: int,
    log_dir: Path,
    working_sets_bytes: Sequence[int] | None = None,
    kernels_dir: Path = KERNELS_DIR,
) -> tuple[Ceiling, ...]:
    """Measure the ceilings of one device in this process.

    Bandwidth counts all arrays: one that is read, two of a copy, three of ``a = b + c / 1024``. Each item passes over
    its own part of the working set again and again, as threads with caches of their own do. Arithmetic is many chains
    of ``acc = acc * x + y``, 2 FLOPs each, in F32 and, with ``cl_khr_fp16``, in F16. An ``int8`` step adds the dot
    product of four signed bytes to 32 bits, 8 FLOPs, by ``dot`` of ``cl_khr_integer_dot_product`` or by shifts and
    multiplications of vectors, whichever is faster: a compiler that takes ``dot`` apart, as those for CPUs do, gives
    much less than the processor's own instruction would.

    Every kernel must compute exactly the numbers that are expected before it is timed. Rates are those of the fastest
    of vectors of 4, 8 and 16 values, by the time between START and END of a launch's event.

    `platform` is as `choose_device` takes it. `budget_ms` is for all, builds included; five rounds are measured however
    short it is. Bandwidth is measured at `working_sets_bytes`, or those of `standard_working_sets`.

    Raises `OpenClError` where there is no such platform, or its device cannot be opened.
    """
    began_ns = time.monotonic_ns()
    device = choose_device(platform)
    sets = tuple(working_sets_bytes or standard_working_sets(device, _most_allocation_bytes(device)))
    kernels = CeilingKernels(device, memory_bytes=max(sets), log_dir=log_dir, kernels_dir=kernels_dir)
    found = {kind: _able(ways) for kind, ways in _all_ways(kernels, sets)}
    rates = rates_in_rounds(
        {kind: ways for kind, (ways, _) in found.items() if ways},
        budget_ns=max(0, budget_ms * 1_000_000 - (time.monotonic_ns() - began_ns)),
    )
    return tuple(_ceiling(device, kind, rates.get(kind, reason)) for kind, (_, reason) in found.items())


def standard_working_sets(device: OpenClDevice, most_allocation_bytes: int) -> tuple[int, ...]:
    """Return the powers of four from 64 KiB, and at their end 512 MiB or the most that the device's memory allows."""
    top = max(_LEAST_BYTES, min(_MOST_BYTES, device.global_memory_bytes // _MEMORY_SHARE, most_allocation_bytes))
    top -= top % _LEAST_BYTES
    steps = [_LEAST_BYTES]
    while steps[-1] * _LADDER_STEP < top:
        steps.append(steps[-1] * _LADDER_STEP)
    return tuple(sorted({*steps, top}))


def _most_allocation_bytes(device: OpenClDevice) -> int:
    return int(cl.get_platforms()[device.platform_index].get_devices()[device.device_index].max_mem_alloc_size)


def _all_ways(kernels: CeilingKernels, sets: Sequence[int]) -> Iterator[tuple[_Kind, list[Callable[[], Way]]]]:
    """Yield each kind of work with what prepares each of its ways."""
    for size in sets:
        for kind in BANDWIDTH_KINDS:
            streams: list[Callable[[], Way]] = [partial(kernels.stream, kind, width, size) for width in WIDTHS]
            yield _Kind(Resource.BANDWIDTH, kind, size), streams
    for kind in COMPUTE_KINDS:
        parts = [(part, width) for part, widths in ARITHMETIC[kind] for width in widths]
        yield _Kind(Resource.COMPUTE, kind), [partial(kernels.arithmetic, kind, *each) for each in parts]


def _able(preparations: Sequence[Callable[[], Way]]) -> tuple[list[Way], str]:
    """Return the ways that work, and why the last of the others does not."""
    ways, reason = [], ""
    for prepare in preparations:
        try:
            ways.append(prepare())
        except (OpenClError, cl.Error) as error:
            reason = first_line(error)
    return ways, reason


def _ceiling(device: OpenClDevice, kind: _Kind, measured: Rate | str) -> Ceiling:
    return Ceiling(
        processor=device.device_name,
        **kind._asdict(),
        rate=measured if isinstance(measured, Rate) else None,
        missing=measured if isinstance(measured, str) else "",
    )
