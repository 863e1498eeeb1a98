"""The ceilings of a real device, measured in a process of its own, and the working sets of made-up ones."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, COMPUTE_KINDS, Ceiling, Resource
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.opencl_ceiling_work import standard_working_sets

from ..synthetic_opencl_backend import opencl_device
from .opencl_children import child_answer, visible_opencl

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
    return measured(environment, tmp_path_factory.mktemp("logs"), as_gpu=request.param, working_sets_bytes=SETS)


def test_every_use_of_every_working_set_is_measured(ceilings: tuple[Ceiling, ...]) -> None:
    bandwidths = [(each.kind, each.working_set_bytes) for each in ceilings if each.resource is Resource.BANDWIDTH]
    assert bandwidths == [(kind, size) for size in SETS for kind in BANDWIDTH_KINDS]
    for each in ceilings[: len(bandwidths)]:
        assert each.rate is not None, each.missing
        assert each.rate.n_rounds >= 5
        assert each.rate.median_per_s <= each.rate.best_per_s


@pytest.mark.long_but_first
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


@pytest.mark.long_but_first
@pytest.mark.parametrize("fault", FAULTS)
def test_a_kernel_that_computes_wrongly_is_not_timed(
    environment: Mapping[str, str], tmp_path: Path, fault: str
) -> None:
    """What a faulty kernel was to measure is missing unless another way does it, and the rest is there."""
    kernels_dir = changed_kernels(tmp_path, *((good, bad) for good, bad, _ in FAULTS[fault]))
    other_way = "INT8" if "the dot product" in fault else "DOT"
    ceilings = measured(environment, tmp_path, kernels_dir=kernels_dir, without=[other_way])
    missing = {each.kind: each.missing for each in ceilings if each.rate is None and each.kind != "f16"}
    assert list(missing) == [kind for _, _, kind in FAULTS[fault]]
    assert "computes wrongly" in missing[FAULTS[fault][0][2]]


def test_a_device_without_an_extension(environment: Mapping[str, str], tmp_path: Path) -> None:
    """Without cl_khr_fp16 there is no F16, without the device's dot product bytes are multiplied one by one."""
    ceilings = measured(environment, tmp_path, without=["F16", "DOT"])
    arithmetic = {each.kind: each for each in ceilings if each.resource is Resource.COMPUTE}
    assert arithmetic["f16"].missing == "the device has no cl_khr_nowhere"
    assert arithmetic["int8"].rate is not None


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
