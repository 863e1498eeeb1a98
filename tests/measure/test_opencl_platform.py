"""Which device is measured, chosen from made-up machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import OpenClError
from perfsuite.measure.opencl_platform import OpenClDevice, choose_device
from perfsuite.records.fingerprint import asked_fields, differences, machine_fields

from ..synthetic_opencl_backend import opencl_backend, opencl_device


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
    with pytest.raises(OpenClError, match=told):
        choose_device(name, (device,))


def test_drivers_of_the_field() -> None:
    """A GPU without a name of its own is one, and an update of its driver is another machine for a baseline."""
    name, version = "QUALCOMM Snapdragon(TM)", "OpenCL 3.0 QUALCOMM build: {} Compiler {}"
    nameless = replace(opencl_device("gpu"), platform_name=name, device_name="QUALCOMM")
    assert choose_device(None, (INTEL, nameless)) == nameless
    builds = [
        replace(nameless, platform_version=text, driver_version=text)
        for text in (version.format("0800.46", "E031.47.18.36"), version.format("0800.71", "E031.47.18.49"))
    ]
    old, new = (replace(opencl_backend(Path(), "gpu"), device=each).fingerprint for each in builds)
    assert asked_fields(old) == asked_fields(new)
    assert [each.split(" ")[0] for each in differences(machine_fields(old), machine_fields(new))] == [
        *("opencl_platform", "opencl_driver")
    ]
