"""What a run changes on a machine is set, told where it cannot be, and restored, by this run or by a later one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.governors import FILE_NAME, STATE_FOLDER
from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.errors import DeviceError
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.local_board import LocalBoard
from tests.sys_trees import BOARDS, UNREADABLE, UNWRITABLE, governors, plant, put

POLICY = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
FAST = Conditions(governor="performance")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@contextmanager
def taken(root: Path, folder: Path, conditions: Conditions = NO_CONDITIONS) -> Iterator[LocalBoard]:
    """Have a machine whose files are below a root, with the cache and the lock in a folder."""
    claim = Claim(name="pi", user="ada", host="desk", run_id="1", purpose="a test", lock_folder=str(folder))
    folder.mkdir(exist_ok=True)
    board = LocalBoard(cache_dir=folder, conditions=conditions, claim=claim, root=root)
    try:
        board.open()
        yield board
    finally:
        board.close()


def kept(folder: Path) -> Path:
    return folder / STATE_FOLDER / FILE_NAME


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.mark.parametrize("name", BOARDS)
def test_a_boards_governors_are_set_and_restored(tmp_path: Path, folder: Path, name: str) -> None:
    root = plant(name, tmp_path / "board")
    before = governors(root)
    with taken(root, folder, FAST) as board:
        assert set(governors(root)) == {"performance"}
        assert [each["before"] for each in json.loads(kept(folder).read_text())["changes"]] == before
        board.set_governor(None)
        assert set(governors(root)) == {"performance"}
    assert governors(root) == before
    assert board.held().notes == ()
    assert list(kept(folder).parent.iterdir()) == []


def test_the_gpus_governor_is_set_too(tmp_path: Path, folder: Path) -> None:
    """Memory and NPU of the same class keep theirs."""
    root = plant("orangepi5", tmp_path)
    with taken(root, folder, Conditions(gpu_governor="performance")) as board:
        assert governors(root, "sys/class/devfreq/*/governor") == ["dmc_ondemand", "performance", "rknpu_ondemand"]
        assert set(governors(root)) == {"ondemand"}
    assert governors(root, "sys/class/devfreq/fb*/governor") == ["simple_ondemand"]
    assert board.held().notes == ()


@pytest.mark.parametrize(
    ("name", "conditions"), [("rubikpi", NO_CONDITIONS), ("raspberrypi5", Conditions(governor="ondemand"))]
)
def test_what_is_so_already_changes_nothing(tmp_path: Path, folder: Path, name: str, conditions: Conditions) -> None:
    root = plant(name, tmp_path)
    before = governors(root)
    with taken(root, folder, conditions) as board:
        assert governors(root) == before
        assert not kept(folder).exists()
    assert board.held().notes == ()


Change = Callable[[Path, Path], object]


@pytest.mark.parametrize(
    ("name", "change", "conditions", "told"),
    [
        (
            "orangepi5",
            lambda root, _: put(root, POLICY, UNWRITABLE),
            FAST,
            r"governor is 'Linux'; 'performance' cannot be set( without root)? \(policy0: .*\); times vary more",
        ),
        (
            "pixel8pro",
            None,
            Conditions(gpu_governor="performance"),
            r"GPU's governor is 'quickstep'; 'performance' is not offered "
            r"\(1f000000.mali: offered are basic quickstep\); times vary more",
        ),
        *(
            ("raspberrypi5", lambda root, _, content=content: put(root, POLICY, content), FAST, ".* cannot be .*")
            for content in (UNREADABLE, "", Path("/nowhere"), b"\x80", "two words")
        ),
        (
            "raspberrypi5",
            None,
            Conditions(gpu_governor="performance"),
            "GPU's governor 'performance' cannot be set: no control of a GPU's frequency here; times vary more",
        ),
        (
            "raspberrypi5",
            lambda _, folder: put(folder, STATE_FOLDER, "no folder"),
            FAST,
            "governors are left as they are, for they could not be restored: .*cannot be written .*",
        ),
    ],
)
def test_what_cannot_be_set_is_one_note(
    tmp_path: Path, folder: Path, name: str, change: Change | None, conditions: Conditions, told: str
) -> None:
    """The run goes on; what is not known, or could not be restored, is not changed."""
    root = plant(name, tmp_path / "board")
    if change is not None:
        change(root, folder)
    with taken(root, folder, conditions) as board:
        (note,) = board.held().notes
    assert re.fullmatch(told, note), note
    assert not kept(folder).exists()


def left(folder: Path, *, now: str, root: Path, **said: Any) -> None:
    """Leave what a run that was killed has left: its file, and what it or somebody else has set."""
    change = {"path": POLICY, "before": "ondemand", "set_to": ["performance"]}
    plain = {"boot_id": BOOT_ID, "process_id": 2**22 + 1, "process_start": 1, "changes": [change], **said}
    put(folder, f"{STATE_FOLDER}/{FILE_NAME}", json.dumps(plain))
    if now:
        put(root, POLICY, now)


@pytest.mark.parametrize(
    ("now", "said", "told", "then"),
    [
        ("performance", {}, "left by a run that was killed: .*: restored to 'ondemand'", "ondemand"),
        ("ondemand", {}, None, "ondemand"),
        ("performance", {"boot_id": "another"}, ".*last start of the device, .*removed", "performance"),
        ("powersave", {}, ".*somebody else has set 'powersave' meanwhile; left so .*'ondemand'.", "powersave"),
        *(
            (
                "performance",
                {"changes": [{"path": path, "before": "ondemand", "set_to": ["performance"]}]},
                ".*is damaged; kept as restore.json.damaged, .*",
                "performance",
            )
            for path in ("etc/passwd", "sys/../etc/scaling_governor", "/sys/governor", "sys/kernel/profiling", 7)
        ),
    ],
)
def test_what_a_killed_run_left(
    tmp_path: Path, folder: Path, now: str, said: dict[str, Any], told: str | None, then: str
) -> None:
    """It is restored, except what is another boot's or somebody else's; only governors are ever written."""
    root = plant("raspberrypi5", tmp_path / "board")
    left(folder, now=now, root=root, **said)
    with taken(root, folder) as board:
        notes = board.held().notes
    assert len(notes) == (told is not None)
    assert told is None or re.fullmatch(told, notes[0]), notes
    assert (root / POLICY).read_text().strip() == then
    assert not kept(folder).exists()


@pytest.mark.parametrize("is_offline", [True, False])
def test_what_cannot_be_restored_is_tried_again(tmp_path: Path, folder: Path, is_offline: bool) -> None:
    """A processor that is offline comes back with the governor that it had; a kernel may refuse for a while."""
    root = plant("raspberrypi5", tmp_path / "board")
    if is_offline:
        left(folder, now="performance", root=root)
        (root / POLICY).rename(root / "offline")
        told = "cannot be read now; it was 'ondemand', which a later run restores"
    else:
        changes = [{"path": POLICY, "before": "ondemand", "set_to": ["Linux"]}]
        left(folder, now="", root=root, changes=changes)
        put(root, POLICY, UNWRITABLE)
        told = "is still 'Linux'; 'ondemand' cannot be restored"
    with taken(root, folder) as board:
        assert told in board.held().notes[0]
    assert kept(folder).exists()
    if is_offline:
        (root / "offline").rename(root / POLICY)
    else:
        put(root, POLICY, "Linux")
    with taken(root, folder) as board:
        assert "restored to 'ondemand'" in board.held().notes[0]
    assert not kept(folder).exists()


def test_a_process_that_still_runs_keeps_what_it_has_set(tmp_path: Path, folder: Path) -> None:
    root = plant("raspberrypi5", tmp_path / "board")
    ticks = int(Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19])
    left(folder, now="performance", root=root, process_id=os.getpid(), process_start=ticks)
    with pytest.raises(DeviceError, match=f"process {os.getpid()} still holds"), taken(root, folder):
        pass
    assert (root / POLICY).read_text().strip() == "performance"
