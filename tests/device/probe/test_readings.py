"""The survey: what any shell reads of a device, and what is left out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from perfsuite.device.probe.readings import folder_there, read_lines, take_survey
from perfsuite.device.reach import Reach
from perfsuite.device.setup.board_survey import read_board
from perfsuite.device.target.opening import open_target

from ...sys_trees import plant
from .device_trees import readings

SCRIPT = Path(__file__).resolve().parents[3] / "perfsuite" / "device" / "probe" / "survey.sh"


def test_this_machine_says_what_it_is() -> None:
    found = take_survey(open_target(Reach()), folder="/", is_twice=True)
    assert found.count("survey") == 1
    assert found.text("home")
    assert any(line.startswith("MemTotal:") for line in found.all("/proc/meminfo"))
    assert found.text("cpu_ticks1") is not None
    assert found.text("cpu_ticks2") is not None
    assert len((found.text("disk") or "").split()) > 4


@pytest.mark.parametrize("shell", [["dash"], ["bash", "--posix"], ["busybox", "sh"], ["mksh"], ["bash"]])
def test_every_shell_reads_the_same_tree(shell: list[str], tmp_path: Path) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    plant("rubikpi", tmp_path)
    read = []
    for command in (["sh"], shell):
        done = subprocess.run(
            [*command, str(SCRIPT), "", "", str(tmp_path)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0
        read.append({name: lines for name, lines in read_lines(done.stdout).lines.items() if name.startswith("/")})
    assert read[0] == read[1]
    assert read[0]["/sys/devices/system/cpu/cpufreq/policy7/related_cpus"] == ("7",)


@pytest.mark.parametrize("shell", [["dash"], ["bash", "--posix"], ["busybox", "sh"], ["mksh"]])
def test_the_disk_is_that_of_a_folder_below_the_home(shell: list[str]) -> None:
    """A folder that begins with a tilde is looked for in the home, also where it is not made yet."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")

    def disk(folder: str) -> str:
        line = [*shell, str(SCRIPT), folder]
        told = subprocess.run(line, env={"HOME": "/dev", "PATH": os.environ["PATH"]}, capture_output=True, text=True)
        return (read_lines(told.stdout).text("disk") or "").split()[-1]

    assert disk("~/none/yet") == disk("~") == "/dev"
    assert disk("/none/~") == "/"


def test_odd_files_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").write_bytes(b"A \\n board\twith a tab\0")
    (tmp_path / "proc/device-tree/compatible").write_bytes(b"maker,board\0maker,chip\0")
    (tmp_path / "sys/class/thermal/thermal_zone0/type").mkdir(parents=True)
    (tmp_path / "proc/loadavg").write_bytes(b"0.1 0.2")
    found = take_survey(open_target(Reach()), root=str(tmp_path))
    assert found.text("/proc/device-tree/model") == "A \\n board\twith a tab"
    assert found.all("/proc/device-tree/compatible") == ("maker,board", "maker,chip")
    assert found.text("/proc/loadavg") == "0.1 0.2"


def test_a_home_is_that_of_the_device() -> None:
    told = readings("home = /home/pi")
    assert folder_there("~/.local/share/perfsuite", told) == "/home/pi/.local/share/perfsuite"
    assert folder_there("/data/local/tmp/~x", told) == "/data/local/tmp/~x"


@pytest.mark.parametrize("place", ["usr/lib/aarch64-linux-gnu/libOpenCL.so.1", "vendor/lib64/libOpenCL.so"])
def test_where_opencl_is(place: str, tmp_path: Path) -> None:
    assert take_survey(open_target(Reach()), root=str(tmp_path)).text("opencl_loader") is None
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    assert read_board(take_survey(open_target(Reach()), root=str(tmp_path))).opencl_loader == f"/{place}"
