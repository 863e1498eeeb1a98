"""The native worker's launches on a real device; skipped where there is no OpenCL."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, Ceiling
from perfsuite.measure import opencl_ceiling_work
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_launches import CPU_TUNING, GPU_TUNING, Tuning
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.launch import run_worker
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.launches.session import RunPlan, own_source
from perfsuite.measure.launches.timing import drawn_leaders
from perfsuite.measure.plan import DevicesPlan, DuplicationPlan, KernelPlan, OpenClCeilingsPlan
from perfsuite.records.duplication import N_LEAST, KernelDuplication
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS, KernelCase

from ..opencl_children import visible_opencl
from .conftest import skipped_without_opencl


@pytest.fixture
def run(tmp_path: Path) -> RunPlan:
    return partial(run_worker, extra_environment=visible_opencl(tmp_path))


@pytest.fixture
def own(engine_cache: Path, tmp_path: Path, run: RunPlan) -> OwnKernels:
    own = OwnKernels(read_there=Path.read_bytes, log_dir=tmp_path, cache_dir=str(engine_cache))
    with skipped_without_opencl():
        own.run(DevicesPlan(platform=None), run)
    return own


#: Each kernel at 1, at primes, and one value on either side of its tile, vector or work-group.
AWKWARD = (
    *(f"gemm/{shape}/{type}" for shape in ("m1-n1-k1", "m31-n33-k32", "m33-n31-k37") for type in ("f32", "f16")),
    *(f"gemv_{type}/{shape}/{type}" for shape in ("m1-k1", "m17-k15", "m15-k577") for type in ("f32", "f16")),
    *(f"gemv_{type}/{shape}/{type}" for shape in ("m1-k32", "m17-k96", "m15-k544") for type in ("q8_0", "q4_0")),
    *(
        f"{name}/{shape}/f16"
        for name in ("bmm_kq", "bmm_kqv")
        for shape in (
            "heads1-kvheads1-tokens1-positions1-head1",
            "heads9-kvheads3-tokens3-positions17-head64",
            "heads4-kvheads2-tokens2-positions129-head13",
        )
    ),
    *(
        f"{name}/{shape}/f32"
        for name in ("rms_norm", "softmax")
        for shape in ("rows1-columns1", "rows3-columns17", "rows7-columns127", "rows2-columns129")
    ),
    *(
        f"{name}/{shape}/f32"
        for name in ("rope_normal", "rope_neox")
        for shape in ("tokens1-heads1-head2", "tokens7-heads3-head6", "tokens5-heads9-head64")
    ),
    *(f"{name}/count{count}/f32" for name in ("silu_mul", "add") for count in (1, 15, 17, 1009)),
    *(f"dequantize_{type}/count{count}/{type}" for type in ("q8_0", "q4_0") for count in (32, 96, 1056)),
    "get_rows/rows1-vocab1-columns1/f16",
    "get_rows/rows3-vocab7-columns7/f16",
    "get_rows/rows5-vocab11-columns577/f16",
)


def measured(
    own: OwnKernels, run: RunPlan, case_ids: Sequence[str], **changed: Any
) -> dict[str, tuple[KernelRecord, ...]]:
    """Return the records of each case: its own, or in pairs those of both sides."""
    plan = KernelPlan(
        case_ids=tuple(case_ids),
        platform=None,
        n_repetitions=5,
        budget_ns=10**10,
        seed=0,
        log_dir="/nowhere",
        n_threads=1,
    )
    payload = own.run(replace(plan, **changed), run)
    sides = [map(KernelRecord.from_plain, payload[side]) for side in ("old_kernels", "kernels") if payload[side]]
    return {records[-1].case_id: records for records in zip(*sides, strict=True)}


@pytest.fixture
def of_any_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a plan name kernels at any shape."""
    monkeypatch.setattr(
        "perfsuite.measure.launches.timing.standard_kernels", lambda case_ids: tuple(map(KernelCase.from_id, case_ids))
    )


@pytest.mark.long_but_first
@pytest.mark.usefixtures("of_any_shape")
@pytest.mark.parametrize("tuning", [CPU_TUNING, GPU_TUNING], ids=["processor", "GPU"])
def test_awkward_shapes(own: OwnKernels, run: RunPlan, monkeypatch: pytest.MonkeyPatch, tuning: Tuning) -> None:
    """Kernels compute every value of their output, and only those, at shapes that fit no tile."""
    monkeypatch.setattr("perfsuite.measure.launches.session.CPU_TUNING", tuning)
    found = measured(own, run, [f"kernel/{name}" for name in AWKWARD])
    wrong = {case_id: each.error_norm for case_id, (each,) in found.items() if not each.is_correct}
    assert wrong == {}
    assert len(found) == len(AWKWARD)


def test_standard_kernels(own: OwnKernels, run: RunPlan) -> None:
    found = measured(own, run, [case.case_id for case in STANDARD_KERNELS])
    assert len(found) == len(STANDARD_KERNELS)
    for case_id, (record,) in found.items():
        assert record.is_correct, f"{case_id}: error norm {record.error_norm:.3g}, tolerance {record.tolerance:.3g}"
        assert len(record.end_ns) == 5
        assert all(start <= end for start, end in zip(record.start_ns, record.end_ns, strict=True))
        assert list(record.queued_ns) == sorted(record.queued_ns)


ADD = "if (i < count) out[i] = a[i] + b[i];"


def planted(monkeypatch: pytest.MonkeyPatch, right: str, wrong: str) -> None:
    """Change the suite's own source of kernels."""

    def changed(name: str) -> str:
        assert name != "pointwise.cl" or own_source(name).count(right) == 1
        return own_source(name).replace(right, wrong)

    monkeypatch.setattr("perfsuite.measure.launches.timing.own_source", changed)


@pytest.mark.usefixtures("of_any_shape")
@pytest.mark.parametrize(
    ("wrong", "least_error"),
    [
        pytest.param("if (i < count && i != 40) out[i] = a[i] + b[i];", math.inf, id="forgets a value"),
        pytest.param("if (i <= count) out[i] = i < count ? a[i] + b[i] : 0.0f;", math.inf, id="writes behind"),
        pytest.param("if (i < count) out[i] = i == 40 ? a[i] - b[i] : a[i] + b[i];", 5e-5, id="has one wrong value"),
    ],
)
def test_forgotten_and_stray_values(
    own: OwnKernels, run: RunPlan, monkeypatch: pytest.MonkeyPatch, wrong: str, least_error: float
) -> None:
    """A kernel that forgets a value, or writes one behind its output, has an infinite error; no wrong one has times."""
    planted(monkeypatch, ADD, wrong)
    ((record,),) = measured(own, run, ["kernel/add/count1009/f32"]).values()
    assert (record.error_norm == math.inf) is (least_error == math.inf)
    assert record.tolerance <= least_error <= record.error_norm
    assert not record.is_correct
    assert record.end_ns == ()


@pytest.mark.usefixtures("of_any_shape")
def test_old_and_new_sources_take_turns(own: OwnKernels, run: RunPlan, tmp_path: Path) -> None:
    """Each side is compiled from its own sources and timed as often, a launch of one between launches of the other.

    Rounds go through all kernels, and a launch of one shape has its own buffers and arguments.
    """
    cases = ["kernel/add/count1009/f32", "kernel/add/count1010/f32"]
    asked = {"n_repetitions": 6, "n_rounds": 2, "order_seed": 1}
    leaders = drawn_leaders(1, n_rounds=2, n_kernels=2)
    found = measured(own, run, cases, old_kernels_dir=str(KERNELS_DIR), **asked)
    assert [(each.is_correct, each.n_per_round) for case_id in cases for each in found[case_id]] == [(True, 6)] * 4
    launched = [(at_ns, case_id, side) for case_id in cases for side in (0, 1) for at_ns in found[case_id][side].end_ns]
    assert [case_id for _, case_id, _ in sorted(launched)] == ([cases[0]] * 12 + [cases[1]] * 12) * 2
    order = [side for _, case_id, side in sorted(launched) if case_id == cases[0]]
    assert order == [side for first, _ in leaders for side in [first, 1 - first, 1 - first, first] * 3]
    old = Path(shutil.copytree(KERNELS_DIR, tmp_path / "kernels"))
    (old / "pointwise.cl").write_text(own_source("pointwise.cl").replace(ADD, ADD.replace("+", "-")))
    wrong, right = measured(own, run, cases, old_kernels_dir=str(old), **asked)[cases[1]]
    assert (wrong.is_correct, right.is_correct) == (False, True)
    assert wrong.end_ns == right.end_ns == ()


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("out[i] = a[i] + b[i]", "out[i] = a[i] + c[i]", "undeclared"),
        ("void add(", "void plus(", "INVALID_KERNEL_NAME"),
    ],
)
def test_a_kernel_that_does_not_build_leaves_its_log(
    own: OwnKernels, run: RunPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, right: str, wrong: str, words: str
) -> None:
    planted(monkeypatch, right, wrong)
    log = tmp_path / "pointwise-add.build.log"
    with pytest.raises(MeasurementError, match=rf"kernel add of pointwise.cl does not build for [^\n]*; see {log}$"):
        measured(own, run, ["kernel/add/count147456/f32"])
    assert words in log.read_text()


DUPLICATED = ("kernel/gemv_q4_0/m2048-k2048/q4_0", "kernel/gemv_q4_0/m8192-k2048/q4_0", "kernel/add/count147456/f32")


def test_each_kernel_has_its_rounds_whose_parts_fit_into_them(own: OwnKernels, run: RunPlan) -> None:
    """On a queue that runs in order, what executes takes no longer than the host waits for it."""
    plan = DuplicationPlan(case_ids=DUPLICATED, platform=None, n_rounds=2, budget_ns=1, seed=0, log_dir="/nowhere")
    found = [KernelDuplication.from_plain(each) for each in own.run(plan, run)["kernels"]]
    assert [each.name for each in found] == list(DUPLICATED)
    assert {(each.n_duplicates, len(each.rounds), each.problem) for each in found} == {(N_LEAST, 2, None)}
    assert {each.n_wanted for each in found} <= {50, 1000}
    for each in (each for kernel in found for each in kernel.rounds):
        assert 0 < each.base_execution_ns <= each.base_ns
        assert 0 < each.duplicates_occupied_ns <= each.duplicated_ns
        assert 0 < each.duplicates_execution_ns <= each.duplicated_ns


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
    "another factor": ("(1.0f / 1024)", "(1.0f / 1000)", "triad"),
    "chains": ("mad(acc[k], (FLOATS)(x),", "mad(acc[k], (FLOATS)(x) + 0.25f,", "fp32"),
    "a chain that is cut short": ("mad(acc[k], (FLOATS)(x), (FLOATS)(y))", "acc[k] + 0.0f * x * y", "fp32"),
    "a byte that is taken twice": ("BYTE(a, 3) * b3", "BYTE(a, 2) * b3", "int8"),
    "the dot product of another number": ("dot(as_char4(acc[k]), b)", "dot(as_char4(acc[k]), -b)", "int8"),
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
    other_way = "INT8" if "dot product" in fault else "DOT"
    monkeypatch.setitem(opencl_ceiling_work.EXTENSIONS, other_way, "cl_khr_nowhere")
    missing = {each.kind: each.missing for each in ceilings(own, run) if each.rate is None and each.kind != "f16"}
    assert list(missing) == [kind]
    if fault != "text":
        assert missing[kind].endswith("computes wrongly")
    else:
        assert missing[kind] == f"part FP32 of ceilings.cl does not build; see {tmp_path}/ceilings-fp3216.build.log"
        assert "nonsense" in (tmp_path / "ceilings-fp3216.build.log").read_text()


def test_a_device_without_an_extension(own: OwnKernels, run: RunPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without cl_khr_fp16 there is no F16, without the device's dot product bytes are multiplied one by one."""
    monkeypatch.setattr(opencl_ceiling_work, "_MOST_BYTES", 64 << 10)
    monkeypatch.setattr(opencl_ceiling_work, "EXTENSIONS", dict.fromkeys(("F16", "DOT"), "cl_khr_nowhere"))
    monkeypatch.setattr("perfsuite.measure.launches.ceilings.EXTENSIONS", opencl_ceiling_work.EXTENSIONS)
    found = {each.kind: each for each in ceilings(own, run)}
    assert found["f16"].missing == "the device has no cl_khr_nowhere"
    assert found["int8"].rate is not None
