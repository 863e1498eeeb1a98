"""The desk's end of the installer: events, silence, and how it ends."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from perfsuite.device.probe.readings import read_lines
from perfsuite.device.reach import Reach
from perfsuite.device.setup.needs import missing_things
from perfsuite.device.setup.set_up import converse
from perfsuite.device.target.opening import open_target
from perfsuite.errors import LinkError

PYTHON = {"version": [3, 11, 2], "venv": True, "ensurepip": True}
USUAL = "command:cc\t/usr/bin/cc\ncommand:c++\t/usr/bin/c++\ncommand:cmake\t/usr/bin/cmake\nmachine\taarch64\n"


def missing(told: str = USUAL, python: object = PYTHON, *, is_offline: bool = False) -> list[tuple[str, bool]]:
    assert python is None or isinstance(python, dict)
    found = missing_things(read_lines(told), python, command="python3", is_offline=is_offline)
    return [(each.text, each.is_needed) for each in found]


def test_a_device_that_has_all_misses_nothing() -> None:
    assert missing() == []
    assert missing(f"{USUAL}disk\t/dev/sda 9 9 99000000 1% /\n") == []


def test_each_missing_thing_has_its_command() -> None:
    """On Debian that is apt-get, and a Python without venv has a package of its own version."""
    (no_venv,) = missing(python={**PYTHON, "ensurepip": False})
    assert no_venv[0].endswith("sudo apt-get install -y python3.11-venv")
    (old,) = missing(python={**PYTHON, "version": [3, 9, 1]})
    assert old[0].startswith("python3 is Python 3.9.1, 3.10 is needed")
    (none,) = missing(python=None)
    assert none[0].startswith("no Python called python3: sudo apt-get install -y python3 python3-venv")
    assert [text.partition(" (")[0] for text, _ in missing("machine\taarch64\n")] == [
        "no C or C++ compiler",
        "no cmake",
    ]


def test_events_are_read_among_other_lines() -> None:
    script = "echo hello; printf '{\"step\"'; sleep 0.1; echo ': 1}'; echo '[1]'; echo '{\"line\": 2}'; exit 1"
    heard = list[dict[str, int]]()
    assert converse(open_target(Reach()), ["sh", "-c", script], heard.append) is None
    assert heard == [{"step": 1}, {"line": 2}]


def test_a_program_that_is_killed_is_a_lost_link() -> None:
    """Only its own ends, 0 and 1, are ends of a conversation; of silence the line says how long it was."""
    with pytest.raises(LinkError, match=r"local: the shell was ended from outside \(word\)"):
        converse(open_target(Reach()), ["sh", "-c", "echo word >&2; kill -9 $$"], print)
    with pytest.raises(LinkError, match="heard nothing for 0 s"):
        converse(open_target(Reach()), ["cat"], print, silence_limit_s=0.3)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_whoever_stops_listening_ends_the_program(tmp_path: Path, is_interrupted: bool) -> None:
    script = f"echo '{{\"done\": 1}}'; cat >/dev/null; touch '{tmp_path}/ended'"

    def hear(event: dict[str, int]) -> int:
        if is_interrupted:
            raise KeyboardInterrupt
        return event["done"]

    with pytest.raises(KeyboardInterrupt) if is_interrupted else nullcontext():
        assert converse(open_target(Reach()), ["sh", "-c", script], hear) == 1
    assert (tmp_path / "ended").exists()


def test_termux_installs_with_pkg() -> None:
    """Termux has other names of packages, and no sudo; cmake from pip does not run there."""
    told = "prefix\t/data/data/com.termux/files/usr\nmachine\taarch64\n"
    found = missing(told)
    assert [text.rpartition(": ")[2] for text, _ in found] == ["pkg install clang", "pkg install cmake ninja"]
    assert all(is_needed for _, is_needed in found)


def test_cmake_alone_is_a_remark() -> None:
    assert [needed for _, needed in missing(USUAL.replace("command:cmake", "other"))] == [False]


def test_a_full_disk_is_told_with_what_is_needed() -> None:
    """On x86-64 Intel's OpenCL runtime comes along, which takes more."""
    disk = "disk\t/dev/sda 9 9 2000000 1% /\n"
    assert missing(f"{USUAL}{disk}") == []
    (full,) = missing(f"{USUAL.replace('aarch64', 'x86_64')}{disk}")
    assert full[0].startswith("1.9 GiB free on the disk, an installation needs 2.3 GiB")
