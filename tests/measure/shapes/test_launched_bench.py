"""The tiled kernels by the native worker, on a real device; skipped where there is no OpenCL."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_references import dequantize
from perfsuite.measure.launch import run_worker
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.plan import DevicesPlan, ShapesPlan
from perfsuite.measure.shapes.launched_bench import LaunchedDevice, LaunchedSession
from perfsuite.measure.shapes.meter import Deviation
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.sampler import Sampler
from perfsuite.measure.shapes.shape_references import draw_inputs
from perfsuite.measure.shapes.tiled_launches import kernels_digest
from perfsuite.testing.planted_kernels import Fault, plant
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation, OperationShape, block_values
from perfsuite.workload.shapes.shape_case import ShapeCase

from ...synthetic_shapes import tiled
from ..conftest import waiting_worker
from ..launches.conftest import skipped_without_opencl
from ..opencl_children import visible_opencl

CASES = [
    tiled("gemm/m65-n130-k33/f32", tile=32),
    tiled("bmm/b3-m2-n65-k64/q8_0", tile=16),
    tiled("gemv/n65-k256/q4_k", tile=8),
    tiled("attention/heads6-kvheads2-head64-context65/f16", tile=32, vector=4),
]

#: Verifies cases by their ids.
Deviations = Callable[..., dict[str, Deviation]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return visible_opencl(tmp_path_factory.mktemp("vendors"))


@pytest.fixture(scope="module")
def there(
    environment: Mapping[str, str], engine_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> LaunchedDevice:
    logs = tmp_path_factory.mktemp("logs")
    own = OwnKernels(read_there=Path.read_bytes, log_dir=logs, cache_dir=str(engine_cache))
    run = partial(run_worker, extra_environment=environment)
    with skipped_without_opencl():
        own.run(DevicesPlan(platform=None), run)
    device, limits = own.device(None, run)
    return LaunchedDevice(device=device, limits=limits, log_dir=logs)


@contextmanager
def opened(there: LaunchedDevice, environment: Mapping[str, str], cache_dir: Path) -> Iterator[LaunchedSession]:
    setup = ShapeSetup(plan=ShapesPlan(subject="tiled", n_threads=1, log_dir="", seed=7), environment=environment)
    session = LaunchedSession(waiting_worker, setup, there, limit_s=60.0, cache_dir=str(cache_dir))
    with closing(session):
        yield session


@pytest.fixture
def session(there: LaunchedDevice, environment: Mapping[str, str], engine_cache: Path) -> Iterator[LaunchedSession]:
    with opened(there, environment, engine_cache) as found:
        yield found


def test_every_operation_is_right_and_timed(session: LaunchedSession, there: LaunchedDevice) -> None:
    for case in CASES:
        deviation = session.ask(Sampler.verify, (case,))
        assert deviation.is_correct
        assert deviation.error_norm > 0
    assert [len(each) for each in session.ask(Sampler.round, CASES)] == [1] * len(CASES)
    old, new = session.ask(Sampler.samples, CASES[:2], n_samples=4)
    assert (len(old), len(new)) == (4, 4)
    assert min(*old, *new) > 0
    assert session.description.n_compute_units == there.device.compute_units
    assert dict(session.description.fingerprint)["kernels"] == kernels_digest(KERNELS_DIR)


@pytest.fixture
def deviations(there: LaunchedDevice, environment: Mapping[str, str], engine_cache: Path) -> Deviations:
    """How to verify cases of the tiled kernels, before and after a launch, with kernels of any directory."""

    def measured(case_ids: Sequence[str], kernels_dir: Path = KERNELS_DIR) -> dict[str, Deviation]:
        found = {}
        with opened(replace(there, kernels_dir=kernels_dir), environment, engine_cache) as session:
            for case_id in case_ids:
                operation = session.bench.placed(ShapeCase.from_id(case_id), seed=7)
                before = operation.verify()
                assert operation.launched_ns(1, 0) > 0
                found[case_id] = operation.verify()
                assert found[case_id] == before
                operation.close()
        return found

    return measured


#: Every type with one of the tilings, and every tile and vector with one of the types.
TYPED = [((32, 4), type) for type in STORED_TYPES]
CUT = [(tiling, "f32") for tiling in ((8, 1), (16, 2), (16, 16), (64, 1), (64, 16))]
MIXED = [((8, 8), "f16"), ((64, 8), "q8_0")]


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


def test_stored_values_are_exact(session: LaunchedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stored type is dequantised bit by bit as gguf does: weights times the unit matrix are the weights."""
    for type in STORED_TYPES:
        case = tiled(f"gemm/m512-n96-k512/{type}", tile=8, vector=8)
        inputs = draw_inputs(case.shape, seed=7)
        unit = replace(inputs, activations=np.eye(512, dtype=np.float32))
        monkeypatch.setattr("perfsuite.measure.shapes.launched_bench.draw_inputs", lambda *_, given=unit, **__: given)
        operation = session.bench.placed(case, seed=7)
        weights = dequantize(inputs.stored[0], type).astype(np.float32)
        assert (weights == operation.output().reshape(512, 96).T).all(), type
        operation.close()


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


def test_sources_that_do_not_build_leave_their_log(
    there: LaunchedDevice, environment: Mapping[str, str], engine_cache: Path, tmp_path: Path
) -> None:
    other = replace(there, kernels_dir=tmp_path, log_dir=tmp_path / "logs")
    with opened(other, environment, engine_cache) as session:
        with pytest.raises(MeasurementError, match=rf"{tmp_path}/prelude.cl: No such file .* expected the kernels"):
            session.ask(Sampler.verify, CASES[:1])
        for name in ("prelude.cl", "pieces.cl", "tiled.cl"):
            (tmp_path / name).write_text("nonsense of a kernel;\n")
        log = tmp_path / "logs" / "tiled-tiled.build.log"
        with pytest.raises(MeasurementError, match=rf"kernel tiled of tiled.cl does not build for .*; see {log}"):
            session.ask(Sampler.verify, CASES[:1])
        assert session.is_open
    assert "nonsense" in log.read_text()
