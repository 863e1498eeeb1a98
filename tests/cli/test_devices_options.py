"""The argument that names a device."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from perfsuite.cli.devices_options import add_device_argument, chosen_profile
from perfsuite.errors import DeviceError


def test_the_named_device_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the working folder, or one that ships; an unknown one is told by its name alone."""
    monkeypatch.chdir(tmp_path)
    parser = argparse.ArgumentParser()
    add_device_argument(parser)
    assert chosen_profile(parser.parse_args(["rubikpi"])).name == "rubikpi"
    with pytest.raises(DeviceError, match=r"^toaster: no such device; known are host, "):
        chosen_profile(parser.parse_args(["toaster"]))
