"""The kernels on a real device, each measured in a process of its own; skipped where there is no OpenCL."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_repetition import drawn_leaders, launches_within, least_launches
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS

from .opencl_children import child_answer, visible_opencl

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

CHILD = """
import json, sys
from pathlib import Path
from perfsuite.errors import OpenClError
from perfsuite.measure import kernel_launches
from perfsuite.measure.opencl import KernelBench
from perfsuite.measure.opencl_platform import choose_device
from perfsuite.workload.kernel_catalog import KernelCase

wanted = json.loads(sys.argv[1])
try:
    folders = {name: Path(wanted[name]) for name in ("kernels_dir", "log_dir")}
    cases = [KernelCase.from_id(case_id) for case_id in wanted["case_ids"]]
    tuning = wanted["tuning"] and getattr(kernel_launches, wanted["tuning"])
    bench = KernelBench(choose_device(None), tuning=tuning, **folders)
    timed = {"repetitions": wanted["repetitions"], "seed": 0, "budget_ns": 10**10, "leaders": wanted["leaders"]}
    sides = bench.measure(cases, **timed, old_kernels_dir=wanted["old"] and Path(wanted["old"]))
    pairs = zip(*sides) if wanted["old"] else zip(sides[1])
    answer = {"records": [[record.to_plain() for record in each] for each in pairs]}
except OpenClError as error:
    answer = {"error": str(error)}
print(json.dumps(answer))
"""


def _run(environment: Mapping[str, str], case_ids: Sequence[str], **changed: Any) -> dict[str, Any]:
    wanted = {
        "case_ids": case_ids,
        "tuning": "CPU_TUNING",
        "kernels_dir": str(KERNELS_DIR),
        "repetitions": 0,
        "old": None,
        "leaders": [],
        **changed,
    }
    answer: dict[str, Any] = child_answer(environment, CHILD, json.dumps(wanted))
    return answer


def _measure(environment: Mapping[str, str], case_ids: Sequence[str], **changed: Any) -> dict[str, KernelRecord]:
    return {case_id: records[-1] for case_id, records in _sides(environment, case_ids, **changed).items()}


def _sides(environment: Mapping[str, str], case_ids: Sequence[str], **changed: Any) -> dict[str, list[KernelRecord]]:
    """Return the records of each case: its own, or in pairs those of both sides."""
    answer = _run(environment, case_ids, **changed)
    assert "error" not in answer, answer["error"]
    found = [[KernelRecord.from_plain(plain) for plain in sides] for sides in answer["records"]]
    return {sides[0].case_id: sides for sides in found}


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, log_dir: str) -> Mapping[str, str]:
    environment = visible_opencl(tmp_path_factory.mktemp("cache"))
    answer = _run(environment, [], log_dir=log_dir)
    if "error" in answer:
        pytest.skip(answer["error"])
    return environment


@pytest.mark.long_but_first
@pytest.mark.parametrize("tuning", ["CPU_TUNING", "GPU_TUNING"])
def test_awkward_shapes(environment: Mapping[str, str], log_dir: str, tuning: str) -> None:
    """Kernels compute every value of their output, and only those, at shapes that fit no tile."""
    records = _measure(environment, [f"kernel/{name}" for name in AWKWARD], log_dir=log_dir, tuning=tuning)
    wrong = {id: f"{each.error_norm:.3g} > {each.tolerance:.3g}" for id, each in records.items() if not each.is_correct}
    assert wrong == {}
    assert len(records) == len(AWKWARD)


@pytest.fixture(scope="module")
def standard(environment: Mapping[str, str], log_dir: str) -> dict[str, KernelRecord]:
    return _measure(environment, [case.case_id for case in STANDARD_KERNELS], log_dir=log_dir, repetitions=5)


@pytest.mark.parametrize("case_id", [case.case_id for case in STANDARD_KERNELS])
def test_standard_kernel(standard: dict[str, KernelRecord], case_id: str) -> None:
    record = standard[case_id]
    assert record.is_correct, f"error norm {record.error_norm:.3g}, tolerance {record.tolerance:.3g}"
    assert len(record.end_ns) == 5
    assert all(start <= end for start, end in zip(record.start_ns, record.end_ns, strict=True))
    assert list(record.queued_ns) == sorted(record.queued_ns)


def _planted(tmp_path: Path, change: tuple[str, str]) -> str:
    kernels = tmp_path / "kernels"
    shutil.copytree(KERNELS_DIR, kernels)
    source = kernels / "pointwise.cl"
    assert source.read_text().count(change[0]) == 1
    source.write_text(source.read_text().replace(*change))
    return str(kernels)


ADD = "if (i < count) out[i] = a[i] + b[i];"


@pytest.mark.parametrize(
    ("planted", "least_error"),
    [
        pytest.param("if (i < count && i != 40) out[i] = a[i] + b[i];", math.inf, id="forgets a value"),
        pytest.param("if (i <= count) out[i] = i < count ? a[i] + b[i] : 0.0f;", math.inf, id="writes behind"),
        pytest.param("if (i < count) out[i] = i == 40 ? a[i] - b[i] : a[i] + b[i];", 5e-5, id="has one wrong value"),
    ],
)
def test_forgotten_and_stray_values(
    environment: Mapping[str, str], log_dir: str, tmp_path: Path, planted: str, least_error: float
) -> None:
    """A kernel that forgets a value, or writes one behind its output, has an infinite error; no wrong one has times."""
    kernels_dir = _planted(tmp_path, (ADD, planted))
    case_id = "kernel/add/count1009/f32"
    record = _measure(environment, [case_id], log_dir=log_dir, kernels_dir=kernels_dir, repetitions=5)[case_id]
    assert (record.error_norm == math.inf) is (least_error == math.inf)
    assert record.tolerance <= least_error <= record.error_norm
    assert not record.is_correct
    assert record.end_ns == ()


def test_old_and_new_sources_take_turns(environment: Mapping[str, str], log_dir: str, tmp_path: Path) -> None:
    """Each side is compiled from its own sources and timed as often, a launch of one between launches of the other.

    Rounds go through all kernels, and a launch of one shape has its own buffers and arguments.
    """
    cases = ["kernel/add/count1009/f32", "kernel/add/count1010/f32"]
    old = _planted(tmp_path, (ADD, "if (i < count) out[i] = a[i] - b[i];"))
    more = {"log_dir": log_dir, "repetitions": 6, "leaders": [[1, 0], [0, 0]]}
    found = _sides(environment, cases, old=str(KERNELS_DIR), **more)
    assert [(each.is_correct, each.n_per_round) for case_id in cases for each in found[case_id]] == [(True, 6)] * 4
    launched = [(at_ns, case_id, side) for case_id in cases for side in (0, 1) for at_ns in found[case_id][side].end_ns]
    assert [case_id for _, case_id, _ in sorted(launched)] == ([cases[0]] * 12 + [cases[1]] * 12) * 2
    order = [side for _, case_id, side in sorted(launched) if case_id == cases[0]]
    assert order == [1, 0, 0, 1] * 3 + [0, 1, 1, 0] * 3
    wrong, right = _sides(environment, cases, old=old, **more)[cases[1]]
    assert (wrong.is_correct, right.is_correct) == (False, True)
    assert wrong.end_ns == right.end_ns == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [(("out[i] = a[i] + b[i]", "out[i] = a[i] + c[i]"), "undeclared"), (("void add(", "void plus("), "no kernel add")],
)
def test_build_failure(environment: Mapping[str, str], tmp_path: Path, change: tuple[str, str], words: str) -> None:
    folders = {"kernels_dir": _planted(tmp_path, change), "log_dir": str(tmp_path / "logs")}
    answer = _run(environment, ["kernel/add/count1/f32"], **folders)
    assert "kernel add of pointwise.cl does not build for" in answer["error"]
    assert "\n" not in answer["error"]
    assert words in Path(answer["error"].rsplit("see ", 1)[1]).read_text()


@pytest.mark.parametrize(
    ("launch_ns", "n_rounds", "n_sides", "n_launches"),
    [
        (1, 16, 2, 20),
        (100, 16, 2, 10),
        (141, 16, 2, 6),
        (10**6, 16, 2, 2),
        (10**6, 1, 1, 5),
        (141, 1, 1, 7),
        (0, 1, 1, 20),
    ],
)
def test_launches_of_a_round(launch_ns: int, n_rounds: int, n_sides: int, n_launches: int) -> None:
    """A kernel is launched for its share of the time, 20 times at most, and both sides lead equally often."""
    least = least_launches(n_rounds)
    assert launches_within(1000.0, launch_ns, least=least, most=20, n_sides=n_sides) == n_launches


def test_leaders_are_drawn() -> None:
    leaders = drawn_leaders(3, n_rounds=15, n_kernels=9)
    assert leaders == drawn_leaders(3, n_rounds=15, n_kernels=9) != drawn_leaders(4, n_rounds=15, n_kernels=9)
    for first, second in zip(leaders[::2], leaders[1::2], strict=False):
        assert [1 - leader for leader in first] == list(second)
    assert len(leaders) == 15
    assert len(set(map(sum, leaders))) > 2
