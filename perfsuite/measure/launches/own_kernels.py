"""The suite's own kernels, here and on boards: the native worker launches, and this machine judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure.launches.ceilings import opencl_ceilings
from perfsuite.measure.launches.duplicating import duplicated_kernels
from perfsuite.measure.launches.plan import DeviceLimits, DeviceListPlan
from perfsuite.measure.launches.session import JudgedOutputs, LaunchSession, ReadThere, RunPlan
from perfsuite.measure.launches.timing import timed_kernels
from perfsuite.measure.opencl_platform import OpenClDevice, choose_device, no_device
from perfsuite.measure.plan import DevicesPlan, DuplicationPlan, KernelPlan, OpenClCeilingsPlan
from perfsuite.records.own_files import user_cache

#: What is answered here.
LaunchedPlan: TypeAlias = DevicesPlan | KernelPlan | DuplicationPlan | OpenClCeilingsPlan

#: What can be done on a board that lacks a device.
FIX_THERE = "install the OpenCL driver of the device's vendor there"


@dataclass(kw_only=True)
class OwnKernels:
    """Answers the plans of the suite's own kernels, for one board."""

    read_there: ReadThere
    #: Where the worker's libraries are, on the board.
    cache_dir: str
    #: Where logs of failed builds go, on this machine; None is where each plan says, which is one of this machine.
    log_dir: Path | None = None
    _chosen: dict[str | None, tuple[OpenClDevice, DeviceLimits]] = field(default_factory=dict)
    _outputs: JudgedOutputs = field(default_factory=JudgedOutputs)

    def run(self, plan: LaunchedPlan, run: RunPlan) -> dict[str, Any]:
        """Return the payload of a plan; `run` runs one by the native worker.

        Raises `MeasurementError` where a kernel does not build, and whatever `run` raises; `OpenClError` where there is
        no such platform, or a file of kernels is not there.
        """
        if isinstance(plan, DevicesPlan):
            return self._devices(plan, run)
        device, limits = self.device(plan.platform, run)
        session = LaunchSession(
            device=device,
            limits=limits,
            run=run,
            outputs=self._outputs,
            read_there=self.read_there,
            log_dir=self.log_dir or Path(plan.log_dir),
            cache_dir=self.cache_dir,
        )
        if isinstance(plan, KernelPlan):
            return timed_kernels(plan, session)
        if isinstance(plan, DuplicationPlan):
            return duplicated_kernels(plan, session)
        return opencl_ceilings(plan, session)

    def _devices(self, plan: DevicesPlan, run: RunPlan) -> dict[str, Any]:
        is_here = self.log_dir is None
        try:
            told = run(DeviceListPlan(cache_dir=self.cache_dir))
        except MeasurementError as error:
            if is_here and str(error).startswith("OpenCL: "):
                raise no_device() from None
            raise
        devices = tuple(OpenClDevice.from_plain(each) for each in told["devices"])
        chosen = choose_device(plan.platform, devices, fix=None if is_here else FIX_THERE)
        limits = msgspec.convert(told["limits"][devices.index(chosen)], DeviceLimits)
        self._chosen[plan.platform] = chosen, limits
        return {"chosen": chosen.to_plain(), "devices": [each.to_plain() for each in devices]}

    def device(self, platform: str | None, run: RunPlan) -> tuple[OpenClDevice, DeviceLimits]:
        """Return the device as it was chosen last: a plan whose device is another one by now is refused there."""
        if platform not in self._chosen:
            self._devices(DevicesPlan(platform=platform), run)
        return self._chosen[platform]


def own_kernels(environment: Mapping[str, str]) -> OwnKernels:
    """Return what knows this machine's devices, as workers of an environment see them; the same for all of a run."""
    return _own_kernels(frozenset(environment.items()), str(user_cache()))


@cache
def _own_kernels(_: frozenset[tuple[str, str]], cache_dir: str) -> OwnKernels:
    return OwnKernels(read_there=kernel_source, cache_dir=cache_dir)


def kernel_source(path: Path) -> bytes:
    """Return the text of a file of kernels on this machine; `OpenClError` where there is none."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise OpenClError(f"{path}: {error.strerror}; expected the kernels' sources there") from None
