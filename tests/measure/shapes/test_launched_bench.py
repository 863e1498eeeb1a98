"""The tiled kernels by the native worker, on a real device; skipped where there is no OpenCL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.launch import run_worker
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.plan import DevicesPlan, ShapesPlan
from perfsuite.measure.shapes.launched_bench import LaunchedDevice, LaunchedSession
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.requests import RequestKind
from perfsuite.measure.shapes.tiled_launches import kernels_digest
from perfsuite.measure.worker_lines import waiting_worker
from perfsuite.testing.planted_kernels import Fault, plant

from ...synthetic_shapes import tiled
from ..launches.conftest import skipped_without_opencl
from ..opencl_children import visible_opencl

CASES = [
    tiled("gemm/m65-n130-k33/f32", tile=32).case_id,
    tiled("bmm/b3-m2-n65-k64/q8_0", tile=16).case_id,
    tiled("gemv/n65-k256/q4_k", tile=8).case_id,
    tiled("attention/heads6-kvheads2-head64-context65/f16", tile=32, vector=4).case_id,
]


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
    for case_id in CASES:
        deviation = session.ask(RequestKind.VERIFY, (case_id,)).deviation
        assert deviation is not None
        assert deviation.is_correct
        assert deviation.error_norm > 0
    assert [len(each) for each in session.ask(RequestKind.ROUND, tuple(CASES)).samples_ns] == [1] * len(CASES)
    old, new = session.ask(RequestKind.PAIRS, (CASES[0], CASES[1]), n_samples=4).samples_ns
    assert (len(old), len(new)) == (4, 4)
    assert min(*old, *new) > 0
    assert session.description.n_compute_units == there.device.compute_units
    assert dict(session.description.fingerprint)["kernels"] == kernels_digest(KERNELS_DIR)


def test_a_planted_fault_is_found(
    there: LaunchedDevice, environment: Mapping[str, str], engine_cache: Path, tmp_path: Path
) -> None:
    case_id = tiled("gemm/m5-n31-k33/f32", tile=32).case_id
    other = replace(there, kernels_dir=plant(tmp_path, Fault.WRONG_N))
    with opened(other, environment, engine_cache) as session:
        deviation = session.ask(RequestKind.VERIFY, (case_id,)).deviation
    assert deviation is not None
    assert not deviation.is_correct


def test_sources_that_do_not_build_leave_their_log(
    there: LaunchedDevice, environment: Mapping[str, str], engine_cache: Path, tmp_path: Path
) -> None:
    other = replace(there, kernels_dir=tmp_path, log_dir=tmp_path / "logs")
    with opened(other, environment, engine_cache) as session:
        with pytest.raises(MeasurementError, match=rf"{tmp_path}/prelude.cl: No such file .* expected the kernels"):
            session.ask(RequestKind.VERIFY, (CASES[0],))
        for name in ("prelude.cl", "pieces.cl", "tiled.cl"):
            (tmp_path / name).write_text("nonsense of a kernel;\n")
        log = tmp_path / "logs" / "tiled-tiled.build.log"
        with pytest.raises(MeasurementError, match=rf"kernel tiled of tiled.cl does not build for .*; see {log}"):
            session.ask(RequestKind.VERIFY, (CASES[0],))
        assert session.is_open
    assert "nonsense" in log.read_text()
