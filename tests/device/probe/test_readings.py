"""The survey: what any shell reads of a device, and what is left out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perfsuite.device.probe.readings import read_lines, take_survey
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target

from ...sys_trees import plant

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
