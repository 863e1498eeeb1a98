"""Runs llama.cpp on its OpenCL backend in a fresh process, and brings back every command that it enqueued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord
from perfsuite.records.opencl_log_file import read_opencl_log
from perfsuite.trace.opencl.kernel_mapping import RecordedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRun:
    """One process: what its worker wrote, and what the OpenCL layer saw in it."""

    payload: Mapping[str, Any]
    run: RecordedRun


def traced_run(plan: LlamaPlan, backend: OpenClBackend, board: Board) -> TracedRun:
    """Run a plan under the tracing layer.

    Raises MeasurementError: the worker failed, or the layer left no log: then the process never loaded it.
    """
    with work_folder() as logs:
        payload = board.run(plan, extra_environment=backend.environment(RUN_FOLDER), files=logs)
        found = sorted(logs.glob("opencl-*.log"))
        if len(found) != 1:
            raise MeasurementError(
                f"{backend.tracing_layer.name}: {len(found)} logs of one process; does its OpenCL loader know "
                "OPENCL_LAYERS? Debian's ocl-icd-libopencl1 (2.3 or newer) does"
            )
        trace = read_opencl_log(found[0])
    record = EngineRecord.from_plain(payload.get("engine"))
    return TracedRun(payload=payload, run=RecordedRun(record=record, trace=trace, group_ends=plan.group_ends))


def grouped_plan(plan: LlamaPlan, group_ends: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())) -> LlamaPlan:
    """Return the plan of the same workload once, group by group; node by node where no groups are given."""
    return replace(plan, recorder="groups", group_ends=group_ends, n_repetitions=1)
