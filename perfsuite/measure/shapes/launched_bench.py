"""The suite's tiled OpenCL kernels at any shape: placed and launched by the native worker, here or on a board.

Inputs are drawn, and outputs judged, where this runs.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perfsuite.errors import EngineError, MeasurementError, OpenClError, ShapeCrashError, ShapeError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_launches import Launch
from perfsuite.measure.kernel_references import error_norm
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.launches.plan import DeviceLimits, LaunchSessionPlan, PlannedLaunch
from perfsuite.measure.launches.session import RunPlan
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.ggml_operators import PIECE_VALUES, Asked, WorkerCrash, tell_bytes
from perfsuite.measure.shapes.ggml_session import NativeSession, Start
from perfsuite.measure.shapes.meter import BenchDescription, Deviation
from perfsuite.measure.shapes.meters import ShapeSetup
from perfsuite.measure.shapes.shape_inputs import ShapeInputs, draw_inputs
from perfsuite.measure.shapes.shape_references import shape_reference
from perfsuite.measure.shapes.tiled_launches import kernels_digest, tiled_description, tiled_launch, tiled_problem
from perfsuite.records.codec import pack
from perfsuite.records.whole_file import write_whole_bytes
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

    def __init__(self, there: LaunchedDevice, worker: Asked, ready: str) -> None:
        """Measure by a worker that has opened the device, and said so."""
        self._there, self._worker = there, worker
        self.memory_bytes = int(ready.split(" ", 2)[1])
        self._kernels = kernels_digest(there.kernels_dir)

    @property
    def description(self) -> BenchDescription:
        return tiled_description(self._there.device, self._kernels)

    def problem(self, case: ShapeCase) -> str | None:
        return tiled_problem(case, self._there.device, self._there.limits)

    def bound(self, case: ShapeCase, *, seed: int) -> LaunchedOperation:
        """Draw a case's inputs and place them; `ShapeError` where there is a problem with it."""
        problem = self.problem(case)
        if problem or case.tiling is None:
            raise ShapeError(f"{case.case_id}: {problem}")
        inputs = draw_inputs(case.shape, seed=seed)
        launch = tiled_launch(inputs, case.tiling)
        with told(case):
            tell_bytes(self._worker, self._described(launch, case))
            answer = self._worker.asked("place")
        if answer.startswith("unbuilt "):
            raise self._unbuilt(launch, base64.b64decode(answer.partition(" ")[2]))
        return LaunchedOperation(case, inputs, self._worker, int(answer))

    def samples(self, operations: Sequence[LaunchedOperation], n_launches: int) -> tuple[int, ...]:
        """Launch operations one after the other, as `ShapeBench`, on the device's clock."""
        numbers = " ".join(str(each.number) for each in operations)
        with told(*(each.case for each in operations)):
            answer = self._worker.asked(f"time {n_launches} {numbers}", n_steps=len(operations))
        return tuple(map(int, answer.split()))

    def _described(self, launch: Launch, case: ShapeCase) -> bytes:
        """Return what places a launch, with the bytes of its inputs."""
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
        source = "\n".join(map(self._text, (*launch.preludes, launch.source)))
        described = {"source": source, "options": " ".join(launch.build_options)}
        return pack({**described, "launch": {**asdict(planned), "contents": contents}})

    def _text(self, name: str) -> str:
        try:
            return (self._there.kernels_dir / name).read_text(encoding="utf-8")
        except OSError as error:
            raise OpenClError(f"{error.filename}: {error.strerror}; expected the kernels' sources there") from None

    def _unbuilt(self, launch: Launch, log: bytes) -> MeasurementError:
        name = self._there.device.device_name
        path = self._there.log_dir / f"{Path(launch.source).stem}-{launch.entry}.build.log"
        write_whole_bytes(path, b"device: " + name.encode() + b"\n" + log + b"\n", MeasurementError)
        return MeasurementError(f"kernel {launch.entry} of {launch.source} does not build for {name}; see {path}")


class LaunchedOperation:
    """A tiled kernel with its inputs on the device."""

    def __init__(self, case: ShapeCase, inputs: ShapeInputs, worker: Asked, number: int) -> None:
        self.case, self.number = case, number
        self._inputs, self._worker = inputs, worker

    def verify(self) -> Deviation:
        reference = shape_reference(self._inputs)
        out, expected = self._output(), reference.expected
        norm = math.inf if out is None else error_norm(out.reshape(expected.shape), expected)
        return Deviation(error_norm=norm, tolerance=reference.f32_tolerance)

    def launched_ns(self, most_launches: int, until_ns: int) -> int:
        with told(self.case):
            return int(self._worker.asked(f"launch {self.number} {most_launches} {until_ns}"))

    def close(self) -> None:
        if self.number:
            number, self.number = self.number, 0
            with told(self.case):
                self._worker.asked(f"drop {number}")

    def _output(self) -> Any:
        """Return what it computes; None where something was written behind that."""
        with told(self.case):
            n_values = int(self._worker.asked(f"output {self.number}"))
            pieces = [
                self._worker.asked(f"values {first} {min(PIECE_VALUES, n_values - first)}")
                for first in range(0, n_values, PIECE_VALUES)
            ]
        return np.frombuffer(b"".join(map(base64.b64decode, pieces)), dtype=np.float32) if n_values else None


class LaunchedSession(NativeSession):
    """A session of the tiled kernels."""

    def __init__(
        self, start: Start, setup: ShapeSetup, there: LaunchedDevice, *, limit_s: float, cache_dir: str
    ) -> None:
        """Start a worker that opens the device; `cache_dir` is that of the machine which has it."""
        device = there.device
        plan = LaunchSessionPlan(
            platform_index=device.platform_index,
            device_index=device.device_index,
            platform_name=device.platform_name,
            device_name=device.device_name,
            step_limit_s=limit_s,
            cache_dir=cache_dir,
        )
        opened = partial(LaunchedBench, there)
        super().__init__(start, plan, setup.environment, opened, seed=setup.plan.seed, limit_s=limit_s)


@contextmanager
def told(*cases: ShapeCase) -> Iterator[None]:
    """Name the case at which something failed; each is a step of what is asked."""
    try:
        yield
    except EngineError as error:
        raise OpenClError(f"{cases[0].case_id}: {error}") from None
    except WorkerCrash as crash:
        raise ShapeCrashError(cases[min(crash.place, len(cases) - 1)].case_id, crash.how) from None
