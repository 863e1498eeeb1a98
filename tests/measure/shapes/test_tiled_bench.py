"""The tiled kernels on a real device, in processes of their own; and what the bench refuses, on made-up devices."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

from perfsuite.errors import MeasurementError, ShapeError
from perfsuite.expectation.shapes.floor import INNER_STEP
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.shapes import tiled_bench
from perfsuite.measure.shapes.meter import Deviation
from perfsuite.measure.shapes.shape_inputs import draw_inputs
from perfsuite.measure.shapes.tiled_bench import TiledBench, TiledOperation
from perfsuite.measure.shapes.tiled_launches import (
    STEP,
    kernels_digest,
    local_bytes,
    local_size,
)
from perfsuite.testing.planted_kernels import Fault, plant
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation, OperationShape, block_values
from perfsuite.workload.shapes.shape_case import TILES, VECTORS, Tiling

from ...synthetic_opencl_backend import opencl_device
from ...synthetic_shapes import tiled
from ..opencl_children import child_answer, visible_opencl

SHAPES = (
    "gemm/m65-n130-k33/f32",
    "bmm/b3-m2-n65-k64/q8_0",
    "gemv/n65-k256/q4_k",
    "attention/heads6-kvheads2-head64-context65/f16",
)
TILINGS = [Tiling(tile=tile, vector=vector) for tile in TILES for vector in VECTORS if vector <= tile]


def _shape(text: str) -> OperationShape:
    return OperationShape.from_id(text)


def test_the_step_is_that_of_the_expectation() -> None:
    """The kernels step along the inner dimension by what the expectation pads it to."""
    assert STEP == INNER_STEP


@pytest.mark.parametrize("text", SHAPES)
def test_work_groups_fit_small_devices(text: str) -> None:
    """A work-group has no more than 256 items and 32 KiB of local memory, and one item for VECTOR outputs along n."""
    for tiling in TILINGS:
        items = local_size(_shape(text), tiling)
        assert prod(items) <= 256, tiling
        assert items[0] * tiling.vector == tiling.tile
        assert local_bytes(_shape(text), tiling) <= 32 * 1024, tiling


def test_other_sources_have_another_digest(tmp_path: Path) -> None:
    """What was accepted of one copy of the kernels does not excuse another; an exact copy is the same."""
    copied, changed = (Path(shutil.copytree(KERNELS_DIR, tmp_path / name)) for name in ("copied", "changed"))
    with (changed / "pieces.cl").open("a") as source:
        source.write("// changed")
    assert kernels_digest(copied) == kernels_digest(KERNELS_DIR)
    assert kernels_digest(changed) != kernels_digest(KERNELS_DIR)
    assert kernels_digest(tmp_path / "none") != kernels_digest(KERNELS_DIR)


#: Verifies cases before and after a run, and says by how much each is off.
CHILD = """
import json, sys
from pathlib import Path
from perfsuite.errors import OpenClError
from perfsuite.measure.opencl_platform import choose_device
from perfsuite.measure.shapes.tiled_bench import TiledBench
from perfsuite.workload.shapes.shape_case import ShapeCase

log_dir, kernels_dir, *case_ids = sys.argv[1:]
answer = {}
try:
    bench = TiledBench(choose_device(None), log_dir=Path(log_dir), kernels_dir=Path(kernels_dir))
    for case_id in case_ids:
        case = ShapeCase.from_id(case_id)
        assert bench.problem(case) is None
        operation = bench.bound(case, seed=7)
        before = operation.verify()
        assert operation.run_ns() > 0
        after = operation.verify()
        assert (before.error_norm, before.tolerance) == (after.error_norm, after.tolerance)
        answer[case_id] = {"error_norm": after.error_norm, "tolerance": after.tolerance}
        operation.close()
except OpenClError as error:
    answer = {"error": str(error)}
print(json.dumps(answer))
"""

#: Weights times the unit matrix, compared bit by bit with what they are dequantised to.
UNIT_CHILD = """
import json, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from perfsuite.measure.kernel_references import dequantize
from perfsuite.measure.opencl import KernelBench
from perfsuite.measure.opencl_platform import choose_device
from perfsuite.measure.shapes.shape_inputs import draw_inputs
from perfsuite.measure.shapes.tiled_launches import tiled_launch
from perfsuite.workload.shapes.operation_shape import OperationShape
from perfsuite.workload.shapes.shape_case import Tiling

bench = KernelBench(choose_device(None), log_dir=Path(sys.argv[1]))
n_different = {}
for type in sys.argv[2:]:
    inputs = draw_inputs(OperationShape.from_id(f"gemm/m512-n96-k512/{type}"), seed=7)
    unit = replace(inputs, activations=np.eye(512, dtype=np.float32))
    out = bench.placed(tiled_launch(unit, Tiling(tile=8, vector=8)), n_outputs=inputs.shape.n_outputs).outputs()
    n_different[type] = int((out.reshape(512, 96).T != dequantize(inputs.stored[0], type).astype(np.float32)).sum())
print(json.dumps(n_different))
"""

#: Every type with one of the tilings, and every tile and vector with one of the types.
TYPED = [((32, 4), type) for type in STORED_TYPES]
CUT = [(tiling, "f32") for tiling in ((8, 1), (16, 2), (16, 16), (64, 1), (64, 16))]
MIXED = [((8, 8), "f16"), ((64, 8), "q8_0")]


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, log_dir: str) -> Mapping[str, str]:
    environment = visible_opencl(tmp_path_factory.mktemp("cache"))
    answer = child_answer(environment, CHILD, log_dir, str(KERNELS_DIR))
    if "error" in answer:
        pytest.skip(answer["error"])
    return environment


Deviations = Callable[..., dict[str, Deviation]]


@pytest.fixture
def deviations(environment: Mapping[str, str], log_dir: str) -> Deviations:
    """How to verify cases of the tiled kernels, with kernels of any directory."""

    def measured(case_ids: Sequence[str], kernels_dir: Path = KERNELS_DIR) -> dict[str, Deviation]:
        answer = child_answer(environment, CHILD, log_dir, str(kernels_dir), *case_ids)
        assert list(answer) == list(case_ids), answer
        return {case_id: Deviation(**each) for case_id, each in answer.items()}

    return measured


def _case_ids(operation: Operation, tile: int, vector: int, type: str) -> list[str]:
    """Shapes at 1, about one tile and beyond several, with inner sizes of one block, about a step and several."""
    unit = block_values(type)
    inner = (1, 31, 33, 97) if unit == 1 else (unit, 3 * unit)
    outer = (1, tile - 1, tile, tile + 1, 2 * tile + 3)
    sizes: dict[Operation, Sequence[Mapping[str, int]]] = {
        Operation.GEMM: [{"m": m, "n": n, "k": k} for m, n in zip(outer, outer[::-1], strict=True) for k in inner],
        Operation.BMM: [{"b": 3, "m": 2, "n": n, "k": k} for n in outer for k in inner],
        Operation.GEMV: [{"n": n, "k": k} for n in outer for k in inner],
        Operation.ATTENTION: [
            {"heads": heads, "kvheads": kvheads, "head": head, "context": context}
            for (heads, kvheads), context in zip(((1, 1), (6, 2), (3, 3), (4, 1), (6, 3)), outer, strict=True)
            for head in inner
        ],
    }
    shapes = [OperationShape.of_sizes(operation, type, each) for each in sizes[operation]]
    return [f"shape/tiled/{shape.id}/tile{tile}-vector{vector}" for shape in shapes]


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("tiling", "type"), [*TYPED, *(pytest.param(*each, marks=pytest.mark.long) for each in (*CUT, *MIXED))], ids=str
)
def test_every_shape_is_right(deviations: Deviations, tiling: tuple[int, int], type: str) -> None:
    case_ids = [case_id for operation in Operation for case_id in _case_ids(operation, *tiling, type)]
    wrong = {case_id: each for case_id, each in deviations(case_ids).items() if not each.is_correct}
    assert wrong == {}


def test_stored_values_are_exact(environment: Mapping[str, str], log_dir: str) -> None:
    """Each stored type is dequantised bit by bit as gguf does: weights times the unit matrix are the weights."""
    assert child_answer(environment, UNIT_CHILD, log_dir, *STORED_TYPES) == dict.fromkeys(STORED_TYPES, 0)


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("source", "old", "new", "shape", "is_stray"),
    [
        pytest.param("tiled.cl", "if (this_n < n) row", "row", "gemv/n13-k5", True, id="writes behind the output"),
        pytest.param("tiled.cl", "if (this_n < n) row", "if (this_n < n - 1) row", "gemv/n13-k5", True, id="forgets"),
        pytest.param("tiled.cl", "first_k < k;", "first_k < k - 1;", "gemv/n64-k1025", False, id="term"),
        pytest.param(
            "tiled_attention.cl",
            "sum *= correction;",
            "",
            "attention/heads2-kvheads1-head64-context33",
            False,
            id="correction of the sum",
        ),
    ],
)
def test_a_wrong_kernel_is_reported(
    deviations: Deviations, tmp_path: Path, source: str, old: str, new: str, shape: str, is_stray: bool
) -> None:
    """A store beyond an edge, or a value that is left out, is off by infinity, though it ran before."""
    kernels = Path(shutil.copytree(KERNELS_DIR, tmp_path / "kernels"))
    text = (kernels / source).read_text()
    assert text.count(old) == 1
    (kernels / source).write_text(text.replace(old, new))
    (deviation,) = deviations([f"shape/tiled/{shape}/f32/tile8-vector8"], kernels).values()
    assert deviation.tolerance < deviation.error_norm
    assert (deviation.error_norm == math.inf) == is_stray
    assert not deviation.is_correct


def test_planted_wrong_n(deviations: Deviations, tmp_path: Path) -> None:
    sizes = (1, 30, 31, 32, 33, 63, 64, 95)
    case_ids = [f"shape/tiled/bmm/b2-m1-n{n}-k64/f16/tile16-vector4" for n in sizes]
    found = deviations(case_ids, plant(tmp_path, Fault.WRONG_N))
    assert [each.is_correct for each in found.values()] == [n % 32 != 31 for n in sizes]
    assert all(math.isfinite(each.error_norm) for each in found.values())


DEVICE = replace(opencl_device("gpu"), platform_name="Made-up OpenCL", device_name="Made-up GPU", compute_units=4)


def _bench(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> TiledBench:
    roomy = {
        "max_work_group_size": 256,
        "max_work_item_sizes": [256, 256, 64],
        "max_mem_alloc_size": 1 << 20,
    }
    queue = SimpleNamespace(device=SimpleNamespace(**{**roomy, **limits}))
    monkeypatch.setattr(tiled_bench, "KernelBench", lambda *given, **named: SimpleNamespace(queue=queue))
    memory = {"local_memory_bytes": limits.get("local_mem_size", 1 << 15)}
    memory["global_memory_bytes"] = limits.get("global_mem_size", 1 << 21)
    return TiledBench(replace(DEVICE, **memory), log_dir=Path("logs"))


@pytest.mark.parametrize(
    ("shape", "limits", "words"),
    [
        ("gemv/n1-k1/f32", {"max_work_item_sizes": [32, 32, 32]}, "along axis 0: 64; expected 32 at most"),
        ("gemm/m1-n1-k1/f32", {"local_mem_size": 1 << 13}, "bytes of local memory: 16384; expected 8192 at most"),
        ("gemv/n1024-k257/f32", {}, "bytes of a buffer: 1052672; expected 1048576 at most"),
        ("gemv/n1073741825-k1/f32", {}, "the largest size: 1073741825; expected 1073741824 at most"),
    ],
)
def test_problem(monkeypatch: pytest.MonkeyPatch, shape: str, limits: Mapping[str, Any], words: str) -> None:
    bench = _bench(monkeypatch, **limits)
    case = tiled(shape, vector=1)
    problem = bench.problem(case)
    assert problem is not None
    assert problem.endswith(words)
    with pytest.raises(ShapeError, match=words):
        bench.bound(case, seed=0)


@pytest.mark.parametrize("end", [1000, 999])
def test_a_clock_that_stands_still(end: int) -> None:
    times = {cl.profiling_info.START: 1000, cl.profiling_info.END: end}
    event = SimpleNamespace(get_profiling_info=times.__getitem__)
    placed: Any = SimpleNamespace(bind=lambda: None, run=lambda: event)
    inputs: Any = None
    case = tiled("gemv/n1-k1/f32")
    with pytest.raises(MeasurementError, match=rf"gemv/n1-k1/f32/tile64-vector8: START is 1000 ns and END {end} ns"):
        TiledOperation(case, inputs, placed).run_ns()


@pytest.mark.parametrize(("times_ns", "expected_ns"), [([7], 7), ([9, 5], 5), ([400, 12, 10, 900], 10)])
def test_a_sample_is_the_fastest_launch(times_ns: list[int], expected_ns: int) -> None:
    """What disturbs all launches but one does not show."""

    class Listed(TiledOperation):
        def run_ns(self) -> int:
            return times_ns.pop(0)

    case = tiled("gemv/n1-k1/f32")
    operation = Listed(case, draw_inputs(case.shape, seed=0), None)  # type: ignore[arg-type]
    assert list(TiledBench.samples(None, [operation], len(times_ns))) == [expected_ns]  # type: ignore[arg-type]
