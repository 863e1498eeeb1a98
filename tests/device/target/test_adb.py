"""The link over adb: a fake one that joins its arguments as adb does, and Debian's for its words."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
from perfsuite.errors import DeviceError, LinkError

from ...board_adb import fake_adb, refusing_adb
from .test_shell import HARD

PHONE = Reach(way="adb", address="0123")


@pytest.mark.parametrize("address", ["", "0123"])
def test_words_arrive_though_adb_joins_them(tmp_path: Path, address: str) -> None:
    """With a serial number and without, every word arrives unchanged."""
    with fake_adb(tmp_path):
        told = open_target(Reach(way="adb", address=address)).run(["printf", "%s\\0", *HARD])
    assert told.output.split(b"\0")[:-1] == [word.encode("utf-8", "surrogateescape") for word in HARD]


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("error: no devices/emulators found", "adb sees no device; plug it in"),
        ("error: more than one device/emulator", "adb sees several devices; name one as address"),
        ("error: device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", "confirm on its screen"),
        ("error: device offline", "the device is offline to adb"),
        ("adb: device offline", "the device is offline to adb"),
        ("error: device '0123' not found", "adb sees no such device; `adb devices` lists"),
        ("error: insufficient permissions for device: no permissions", "add the udev rule"),
        ("error: cannot connect to daemon", "`adb start-server` says why"),
        ("error: target doesn't support PTY args -Tt", "Android 7 is needed"),
        ("error: closed", "the link was lost in the middle"),
    ],
)
def test_adbs_words_are_explained(tmp_path: Path, words: str, meaning: str) -> None:
    """Each of adb's errors is one line that says what to do."""
    with refusing_adb(tmp_path, words), pytest.raises(LinkError) as failed:
        open_target(PHONE).run(["true"])
    assert meaning in str(failed.value)
    assert str(failed.value).startswith("adb 0123: ")
    assert "\n" not in str(failed.value)


def test_the_real_adb_has_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's adb says that there is no device, or none of that number, as it is explained."""
    if shutil.which("adb") is None:
        pytest.skip("boards: there is no adb; 'make test-needs' installs it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(probe.getsockname()[1]))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # for its server's log
    monkeypatch.setenv("HOME", str(tmp_path))
    try:
        with pytest.raises(LinkError, match="adb sees no such device"):
            open_target(Reach(way="adb", address="no-such-phone")).run(["true"])
        listed = subprocess.run(["adb", "devices"], capture_output=True, text=True, check=True).stdout
        if len(listed.split("\n")) == 3:
            with pytest.raises(LinkError, match="adb sees no device; plug it in"):
                open_target(Reach(way="adb")).run(["true"])
    finally:
        subprocess.run(["adb", "kill-server"], capture_output=True, check=False)


@pytest.mark.parametrize("address", ["-s", "a b", "a\nb"])
def test_what_is_no_serial_number_is_refused(address: str) -> None:
    """A serial number that adb would take for an option, or that is several words, is refused."""
    with pytest.raises(DeviceError, match="no serial number of adb; `adb devices` lists them"):
        open_target(Reach(way="adb", address=address))


def test_a_machine_without_adb_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where adb is missing, its package is named; nothing is run at the end, for the server is the user's."""
    with refusing_adb(tmp_path, "no"):
        open_target(PHONE).close()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LinkError, match="adb 0123: adb is not installed here; Debian has it as adb"):
        open_target(PHONE).run(["true"])
