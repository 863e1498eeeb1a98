"""The suite's own kernels alone and duplicated, on a real device; skipped where there is no OpenCL."""

from __future__ import annotations

from pathlib import Path

from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import DuplicationPlan
from perfsuite.records.duplication import N_LEAST, KernelDuplication

from .launches.conftest import skipped_without_opencl
from .opencl_children import visible_opencl

CASES = ("kernel/gemv_q4_0/m2048-k2048/q4_0", "kernel/gemv_q4_0/m8192-k2048/q4_0", "kernel/add/count147456/f32")


def test_each_kernel_has_its_rounds_whose_parts_fit_into_them(tmp_path: Path) -> None:
    """On a queue that runs in order, what executes takes no longer than the host waits for it."""
    plan = DuplicationPlan(case_ids=CASES, platform=None, n_rounds=2, budget_ns=1, seed=0, log_dir=str(tmp_path))
    with skipped_without_opencl():
        payload = run_worker(plan, extra_environment=visible_opencl(tmp_path))
    found = [KernelDuplication.from_plain(each) for each in payload["kernels"]]
    assert [each.name for each in found] == list(CASES)
    assert {(each.n_duplicates, len(each.rounds), each.problem) for each in found} == {(N_LEAST, 2, None)}
    assert {each.n_wanted for each in found} <= {50, 1000}
    for each in (each for kernel in found for each in kernel.rounds):
        assert 0 < each.base_execution_ns <= each.base_ns
        assert 0 < each.duplicates_occupied_ns <= each.duplicated_ns
        assert 0 < each.duplicates_execution_ns <= each.duplicated_ns
