"""What is kept on a board so that a killed run's changes can be undone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from perfsuite.device.stability.restore_file import FILE_NAME, Change, keep, restore, restore_leftovers
from perfsuite.device.stability.small_files import write_line
from perfsuite.errors import DeviceError
from tests.sys_trees import UNWRITABLE, plant, put

GOVERNOR = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
CHANGE = Change(path=GOVERNOR, before="ondemand", set_to=("performance",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A board with its governor changed."""
    return plant("raspberrypi5", tmp_path / "board")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def left(folder: Path, root: Path, *changes: Change, now: str = "performance") -> None:
    keep(changes or (CHANGE,), folder, root)
    write_line(root / GOVERNOR, now)


def test_what_a_killed_run_left_is_restored(folder: Path, root: Path) -> None:
    left(folder, root)
    (line,) = restore_leftovers(folder, root)
    assert line == f"left by a run that was killed: {root / GOVERNOR}: restored to 'ondemand'"
    assert (root / GOVERNOR).read_text() == "ondemand"
    assert list(folder.iterdir()) == []


def test_a_run_that_was_killed_before_its_first_write_left_nothing(folder: Path, root: Path) -> None:
    left(folder, root, now="ondemand")
    assert restore_leftovers(folder, root) == ()
    assert not (folder / FILE_NAME).exists()


def test_another_boot_has_restored_all(folder: Path, root: Path) -> None:
    """The kernel begins with its own values; what is set now is somebody's wish."""
    left(folder, root)
    put(root, "proc/sys/kernel/random/boot_id", "another")
    (line,) = restore_leftovers(folder, root)
    assert "last start of the device" in line
    assert (root / GOVERNOR).read_text() == "performance"
    assert not (folder / FILE_NAME).exists()


def test_what_somebody_else_has_set_is_left_and_told(folder: Path, root: Path) -> None:
    """A third value is no one's mistake."""
    left(folder, root, now="powersave")
    (line,) = restore_leftovers(folder, root)
    assert "somebody else has set 'powersave' meanwhile; left so (it was 'ondemand')" in line
    assert (root / GOVERNOR).read_text() == "powersave"
    assert not (folder / FILE_NAME).exists()


def test_a_processor_that_is_offline_is_restored_when_it_is_back(folder: Path, root: Path) -> None:
    """It comes back with the governor that it had, so the file stays until then."""
    left(folder, root)
    (root / GOVERNOR).rename(root / "offline")
    (line,) = restore_leftovers(folder, root)
    assert "cannot be read now; it was 'ondemand', which a later run restores" in line
    (root / "offline").rename(root / GOVERNOR)
    assert "restored to 'ondemand'" in restore_leftovers(folder, root)[0]
    assert not (folder / FILE_NAME).exists()


def test_a_processor_that_stays_offline_is_forgotten_by_the_next_boot(folder: Path, root: Path) -> None:
    """The kernel has set its own governor then."""
    left(folder, root)
    (root / GOVERNOR).unlink()
    restore_leftovers(folder, root)
    put(root, "proc/sys/kernel/random/boot_id", "another")
    restore_leftovers(folder, root)
    assert not (folder / FILE_NAME).exists()


def other(folder: Path, process_id: int, **said: int) -> None:
    plain = json.loads((folder / FILE_NAME).read_text())
    (folder / FILE_NAME).write_text(json.dumps({**plain, "process_id": process_id, **said}))


def test_what_could_not_be_restored_stays_through_the_next_run(folder: Path, root: Path) -> None:
    left(folder, root)
    other(folder, 2**22 + 1)
    second = Change(path=GOVERNOR.replace("policy0", "policy1"), before="ondemand", set_to=("powersave",))
    put(root, second.path, "powersave")
    kept = keep((Change(path=GOVERNOR, before="performance", set_to=("powersave",)), second), folder, root)
    assert kept == (CHANGE.and_to(["powersave"]), second)
    put(root, GOVERNOR, "powersave")
    assert all(each.is_restored for each in restore(kept, folder, root))
    assert (root / GOVERNOR).read_text() == (root / second.path).read_text() == "ondemand"
    assert not (folder / FILE_NAME).exists()


def test_what_the_kernel_refuses_is_tried_again(folder: Path, root: Path) -> None:
    """The file stays until it has been restored."""
    left(folder, root, Change(path=GOVERNOR, before="ondemand", set_to=("Linux",)))
    put(root, GOVERNOR, UNWRITABLE)
    (line,) = restore_leftovers(folder, root)
    assert "is still 'Linux'; 'ondemand' cannot be restored" in line
    assert (folder / FILE_NAME).exists()
    put(root, GOVERNOR, "Linux")
    assert "restored" in restore_leftovers(folder, root)[0]
    assert not (folder / FILE_NAME).exists()


def test_a_process_that_still_runs_keeps_what_it_has_set(folder: Path, root: Path) -> None:
    """Its changes are not undone under it; with another start time it is another process."""
    stat = f"1 (a) (b) S {' '.join(map(str, range(4, 30)))}"
    put(root, "proc/1/stat", stat)
    left(folder, root)
    other(folder, 1, process_start=22)
    with pytest.raises(DeviceError, match="process 1 still holds"):
        restore_leftovers(folder, root)
    with pytest.raises(DeviceError, match="process 1 still holds"):
        keep((CHANGE,), folder, root)
    assert restore_leftovers(folder, root, is_nested=True) == ()
    assert (root / GOVERNOR).read_text() == "performance"
    put(root, "proc/1/stat", stat.replace(" 22 ", " 99 "))
    assert "restored" in restore_leftovers(folder, root, is_nested=True)[0]


def test_this_process_is_not_in_its_own_way(folder: Path, root: Path) -> None:
    """What it has set is left to the context around that has set it; with another start time it is another process."""
    stat = f"{os.getpid()} (a) (b) S {' '.join(map(str, range(4, 30)))}"
    put(root, f"proc/{os.getpid()}/stat", stat)
    left(folder, root)
    assert restore_leftovers(folder, root) == ()
    assert (root / GOVERNOR).read_text() == "performance"
    put(root, f"proc/{os.getpid()}/stat", stat.replace(" 22 ", " 99 "))
    assert "restored" in restore_leftovers(folder, root)[0]


@pytest.mark.parametrize(
    "path", ["etc/passwd", "sys/../etc/scaling_governor", "/sys/governor", "sys/kernel/profiling", 7]
)
def test_a_file_that_names_anything_else_is_put_aside(folder: Path, root: Path, path: object) -> None:
    """Only governors are ever written, whatever a file says."""
    left(folder, root)
    plain = json.loads((folder / FILE_NAME).read_text())
    plain["changes"][0]["path"] = path
    (folder / FILE_NAME).write_text(json.dumps(plain))
    (line,) = restore_leftovers(folder, root)
    assert "is damaged; kept as restore.json.damaged" in line
    assert (root / GOVERNOR).read_text() == "performance"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, root: Path) -> None:
    """The error names the file, and nothing half written stays."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceError, match=r"file/restore\.json: cannot be written \(\w"):
        keep((CHANGE,), tmp_path / "file", root)
