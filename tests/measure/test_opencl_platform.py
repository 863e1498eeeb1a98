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
    ("devices", "chosen"),
    [((POCL, INTEL, EMULATOR, ADRENO), ADRENO), ((EMULATOR, POCL, INTEL), INTEL), ((EMULATOR, POCL), POCL)],
)
def test_preference(devices: tuple[OpenClDevice, ...], chosen: OpenClDevice) -> None:
    """Without a name a GPU goes before Intel's CPU runtime, and that before PoCL, in whatever order they are found."""
    assert choose_device(None, devices) == chosen


def test_by_name() -> None:
    """A part of the platform's name, in any case, decides."""
    assert choose_device("portable", (ADRENO, INTEL, POCL)) == POCL
    assert choose_device("fpga", (ADRENO, INTEL, EMULATOR)) == EMULATOR


def test_best_of_a_name() -> None:
    """Of several platforms with the name the preferred kind is taken."""
    assert choose_device("intel", (EMULATOR, INTEL)) == INTEL


def test_unknown_platform_is_not_taken() -> None:
    """A platform that nobody named or expects is listed, not taken."""
    with pytest.raises(OpenClError, match=r"found Intel\(R\) FPGA Emulation.*name one of these platforms"):
        choose_device(None, (EMULATOR,))


def test_no_such_name() -> None:
    """A name that no platform has is refused with the names that there are."""
    with pytest.raises(OpenClError, match=r"named like 'nvidia', found Intel\(R\) OpenCL: cpu of Intel"):
        choose_device("nvidia", (INTEL,))


@pytest.mark.parametrize(
    ("machine", "fix"), [("x86_64", "pip install intel-opencl-rt"), ("aarch64", "the OpenCL driver of the device's")]
)
def test_nothing_at_all(machine: str, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without OpenCL is told what to install on its processor."""
    monkeypatch.setattr(opencl_platform.host, "system", lambda: "Linux")
    monkeypatch.setattr(opencl_platform.host, "machine", lambda: machine)
    with pytest.raises(OpenClError, match=fix):
        choose_device(None, ())


def test_plain_round_trip() -> None:
    """A device survives the way through a plain dict."""
    assert OpenClDevice.from_plain(INTEL.to_plain()) == INTEL


def test_unknown_field() -> None:
    """A plain device with a field too many is refused by the field's name."""
    with pytest.raises(MeasurementError, match="colour"):
        OpenClDevice.from_plain(INTEL.to_plain() | {"colour": "red"})
