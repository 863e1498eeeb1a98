"""The native worker's launches on a real device; skipped where there is no OpenCL."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.launch import run_worker
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.plan import DevicesPlan, KernelPlan

from ..opencl_children import visible_opencl

CASES = ("kernel/gemv_q8_0/m1536-k576/q8_0", "kernel/softmax/rows2048-columns64/f32")


def test_the_native_worker_records_what_the_one_in_python_does(engine_cache: Path, tmp_path: Path) -> None:
    """On the same device both compute the same, bit for bit, from the same inputs, and launch as often."""
    environment = visible_opencl(tmp_path)
    own = OwnKernels(read_there=Path.read_bytes, log_dir=tmp_path, cache_dir=str(engine_cache))
    run = partial(run_worker, extra_environment=environment)
    try:
        own.run(DevicesPlan(platform=None), run)
    except MeasurementError as error:
        if not str(error).startswith("OpenCL:"):
            raise
        pytest.skip(str(error))
    plan = KernelPlan(
        case_ids=CASES,
        platform=None,
        n_repetitions=5,
        seed=0,
        log_dir=str(tmp_path),
        cache_dir=str(engine_cache),
        n_threads=1,
    )
    native, python = own.run(plan, run), run(plan)
    assert native.keys() == python.keys()
    pairs = [
        tuple(KernelRecord.from_plain(side["kernels"][place]) for side in (native, python))
        for place in range(len(CASES))
    ]
    for ours, theirs in pairs:
        assert ours.is_correct
        assert (ours.case_id, ours.error_norm, ours.tolerance) == (theirs.case_id, theirs.error_norm, theirs.tolerance)
        assert len(ours.durations_ns) == len(theirs.end_ns) == 5
        assert all(queued <= end for queued, end in zip(ours.queued_ns, ours.end_ns, strict=True))
