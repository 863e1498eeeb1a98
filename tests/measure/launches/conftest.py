"""A stand-in for the native worker: it computes what a plan's launches do, in NumPy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure.kernel_launches import CPU_TUNING, describe
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.launches.plan import DeviceLimits, DeviceListPlan, LaunchesPlan, LaunchStep, StepKind
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import Plan
from perfsuite.workload.kernel_catalog import KernelCase

DEVICE = OpenClDevice(
    platform_index=1,
    device_index=0,
    platform_name="Portable Computing Language",
    platform_version="OpenCL 3.0",
    device_name="a processor",
    device_version="OpenCL 3.0",
    driver_version="7",
    type="cpu",
    compute_units=2,
    global_memory_bytes=1,
    local_memory_bytes=1,
)


LIMITS = DeviceLimits(extensions="cl_khr_a cl_khr_b", allocation_bytes=1 << 20, group_items=64, axis_items=(64, 8, 1))


@dataclass(kw_only=True)
class FakeWorker:
    """Answers plans; each launch takes as many ns as its place in the plan and 100 more."""

    plans: list[Plan] = field(default_factory=list)
    devices: list[OpenClDevice] = field(default_factory=lambda: [DEVICE])
    #: By place: what is added to the outputs of a launch, and launches that write behind them.
    errors: dict[int, float] = field(default_factory=dict)
    overrun: set[int] = field(default_factory=set)

    @property
    def launches(self) -> list[LaunchesPlan]:
        return [each for each in self.plans if isinstance(each, LaunchesPlan)]

    def run(self, plan: Plan) -> Mapping[str, Any]:
        self.plans.append(plan)
        if isinstance(plan, DeviceListPlan):
            return {
                "devices": [each.to_plain() for each in self.devices],
                "limits": [asdict(LIMITS) for _ in self.devices],
            }
        assert isinstance(plan, LaunchesPlan)
        rest = {"contention": {"wall_ns": 5}, "peak_rss_bytes": 6, "device_samples": [7]}
        sentinels = {} if plan.n_threads is None else {"sentinels": {"memory_ns": plan.n_threads}}
        return {"steps": [self._answer(plan, each) for each in plan.steps], **rest, **sentinels}

    def _answer(self, plan: LaunchesPlan, step: LaunchStep) -> dict[str, Any]:
        if step.kind is StepKind.OUTPUT:
            return self._output(plan, step)
        if step.kind is StepKind.TURNS:
            n_rounds, n_kernels = len(step.leaders), len(step.leaders[0])
            times = [_stamps(place, n_rounds * step.n_launches) for place in step.launches]
            return {"times": times, "n_per_round": [step.n_launches] * n_kernels}
        times = _stamps(step.launches[0], step.n_launches)
        return {"host_ns": 1000 * step.n_launches, "start_ns": times["start_ns"], "end_ns": times["end_ns"]}

    def _output(self, plan: LaunchesPlan, step: LaunchStep) -> dict[str, Any]:
        place = step.launches[0]
        if place in self.overrun:
            return {"is_guard_whole": False}
        launch = describe(KernelCase.from_id(plan.launches[place].name), CPU_TUNING, 0)
        output = (launch.expected + self.errors.get(place, 0.0)).astype(np.float32).tobytes()
        digest = hashlib.sha256(output).hexdigest()
        return {
            "is_guard_whole": True,
            "sha256": digest,
            "output": None if digest in step.known_outputs else output,
        }


def _stamps(place: int, count: int) -> dict[str, list[int]]:
    starts = [1000 * (each + 1) for each in range(count)]
    return {
        "queued_ns": [each - 2 for each in starts],
        "submit_ns": [each - 1 for each in starts],
        "start_ns": starts,
        "end_ns": [each + 100 + place for each in starts],
    }


@contextmanager
def skipped_without_opencl() -> Iterator[None]:
    try:
        yield
    except (MeasurementError, OpenClError) as error:
        if not str(error).startswith("OpenCL:"):
            raise
        pytest.skip(str(error))


@pytest.fixture
def worker() -> FakeWorker:
    return FakeWorker()


@pytest.fixture
def own(tmp_path: Path) -> OwnKernels:
    return OwnKernels(read_there=Path.read_bytes, log_dir=tmp_path / "logs", cache_dir="/board/cache")
