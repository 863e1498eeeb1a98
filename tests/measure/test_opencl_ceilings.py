"""The ceilings of a real device, measured in a process of its own, and the working sets of made-up ones."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, Ceiling, Resource
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.launch import run_worker
from perfsuite.measure.opencl_ceiling_work import TRIED_PASSES, chained, small_numbers, standard_working_sets, streamed
from perfsuite.measure.plan import OpenClCeilingsPlan
from perfsuite.measure.worker import _RUNNERS

from ..synthetic_opencl_backend import opencl_device
from .opencl_children import child_answer, visible_opencl


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("read", [1, 2, 1024, 2048, 5, 6, 7, 8]),
        ("copy", [1, 2, 1, 2, 5, 6, 7, 8]),
        ("triad", [1, 2, 1024, 2048, 2, 4, 7, 8]),
    ],
)
def test_streams_write_their_last_array(kind: str, after: list[float]) -> None:
    """A read writes nothing, a copy its second array, a triad its third, and nothing behind it."""
    before = np.array([1, 2, 1024, 2048, 5, 6, 7, 8], dtype=np.float32)
    assert streamed(before, kind, 2).tolist() == after


def test_chains_of_floats() -> None:
    """From 0 a chain of acc / 2 + 1 goes to 1, 1.5, 1.75; from s it ends s / 8 higher."""
    assert TRIED_PASSES == 3
    assert chained("FP32", 1, 1, 4).tolist() == [4 * 1.75 + (0 + 1 + 2 + 3) / 8]
    assert chained("F16", 10, 2, 4)[9] == 8 * 1.75 + sum(1 + k + lane for k in (0, 1) for lane in range(4)) / 8


def test_chains_of_bytes() -> None:
    """Each step adds the product of the four signed bytes with -5, 2, -3, 1; the starts spread over all four."""

    def step(value: int) -> int:
        signed = [byte - 256 if byte > 127 else byte for byte in (value % 2**32).to_bytes(4, "little")]
        return value + sum(byte * weight for byte, weight in zip(signed, (-5, 2, -3, 1), strict=True))

    assert step(1) == -4
    assert step(0x7F000000) == 0x7F000000 + 127
    expected = sum(step(step(step(lane * 0x9E3779B1))) for lane in range(4)) % 2**32
    assert chained("INT8", 1, 1, 4).tolist() == [expected]
    assert chained("DOT", 1, 1, 4).tolist() == [expected]


def test_small_numbers_are_exact_in_16_bits() -> None:
    """Every number and its sum with a 1024th of another is a float that loses nothing."""
    numbers = small_numbers(1000)
    assert numbers.max() == 250
    assert (numbers.astype(np.float16) == numbers).all()
    assert (numbers + numbers[::-1] / np.float32(1024) == numbers.astype(np.float64) + numbers[::-1] / 1024).all()


KIB, MIB, GIB = 2**10, 2**20, 2**30
SETS = (64 * KIB, 1 * MIB)

CHILD = """
import json, sys
from pathlib import Path
from perfsuite.measure import opencl_ceiling_work as work
from perfsuite.measure.opencl_ceilings import measure_opencl_ceilings

wanted = json.loads(sys.argv[1])
for part in wanted.pop("without"):
    work.EXTENSIONS[part] = "cl_khr_nowhere"
if wanted.pop("as_gpu"):
    work._CPU_SHAPE = work._GPU_SHAPE
folders = {name: Path(wanted.pop(name)) for name in ("log_dir", "kernels_dir")}
ceilings = measure_opencl_ceilings(platform=None, **folders, **wanted)
print(json.dumps([ceiling.to_plain() for ceiling in ceilings]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of processes that see OpenCL; Intel's runtime is a dependency where there may be no other."""
    environment = visible_opencl(tmp_path_factory.mktemp("cache"))
    if platform.machine() != "x86_64" and "OCL_ICD_VENDORS" not in environment:
        pytest.skip("no OpenCL runtime is a dependency on this processor")
    return environment


def measured(environment: Mapping[str, str], log_dir: Path, **changed: Any) -> tuple[Ceiling, ...]:
    wanted = {
        "budget_ms": 100,
        "working_sets_bytes": SETS[:1],
        "log_dir": str(log_dir),
        "kernels_dir": str(KERNELS_DIR),
        "without": [],
        "as_gpu": False,
        **changed,
    }
    found = child_answer(environment, CHILD, json.dumps(wanted))
    return tuple(Ceiling.from_plain(plain) for plain in found)


@pytest.fixture(scope="module", params=[False, True], ids=["in chunks", "neighbouring items"])
def ceilings(
    environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[Ceiling, ...]:
    """The ceilings, with the work cut for a CPU and for a GPU."""
    return measured(environment, tmp_path_factory.mktemp("logs"), as_gpu=request.param, working_sets_bytes=SETS)


def test_every_use_of_every_working_set_is_measured(ceilings: tuple[Ceiling, ...]) -> None:
    bandwidths = [(each.kind, each.working_set_bytes) for each in ceilings if each.resource is Resource.BANDWIDTH]
    assert bandwidths == [(kind, size) for size in SETS for kind in BANDWIDTH_KINDS]
    for each in ceilings[: len(bandwidths)]:
        assert each.rate is not None, each.missing
        assert each.rate.n_rounds >= 5
        assert each.rate.median_per_s <= each.rate.best_per_s


def test_every_type_of_number_is_measured_or_says_why_not(ceilings: tuple[Ceiling, ...]) -> None:
    arithmetic = {each.kind: each for each in ceilings if each.resource is Resource.COMPUTE}
    assert tuple(arithmetic) == COMPUTE_KINDS
    assert arithmetic["fp32"].rate is not None
    assert arithmetic["int8"].rate is not None
    assert arithmetic["f16"].rate is not None or arithmetic["f16"].missing == "the device has no cl_khr_fp16"
    ((name, n_threads),) = {(each.processor, each.n_threads) for each in ceilings}
    assert name not in ("", "cpu")
    assert n_threads is None


#: In the source, for a stream and for a chain: what is right, what is wrong, and what that measures.
FAULTS = {
    "a read without its rest, a chain that is cut short": (
        ("i += step) a += memory[i];", "i += step) a += 0.0f;", "read"),
        ("mad(acc[k], (FLOATS)(x), (FLOATS)(y))", "acc[k] + 0.0f * x * y", "fp32"),
    ),
    "a copy that leaves a vector out, a byte that is taken twice": (
        ("to[i + 2 * step] = c;", "", "copy"),
        ("BYTE(a, 3) * b3", "BYTE(a, 2) * b3", "int8"),
    ),
    "a copy that writes behind its array, a chain of another factor": (
        ("to = memory + count;", "to = memory + count; to[count] = 0.0f;", "copy"),
        ("mad(acc[k], (FLOATS)(x),", "mad(acc[k], (FLOATS)(x) + 0.25f,", "fp32"),
    ),
    "a triad of another factor, the dot product of another number": (
        ("(1.0f / 1024)", "(1.0f / 1000)", "triad"),
        ("dot(as_char4(acc[k]), b)", "dot(as_char4(acc[k]), -b)", "int8"),
    ),
}


def changed_kernels(folder: Path, *changes: tuple[str, str]) -> str:
    """Return a folder with the source of the kernels in which some texts are replaced by others."""
    text = (KERNELS_DIR / "ceilings.cl").read_text()
    for good, bad in changes:
        assert good in text
        text = text.replace(good, bad, 1)
    (folder / "kernels").mkdir()
    (folder / "kernels" / "ceilings.cl").write_text(text)
    return str(folder / "kernels")


def missing_reasons(ceilings: tuple[Ceiling, ...]) -> dict[str, str]:
    """Return why there is no rate, by kind; F16 is left out, which the device may lack."""
    return {each.kind: each.missing for each in ceilings if each.rate is None and each.kind != "f16"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_kernel_that_computes_wrongly_is_not_timed(
    environment: Mapping[str, str], tmp_path: Path, fault: str
) -> None:
    """What a faulty kernel was to measure is missing unless another way does it, and the rest is there."""
    kernels_dir = changed_kernels(tmp_path, *((good, bad) for good, bad, _ in FAULTS[fault]))
    other_way = "INT8" if "the dot product" in fault else "DOT"
    ceilings = measured(environment, tmp_path, kernels_dir=kernels_dir, without=[other_way])
    missing = missing_reasons(ceilings)
    assert list(missing) == [kind for _, _, kind in FAULTS[fault]]
    assert "computes wrongly" in missing[FAULTS[fault][0][2]]


def test_a_part_that_does_not_build_names_its_log(environment: Mapping[str, str], tmp_path: Path) -> None:
    kernels_dir = changed_kernels(tmp_path, ("ENTRY chains_fp32(", "ENTRY chains_fp32(nonsense"))
    ceilings = measured(environment, tmp_path, kernels_dir=kernels_dir)
    missing = missing_reasons(ceilings)
    assert list(missing) == ["fp32"]
    assert missing["fp32"].startswith("part FP32 of ceilings.cl does not build; see ")
    assert "nonsense" in Path(missing["fp32"].rsplit("see ", 1)[1]).read_text()


def test_a_device_without_an_extension(environment: Mapping[str, str], tmp_path: Path) -> None:
    """Without cl_khr_fp16 there is no F16, without the device's dot product bytes are multiplied one by one."""
    ceilings = measured(environment, tmp_path, without=["F16", "DOT"])
    arithmetic = {each.kind: each for each in ceilings if each.resource is Resource.COMPUTE}
    assert arithmetic["f16"].missing == "the device has no cl_khr_nowhere"
    assert arithmetic["int8"].rate is not None


def test_a_plan_is_run_by_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ceiling = Ceiling(processor="GPU", resource=Resource.COMPUTE, kind="f16", missing="no F16")
    asked: list[dict[str, Any]] = []
    measure = "perfsuite.measure.opencl_ceilings.measure_opencl_ceilings"
    monkeypatch.setattr(measure, lambda **named: asked.append(named) or [ceiling])
    payload = _RUNNERS[OpenClCeilingsPlan](OpenClCeilingsPlan(platform="P", budget_ms=7, log_dir=str(tmp_path)))
    assert asked == [{"platform": "P", "budget_ms": 7, "log_dir": tmp_path}]
    assert [Ceiling.from_plain(plain) for plain in payload["ceilings"]] == [ceiling]
    assert payload["contention"]["wall_ns"] >= 0


def test_no_such_platform(environment: Mapping[str, str], tmp_path: Path) -> None:
    plan = OpenClCeilingsPlan(platform="Nowhere", budget_ms=100, log_dir=str(tmp_path))
    with pytest.raises(MeasurementError, match="expected a platform named like 'Nowhere'"):
        run_worker(plan, extra_environment=environment)


DEVICE = opencl_device("gpu")


@pytest.mark.parametrize(
    ("global_bytes", "allocation_bytes", "last"),
    [
        (24 * GIB, 12 * GIB, (64 * MIB, 256 * MIB, 512 * MIB)),
        (2 * GIB, 1 * GIB, (16 * MIB, 64 * MIB, 256 * MIB)),
        (24 * GIB, 100 * MIB + 1, (16 * MIB, 64 * MIB, 100 * MIB)),
        (MIB // 4, MIB, (64 * KIB,)),
    ],
)
def test_the_ladder_ends_where_memory_does(global_bytes: int, allocation_bytes: int, last: tuple[int, ...]) -> None:
    """Working sets are powers of four from 64 KiB to 512 MiB, an eighth of the memory, or the largest allocation."""
    sets = standard_working_sets(replace(DEVICE, global_memory_bytes=global_bytes), allocation_bytes)
    assert sets[:3] == (64 * KIB, 256 * KIB, 1 * MIB)[: len(sets)]
    assert sets[-3:] == last
