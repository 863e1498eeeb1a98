"""The suite's kernels: whether a board has a device for them, and beside the sources of their baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.experiments.kernels.experiment import prepared
from perfsuite.measure.plan import KernelPlan
from tests.fake_device import HostRuns

CASE = "kernel/add/count147456/f32"


def test_a_disturbed_process_runs_once_more(runs: HostRuns) -> None:
    runs("--baseline=record", "-k", CASE)
    for is_busy, n_processes, outcome in ((False, 1, "pass"), (True, 2, "invalid")):
        runs.device.contended = is_busy
        runs.device.plans.clear()
        runs("-k", CASE)
        plans = [plan for plan in runs.device.plans if isinstance(plan, KernelPlan)]
        assert (len(plans), {plan.n_rounds for plan in plans}) == (n_processes, {16})
        assert runs.outcomes() == {outcome}


@dataclass(frozen=True)
class Run:
    board: Any
    platform: str | None
    opencl_platform: str | None = None
    is_against: bool = False
    left_out: Mapping[str, str] = field(default_factory=lambda: {"history": "no duckdb"})


NONE_THERE = "OpenCL: none of libOpenCL.so.1 can be loaded"


@pytest.mark.parametrize(
    ("error", "platform", "lack"),
    [
        (MeasurementError(NONE_THERE), None, NONE_THERE),
        (OpenClError(NONE_THERE), None, NONE_THERE),
        (MeasurementError(NONE_THERE), "ARM", None),
        (MeasurementError("the worker for 'devices' was killed by SIGSEGV"), None, None),
        (None, None, None),
    ],
)
def test_a_board_without_opencl_has_no_kernels(error: Exception | None, platform: str | None, lack: str | None) -> None:
    """They are left out where nobody named a platform, before other things; a driver that crashes is no lack."""
    board = SimpleNamespace(
        is_local=False,
        run=Mock(side_effect=error, return_value={"chosen": {}}),
        facts=lambda: SimpleNamespace(opencl_environment={}),
    )
    run: Any = Run(board=board, platform=platform)
    assert list(prepared(run).left_out.items()) == [*([("kernels", lack)] if lack else []), ("history", "no duckdb")]
    run = replace(run, is_against=True)
    assert prepared(run) is run
