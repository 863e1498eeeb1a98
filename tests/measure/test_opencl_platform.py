"""Which device is measured, chosen from made-up machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure import opencl_platform
from perfsuite.measure.opencl_platform import OpenClDevice, choose_device

from ..synthetic_opencl_backend import opencl_device


def _device(platform: str, type: str) -> OpenClDevice:
    return replace(opencl_device(type), platform_name=platform, device_name=f"{type} of {platform}")


INTEL = _device("Intel(R) OpenCL", "cpu")
POCL = _device("Portable Computing Language", "cpu")
EMULATOR = _device("Intel(R) FPGA Emulation Platform for OpenCL(TM)", "accelerator")
ADRENO = _device("QUALCOMM Snapdragon(TM)", "gpu")


@pytest.mark.parametrize(
    ("name", "devices", "chosen"),
    [
        (None, (POCL, INTEL, EMULATOR, ADRENO), ADRENO),
        (None, (EMULATOR, POCL, INTEL), INTEL),
        (None, (EMULATOR, POCL), POCL),
        ("portable", (ADRENO, INTEL, POCL), POCL),
        ("fpga", (ADRENO, INTEL, EMULATOR), EMULATOR),
        ("intel", (EMULATOR, INTEL), INTEL),
    ],
)
def test_preference(name: str | None, devices: tuple[OpenClDevice, ...], chosen: OpenClDevice) -> None:
    """A part of the platform's name decides, in any case; then a GPU, Intel's CPU runtime and PoCL, in this order."""
    assert choose_device(name, devices) == chosen


@pytest.mark.parametrize(
    ("name", "device", "told"),
    [
        (None, EMULATOR, r"found Intel\(R\) FPGA Emulation.*name one of these platforms"),
        ("nvidia", INTEL, r"named like 'nvidia', found Intel\(R\) OpenCL: cpu of Intel"),
    ],
)
def test_what_nobody_named_or_expects_is_listed(name: str | None, device: OpenClDevice, told: str) -> None:
    """It is not taken by accident."""
    with pytest.raises(OpenClError, match=told):
        choose_device(name, (device,))


@pytest.mark.parametrize(
    ("machine", "fix"), [("x86_64", r"perfsuite\[opencl\]"), ("aarch64", "the OpenCL driver of the device's")]
)
def test_nothing_at_all(machine: str, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without OpenCL the error names what to install on its processor."""
    monkeypatch.setattr(opencl_platform.host, "system", lambda: "Linux")
    monkeypatch.setattr(opencl_platform.host, "machine", lambda: machine)
    with pytest.raises(OpenClError, match=fix):
        choose_device(None, ())


def test_plain_round_trip() -> None:
    """A device survives the way through a plain dict; a field too many is refused by its name."""
    assert OpenClDevice.from_plain(INTEL.to_plain()) == INTEL
    with pytest.raises(MeasurementError, match="colour"):
        OpenClDevice.from_plain(INTEL.to_plain() | {"colour": "red"})
