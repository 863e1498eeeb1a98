"""The suite's own kernels alone and duplicated, on a real device; skipped where there is no OpenCL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import DuplicationPlan
from perfsuite.records.duplication import N_LEAST, KernelDuplication
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS

from .opencl_children import visible_opencl

CASES = ("kernel/gemv_q4_0/m2048-k2048/q4_0", "kernel/gemv_q4_0/m8192-k2048/q4_0", "kernel/add/count147456/f32")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[KernelDuplication, ...]:
    """Duplicate two shapes of one kernel and one of another, as few times as there may be."""
    folder = tmp_path_factory.mktemp("duplication")
    environment = visible_opencl(folder)
    plan = DuplicationPlan(case_ids=CASES, platform=None, n_rounds=2, budget_ns=1, seed=0, log_dir=str(folder))
    try:
        payload = run_worker(plan, extra_environment=environment)
    except MeasurementError as error:
        if not str(error).startswith("OpenCL:"):
            raise
        pytest.skip(str(error))
    return tuple(KernelDuplication.from_plain(each) for each in payload["kernels"])


def test_each_kernel_has_its_rounds(found: tuple[KernelDuplication, ...]) -> None:
    assert [each.name for each in found] == list(CASES)
    assert {(each.n_duplicates, len(each.rounds), each.problem) for each in found} == {(N_LEAST, 2, None)}
    assert {each.n_wanted for each in found} <= {50, 1000}


def test_the_parts_of_a_round_fit_into_it(found: tuple[KernelDuplication, ...]) -> None:
    """On a queue that runs in order, what executes takes no longer than the host waits for it."""
    rounds = [each for kernel in found for each in kernel.rounds]
    for each in rounds:
        assert 0 < each.base_execution_ns <= each.base_ns
        assert 0 < each.duplicates_occupied_ns <= each.duplicated_ns
        assert 0 < each.duplicates_execution_ns <= each.duplicated_ns


def test_a_platform_that_is_not_there_is_refused(tmp_path: Path) -> None:
    environment = visible_opencl(tmp_path)
    plan = DuplicationPlan(
        case_ids=CASES, platform="no such platform", n_rounds=1, budget_ns=1, seed=0, log_dir=str(tmp_path)
    )
    with pytest.raises(MeasurementError, match=r"OpenCL: "):
        run_worker(plan, extra_environment=environment)


@pytest.mark.parametrize("refusing", ["begin", "run_round", "verify"])
def test_what_opencl_refuses_is_told_with_the_kernel(
    refusing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cl = pytest.importorskip("pyopencl")
    from perfsuite.measure import opencl_duplication  # loads OpenCL's library

    case = next(each for each in STANDARD_KERNELS if each.case_id == CASES[2])

    def step(name: str, value: object = None) -> Callable[..., object]:
        def run(*_: object, **__: object) -> object:
            if name == refusing:
                raise cl.RuntimeError("out of resources\nand more")
            return value

        return run

    launch: Any = SimpleNamespace(bind=step("bind"), verify=step("verify", 0.0))
    open_case = opencl_duplication._OpenCase(case=case, launch=launch, n_duplicates=1, n_wanted=1)
    monkeypatch.setattr(opencl_duplication, "choose_device", step("choose"))
    monkeypatch.setattr(opencl_duplication, "KernelBench", step("open", SimpleNamespace(queue=None)))
    monkeypatch.setattr(opencl_duplication._OpenCase, "begin", step("begin", open_case))
    monkeypatch.setattr(opencl_duplication._OpenCase, "run_round", step("run_round"))
    with pytest.raises(OpenClError) as caught:
        opencl_duplication.duplicate_kernels([case], platform=None, n_rounds=1, budget_ns=1, seed=0, log_dir=tmp_path)
    assert str(caught.value) == f"{case.case_id}: out of resources"
