"""Which of a machine's OpenCL devices is measured."""

from __future__ import annotations

import platform as host
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure.kernel_runtime import runtime_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClDevice:
    """One device of one platform, as its driver describes it."""

    #: Position of the platform among the platforms, and of the device among the platform's devices.
    platform_index: int
    device_index: int
    platform_name: str
    platform_version: str
    device_name: str
    #: OpenCL version of the device, such as ``OpenCL 3.0 (Build 0)``.
    device_version: str
    driver_version: str
    #: ``cpu``, ``gpu``, ``accelerator`` or ``other``.
    type: str
    compute_units: int
    global_memory_bytes: int
    local_memory_bytes: int

    @property
    def is_cpu(self) -> bool:
        """Whether the kernels run on the processor that the suite runs on."""
        return self.type == "cpu"

    @property
    def is_gpu(self) -> bool:
        return self.type == "gpu"

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> OpenClDevice:
        """Return the device that `to_plain` made; `MeasurementError` when it is no such thing."""
        try:
            return cls(**plain)
        except TypeError as error:
            raise MeasurementError(f"OpenCL device: {error}; expected what to_plain wrote") from None

    def __str__(self) -> str:
        """Return platform, device and driver, as messages name the device."""
        return f"{self.platform_name}: {self.device_name} ({self.type}, driver {self.driver_version})"


def no_device() -> OpenClError:
    """Return the error of a machine on which no driver shows a device: this one."""
    problem = runtime_problem()
    return OpenClError(f"OpenCL: no platform has a device{f' ({problem})' if problem else ''}; {_fix()}")


def choose_device(platform: str | None, devices: Sequence[OpenClDevice], *, fix: str | None = None) -> OpenClDevice:
    """Return the device to measure; `fix` is what else may be done where there is none, if not what helps here.

    `platform` is a part of the platform's name, in any case; None takes a GPU, else Intel's CPU runtime, else PoCL, and
    no other platform, so that one which some wheel brings along is not taken by accident.

    Raises `OpenClError` where no device is left; the message lists those that there are.
    """
    if platform is None:
        candidates = [device for device in devices if _rank(device) < _UNRANKED]
    else:
        candidates = [device for device in devices if platform.lower() in device.platform_name.lower()]
    if not candidates:
        wanted = "a GPU, Intel's CPU runtime or PoCL" if platform is None else f"a platform named like {platform!r}"
        seen = "; ".join(str(device) for device in devices) or "no device at all"
        raise OpenClError(f"OpenCL: expected {wanted}, found {seen}; name one of these platforms, or {fix or _fix()}")
    return min(candidates, key=_rank)


_UNRANKED = 3


def _rank(device: OpenClDevice) -> int:
    if device.is_gpu:
        return 0
    if device.is_cpu and device.platform_name.startswith("Intel(R) OpenCL"):
        return 1
    return 2 if device.platform_name == "Portable Computing Language" else _UNRANKED


def _fix() -> str:
    if host.system() == "Linux" and host.machine() in ("x86_64", "AMD64"):
        return "run: pip install 'perfsuite[opencl]'"
    return "install the OpenCL driver of the device's vendor"
