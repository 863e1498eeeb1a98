"""Every way of a profile opens, and no other."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.device.reach import WAYS, Reach
from perfsuite.device.target.opening import open_target
from perfsuite.errors import DeviceError, LinkError

from ...board_adb import fake_adb, refusing_adb
from ...sys_trees import FIELD
from .test_shell import HARD

PHONE = Reach(way="adb", address="0123")


@pytest.mark.parametrize("address", ["", "0123"])
def test_words_arrive_though_adb_joins_them(tmp_path: Path, address: str) -> None:
    with fake_adb(tmp_path):
        told = open_target(Reach(way="adb", address=address)).run(["printf", "%s\\0", *HARD])
    assert told.output.split(b"\0")[:-1] == [word.encode("utf-8", "surrogateescape") for word in HARD]


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("error: no devices/emulators found", "adb sees no device; plug it in"),
        ("error: device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", "confirm on its screen"),
        ("error: device offline", "the device is offline to adb"),
        ("adb: device offline", "the device is offline to adb"),
        ("error: insufficient permissions for device: no permissions", "add the udev rule"),
        ("error: cannot connect to daemon", "`adb start-server` says why"),
        ("error: target doesn't support PTY args -Tt", "Android 7 is needed"),
        ("error: closed", "the link was lost in the middle"),
    ],
)
def test_adbs_words_are_explained(tmp_path: Path, words: str, meaning: str) -> None:
    with refusing_adb(tmp_path, words), pytest.raises(LinkError) as failed:
        open_target(PHONE).run(["true"])
    assert meaning in str(failed.value)
    assert str(failed.value).startswith("adb 0123: ")
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("words", ["error: more than one device/emulator", "error: device '0123' not found"])
def test_devices_of_adb_are_listed_with_their_state(tmp_path: Path, words: str) -> None:
    answer = FIELD / "20-phone-adb-answers" / "adb-devices.txt"
    with fake_adb(tmp_path):
        script = f'#!/bin/sh\n[ "$1" = devices ] && exec cat {answer}\necho "{words}" >&2; exit 1\n'
        (tmp_path / "bin" / "adb").write_text(script)
        with pytest.raises(LinkError) as failed:
            open_target(PHONE).run(["true"])
    assert str(failed.value).endswith(
        "it sees adb:emulator-5554, offline: plug it in again, or `adb reconnect`; "
        "adb:0A1B2C3D4E, unauthorized: confirm on its screen; adb:192.168.7.20:5555"
    )


def test_the_real_adb_has_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with pytest.raises(DeviceError, match="no serial number of adb; `adb devices` lists them"):
        open_target(Reach(way="adb", address=address))


def test_a_machine_without_adb_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where adb is missing, its package is named; nothing is run at the end, for the server is the user's."""
    with refusing_adb(tmp_path, "no"):
        open_target(PHONE).close()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LinkError, match="adb 0123: adb is not installed here; Debian has it as adb"):
        open_target(PHONE).run(["true"])


#: Ends the process above this one that is a child of the process $1: the shell that runs a command, not its limiter.
KILL = """echo word >&2
p=$$
while q=$(cut -d" " -f4 "/proc/$p/stat") && [ "$q" != "$1" ]; do p=$q; done
kill -9 "$p"
"""


def test_a_shell_that_is_killed_is_told() -> None:
    with pytest.raises(LinkError, match=r"local: the shell was ended from outside \(word\); run it again"):
        open_target(Reach()).run(["sh", "-c", KILL, "sh", f"{os.getpid()}"])


_RUNS = """
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
target = open_target(Reach())
print([target.run(["cat"], stdin=given).text for given in (b"", b"word")], flush=True)
print(target.start(["cat"]).communicate(b"more")[0], flush=True)
"""


def test_nothing_there_reads_what_this_process_could() -> None:
    """A command ends though this process's own input is a pipe that stays open, and says nothing."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _RUNS], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.wait(30) == 0
            assert process.stdout is not None
            assert process.stdout.read() == "['', 'word']\nb'more'\n"
        finally:
            process.kill()


@pytest.mark.parametrize("way", WAYS)
def test_every_way_opens_without_asking_the_device(way: str) -> None:
    """Opening runs nothing, so a device that is away is opened, too; its words name the way and the address."""
    target = open_target(Reach(way=way, address="/dev/nowhere" if way == "serial" else "nowhere.invalid"))
    assert target.text.startswith(way)
    target.close()


def test_another_way_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"'telnet': no way to a device; .* local, ssh, adb, serial"):
        open_target(Reach(way="telnet"))
