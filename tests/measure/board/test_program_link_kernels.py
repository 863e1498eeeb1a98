"""The suite's own OpenCL kernels on a board; skipped where there is no OpenCL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import OpenClError
from perfsuite.expectation.roofline.ceiling import Ceiling
from perfsuite.measure import opencl_ceiling_work
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.engine_store import kernels_folder
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.plan import KernelPlan, OpenClCeilingsPlan, ShapesPlan
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.sampler import Sampler

from ...synthetic_shapes import tiled
from ..launches.conftest import skipped_without_opencl
from ..opencl_children import visible_opencl
from .conftest import ANY, BoardHome, Opened

CASE = "kernel/add/count147456/f32"

PLAN = KernelPlan(
    case_ids=(CASE,),
    platform=None,
    n_repetitions=5,
    budget_ns=7_000_000_000,
    seed=0,
    log_dir="/nowhere",
    n_threads=1,
)


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    return visible_opencl(tmp_path)


@pytest.fixture
def board(bundled: BoardHome, opened: Opened, engine_cache: Path, environment: Mapping[str, str]) -> RemoteBoard:
    bundled.bring_libraries(engine_cache)
    found = opened(bundled)
    with skipped_without_opencl():
        found.run(ANY, extra_environment=environment)
    return found


def test_kernels_are_measured_beside_those_that_were_kept(board: RemoteBoard, environment: Mapping[str, str]) -> None:
    kept = board.kept_folder(board.keep(None, ""))
    assert kept is not None
    old_kernels_dir = str(kernels_folder(kept))
    payload = board.run(replace(PLAN, old_kernels_dir=old_kernels_dir, order_seed=1), extra_environment=environment)
    for side in ("old_kernels", "kernels"):
        (record,) = (KernelRecord.from_plain(each) for each in payload[side])
        assert (record.case_id, record.is_correct) == (CASE, True)
        assert len(record.durations_ns) >= 2
    assert payload["device_samples"]
    assert payload["sentinels"]["memory_ns"] > 0
    with pytest.raises(OpenClError, match=r"^/nowhere/prelude\.cl: is not on board; expected the kernels' sources"):
        board.run(replace(PLAN, old_kernels_dir="/nowhere"), extra_environment=environment)


def test_ceilings_are_measured(
    board: RemoteBoard, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl_ceiling_work, "_MOST_BYTES", 64 << 10)
    plan = OpenClCeilingsPlan(platform=None, budget_ms=1, log_dir="/nowhere")
    payload = board.run(plan, extra_environment=environment)
    found = [Ceiling.from_plain(each) for each in payload["ceilings"]]
    rated = [each.kind for each in found if each.rate]
    assert rated[:4] == ["read", "copy", "triad", "fp32"]
    assert payload["contention"]["wall_ns"] > 0


def test_shapes_of_the_tiled_kernels_are_measured(board: RemoteBoard, environment: Mapping[str, str]) -> None:
    case = tiled("gemm/m33-n17-k65/f16", tile=16)
    plan = ShapesPlan(subject="tiled", n_threads=1, log_dir="")
    session = board.start_shapes(ShapeSetup(plan=plan, environment=environment), limit_s=60.0)
    assert session.ask(Sampler.verify, (case,)).is_correct
    ((first, second),) = session.ask(Sampler.samples, (case,), n_samples=2)
    assert min(first, second) > 0
    session.close()
    assert board.covariates()
