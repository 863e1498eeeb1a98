"""Ways to a device that are opened: what adb says and does, shells that are killed, and what a device may read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
from perfsuite.errors import LinkError

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
