"""One process of the engine on OpenCL, with the worker replaced by one that leaves a made-up log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.traced_run import TracedRun, traced_run
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from tests.synthetic_engine_kernels import FUSED, Step, recorded
from tests.synthetic_opencl import write_log
from tests.synthetic_opencl_backend import opencl_backend, opencl_plan

FULL_SPEED = recorded([Step(phase=Phase.PREFILL, kernels=FUSED), Step(phase=Phase.DECODE, kernels=FUSED)])
ENDS = ((0, 1, 1, 1, 1), (1, 1, 0, 0, 1))

#: Runs a plan with a worker that writes so many logs; returns what came back, and what the worker was given.
Run = Callable[..., tuple[TracedRun, list[tuple[LlamaPlan, Path]]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:

    def traced(plan: LlamaPlan, n_logs: int = 1) -> tuple[TracedRun, list[tuple[LlamaPlan, Path]]]:
        given: list[tuple[LlamaPlan, Path]] = []

        def work(plan: LlamaPlan, *, extra_environment: Mapping[str, str], **_: object) -> dict[str, Any]:
            folder = Path(extra_environment["PERFSUITE_OPENCL_LOG"])
            assert extra_environment["OPENCL_LAYERS"] == f"{tmp_path}/compat.so:{tmp_path}/layer.so"
            assert extra_environment["PERFSUITE_OPENCL_LAYER_MODE"] == "record"
            assert list(folder.glob("*.log")) == []
            given.append((plan, folder))
            for number in range(n_logs):
                write_log(folder / f"opencl-{number}.log", FULL_SPEED.trace)
            return {"engine": FULL_SPEED.record.to_plain(), "contention": {}}

        monkeypatch.setattr("perfsuite.measure.launch.run_worker", work)
        return traced_run(plan, opencl_backend(tmp_path), LocalBoard(cache_dir=tmp_path)), given

    return traced


def test_a_process_brings_its_record_and_its_commands(run: Run, tmp_path: Path) -> None:
    plan = replace(opencl_plan(tmp_path), group_ends=ENDS)
    traced, [(given, folder)] = run(plan)
    assert given == plan
    assert traced.run.record == FULL_SPEED.record
    assert np.array_equal(traced.run.trace.commands, FULL_SPEED.trace.commands)
    assert (traced.run.trace.names, traced.run.group_ends) == (FULL_SPEED.trace.names, ENDS)
    assert {"engine", "contention"} <= set(traced.payload)
    assert not folder.exists()


@pytest.mark.parametrize("n_logs", [0, 2])
def test_a_process_leaves_one_log(run: Run, n_logs: int, tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=rf"layer\.so: {n_logs} logs of one process; .* OPENCL_LAYERS\?"):
        run(opencl_plan(tmp_path), n_logs)
