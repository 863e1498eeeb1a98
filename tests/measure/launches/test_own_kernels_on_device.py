"""The native worker's launches on a real device; skipped where there is no OpenCL."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, Ceiling
from perfsuite.measure import opencl_ceiling_work
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.launch import run_worker
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.launches.session import RunPlan, own_source
from perfsuite.measure.plan import DevicesPlan, KernelPlan, OpenClCeilingsPlan

from ..opencl_children import visible_opencl
from .conftest import skipped_without_opencl

CASES = ("kernel/gemv_q8_0/m1536-k576/q8_0", "kernel/softmax/rows2048-columns64/f32")


@pytest.fixture
def run(tmp_path: Path) -> RunPlan:
    return partial(run_worker, extra_environment=visible_opencl(tmp_path))


@pytest.fixture
def own(engine_cache: Path, tmp_path: Path, run: RunPlan) -> OwnKernels:
    own = OwnKernels(read_there=Path.read_bytes, log_dir=tmp_path, cache_dir=str(engine_cache))
    with skipped_without_opencl():
        own.run(DevicesPlan(platform=None), run)
    return own


@pytest.mark.long
def test_the_native_worker_records_what_the_one_in_python_does(
    own: OwnKernels, run: RunPlan, engine_cache: Path, tmp_path: Path
) -> None:
    """On the same device both compute the same, bit for bit, from the same inputs, and launch as often."""
    plan = KernelPlan(
        case_ids=CASES,
        platform=None,
        n_repetitions=5,
        budget_ns=7_000_000_000,
        seed=0,
        log_dir=str(tmp_path),
        cache_dir=str(engine_cache),
        n_threads=1,
    )
    native, python = own.run(plan, run), run(plan)
    assert native.keys() == python.keys()
    for pair in zip(native["kernels"], python["kernels"], strict=True):
        ours, theirs = map(KernelRecord.from_plain, pair)
        assert ours.is_correct
        assert (ours.case_id, ours.tolerance) == (theirs.case_id, theirs.tolerance)
        assert ours.error_norm == pytest.approx(theirs.error_norm, rel=1e-9)  # sums of one thread, and of several
        assert len(ours.durations_ns) == len(theirs.end_ns) == 5
        assert all(queued <= end for queued, end in zip(ours.queued_ns, ours.end_ns, strict=True))


KINDS = [(kind, 64 << 10) for kind in BANDWIDTH_KINDS] + [(kind, None) for kind in COMPUTE_KINDS]


def ceilings(own: OwnKernels, run: RunPlan) -> list[Ceiling]:
    plan = OpenClCeilingsPlan(platform=None, budget_ms=1, log_dir="/nowhere")
    return [Ceiling.from_plain(each) for each in own.run(plan, run)["ceilings"]]


@pytest.mark.long_but_first
@pytest.mark.parametrize("shape", ["_CPU_SHAPE", "_GPU_SHAPE"])
def test_the_native_worker_measures_ceilings(
    own: OwnKernels, run: RunPlan, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """However the work is cut, each kernel computes what it should, and has five rounds; only F16 may be missing."""
    monkeypatch.setattr(opencl_ceiling_work, "_MOST_BYTES", 64 << 10)
    monkeypatch.setattr(opencl_ceiling_work, "_CPU_SHAPE", getattr(opencl_ceiling_work, shape))
    found = ceilings(own, run)
    assert [(each.kind, each.working_set_bytes) for each in found] == KINDS
    missing = [(each.kind, each.missing) for each in found if each.rate is None]
    assert missing in ([], [("f16", "the device has no cl_khr_fp16")])
    assert {each.rate.n_rounds for each in found if each.rate} == {5}


#: By fault: what is right in the source, what is wrong, and what has no rate then.
CEILING_FAULTS = {
    "sums": ("i += step) a += memory[i];", "i += step) a += 0.0f;", "read"),
    "a vector that is left out": ("to[i + 2 * step] = c;", "", "copy"),
    "what lies behind": ("to = more + count;", "to = more + count; to[count] = 0.0f;", "triad"),
    "chains": ("mad(acc[k], (FLOATS)(x),", "mad(acc[k], (FLOATS)(x) + 0.25f,", "fp32"),
    "text": ("ENTRY chains_fp32(", "ENTRY chains_fp32(nonsense", "fp32"),
}


@pytest.mark.long_but_first
@pytest.mark.parametrize("fault", CEILING_FAULTS)
def test_a_faulty_kernel_has_no_ceiling(
    own: OwnKernels, run: RunPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    right, wrong, kind = CEILING_FAULTS[fault]
    text = own_source("ceilings.cl")
    assert right in text
    monkeypatch.setattr(opencl_ceiling_work, "_MOST_BYTES", 64 << 10)
    monkeypatch.setattr("perfsuite.measure.launches.ceilings.own_source", lambda _: text.replace(right, wrong, 1))
    missing = {each.kind: each.missing for each in ceilings(own, run) if each.rate is None and each.kind != "f16"}
    assert list(missing) == [kind]
    if fault != "text":
        assert missing[kind].endswith("with vectors of 16 computes wrongly")
    else:
        assert missing[kind] == f"part FP32 of ceilings.cl does not build; see {tmp_path}/ceilings-fp3216.build.log"
        assert "nonsense" in (tmp_path / "ceilings-fp3216.build.log").read_text()
