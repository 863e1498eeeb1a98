"""The suite's tiled OpenCL kernels at any shape: placed and launched by the native worker, here or on a board."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from perfsuite.errors import ShapeError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.launches.own_kernels import OwnKernels, kernel_source
from perfsuite.measure.launches.plan import DeviceLimits, LaunchSessionPlan, PlannedLaunch, device_of
from perfsuite.measure.launches.session import RunPlan, unbuilt_error
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.native_session import NativeSession, PlacedOperation, ShapeWorker, Start, fastest_ns
from perfsuite.measure.shapes.shape_references import draw_inputs
from perfsuite.measure.shapes.tiled_launches import kernels_digest, tiled_description, tiled_launch, tiled_problem
from perfsuite.records.codec import pack
from perfsuite.workload.shapes.shape_case import ShapeCase


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedDevice:
    """The device that kernels are launched on, and what is needed of this machine for them."""

    device: OpenClDevice
    limits: DeviceLimits
    #: Where the kernels' sources are, and where logs of failed builds go.
    kernels_dir: Path = KERNELS_DIR
    log_dir: Path

    @classmethod
    def of(cls, own: OwnKernels, plan: ShapesPlan, run: RunPlan) -> LaunchedDevice:
        """Return the device that a plan means; `run` runs a plan by the native worker."""
        device, limits = own.device(plan.platform, run)
        sources = Path(plan.kernels_dir) if plan.kernels_dir else KERNELS_DIR
        return cls(device=device, limits=limits, kernels_dir=sources, log_dir=own.log_dir or Path(plan.log_dir))


class LaunchedBench:
    """The tiled kernels on one device of a native worker's."""

    def __init__(self, there: LaunchedDevice, worker: ShapeWorker) -> None:
        """Measure by a worker that has opened the device."""
        self._there, self._worker = there, worker
        self.memory_bytes = int(worker.ready.split(" ", 2)[1])
        self.description = tiled_description(there.device, kernels_digest(there.kernels_dir))

    def problem(self, case: ShapeCase) -> str | None:
        return tiled_problem(case, self._there.device, self._there.limits)

    def placed(self, case: ShapeCase, *, seed: int) -> PlacedOperation:
        """Draw a case's inputs and place them; `ShapeError` where there is a problem with it."""
        problem = self.problem(case)
        if problem or case.tiling is None:
            raise ShapeError(f"{case.case_id}: {problem}")
        inputs = draw_inputs(case.shape, seed=seed)
        launch = tiled_launch(inputs, case.tiling)
        planned = PlannedLaunch(
            name=case.case_id,
            program=0,
            entry=launch.entry,
            contents=(),
            n_outputs=case.shape.n_outputs,
            scalars=tuple(each.tobytes() for each in launch.scalars),
            global_size=launch.global_size,
            local_size=launch.local_size,
        )
        contents = [np.ascontiguousarray(each).tobytes() for each in launch.inputs]
        sources = (kernel_source(self._there.kernels_dir / name) for name in (*launch.preludes, launch.source))
        request = {
            "source": "\n".join(each.decode("utf-8") for each in sources),
            "options": " ".join(launch.build_options),
            "launch": {**asdict(planned), "contents": contents},
        }
        answer = self._worker.asked("place", case, content=pack(request))
        if answer.startswith("unbuilt "):
            log = base64.b64decode(answer.partition(" ")[2])
            raise unbuilt_error(launch, self._there.device, self._there.log_dir, log.decode(errors="replace"))
        return PlacedOperation(self._worker, int(answer), case, inputs)

    def samples(self, operations: Sequence[PlacedOperation], n_launches: int) -> tuple[int, ...]:
        """Launch operations one after the other, as `ShapeBench`, on the device's clock."""
        return fastest_ns(self._worker, operations, n_launches)


class LaunchedSession(NativeSession):
    """A session of the tiled kernels."""

    def __init__(
        self, start: Start, setup: ShapeSetup, there: LaunchedDevice, *, limit_s: float, cache_dir: str
    ) -> None:
        """Start a worker that opens the device; `cache_dir` is that of the machine which has it."""
        plan = LaunchSessionPlan(**device_of(there.device), step_limit_s=limit_s, cache_dir=cache_dir)
        opened = partial(LaunchedBench, there)
        super().__init__(start, plan, setup.environment, opened, seed=setup.plan.seed, limit_s=limit_s)
