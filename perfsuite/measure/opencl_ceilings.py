"""Measuring the ceilings of an OpenCL device: how fast it reads and writes each of several working sets, and computes.

For a process of its own: it holds a context, and a driver that crashes takes it down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyopencl as cl

from perfsuite.errors import OpenClError
from perfsuite.expectation.roofline.ceiling import Ceiling
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_programs import first_line
from perfsuite.measure.opencl_ceiling_kernels import CeilingKernels
from perfsuite.measure.opencl_ceiling_rounds import Way, rates_in_rounds
from perfsuite.measure.opencl_ceiling_work import Kind, all_kinds, ceiling_of, standard_working_sets
from perfsuite.measure.opencl_platform import OpenClDevice, choose_device


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
    found = {kind: _able(_preparations(kernels, kind, parts)) for kind, parts in all_kinds(sets)}
    rates = rates_in_rounds(
        {kind: ways for kind, (ways, _) in found.items() if ways},
        budget_ns=max(0, budget_ms * 1_000_000 - (time.monotonic_ns() - began_ns)),
    )
    return tuple(ceiling_of(device, kind, rates.get(kind, reason)) for kind, (_, reason) in found.items())


def _most_allocation_bytes(device: OpenClDevice) -> int:
    return int(cl.get_platforms()[device.platform_index].get_devices()[device.device_index].max_mem_alloc_size)


def _preparations(kernels: CeilingKernels, kind: Kind, parts: Sequence[tuple[str, int]]) -> list[Callable[[], Way]]:
    """Return what prepares each way of a kind of work."""
    if kind.working_set_bytes is None:
        return [partial(kernels.arithmetic, kind.kind, *each) for each in parts]
    return [partial(kernels.stream, kind.kind, width, kind.working_set_bytes) for _, width in parts]


def _able(preparations: Sequence[Callable[[], Way]]) -> tuple[list[Way], str]:
    """Return the ways that work, and why the last of the others does not."""
    ways, reason = [], ""
    for prepare in preparations:
        try:
            ways.append(prepare())
        except (OpenClError, cl.Error) as error:
            reason = first_line(error)
    return ways, reason
