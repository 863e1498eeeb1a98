"""Setting the frequency governor, in a made-up ``/sys``."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from perfsuite.device.governors import governor_set, settable_governors
from perfsuite.device.machine import Conditions
from perfsuite.device.stability.restore_file import restore_leftovers
from perfsuite.device.stability.stabilised import stabilised
from perfsuite.errors import DeviceError
from tests.sys_trees import UNREADABLE, put

#: Sets a governor for a run, and another one within it, and is killed.
_KILLED = """
import os, signal, sys
from pathlib import Path
from perfsuite.device.machine import Conditions
from perfsuite.device.governors import governor_set
from perfsuite.device.stability.stabilised import stabilised
folder, root = map(Path, sys.argv[1:])
with stabilised(Conditions(governor="performance"), folder=folder, root=root):
    with governor_set("powersave", folder=folder, root=root):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two clusters of cores, one of which offers more governors than the other."""
    offers = {0: "performance powersave schedutil", 4: "performance powersave"}
    for number, offered in offers.items():
        policy = tmp_path / f"sys/devices/system/cpu/cpufreq/policy{number}"
        policy.mkdir(parents=True)
        (policy / "scaling_available_governors").write_text(f"{offered}\n")
        (policy / "scaling_governor").write_text("schedutil\n" if number == 0 else "powersave\n")
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def chosen(root: Path) -> list[str]:
    return [path.read_text().strip() for path in sorted(root.rglob("scaling_governor"))]


def test_what_every_core_offers_is_settable(root: Path) -> None:
    assert settable_governors(root) == ("performance", "powersave")
    assert settable_governors(root / "nothing") == ()


@pytest.mark.parametrize("offered", [UNREADABLE, b"\xff\xfe", ""])
def test_what_is_offered_and_cannot_be_read_is_nothing(root: Path, offered: str | bytes | Path) -> None:
    put(root, "sys/devices/system/cpu/cpufreq/policy4/scaling_available_governors", offered)
    assert settable_governors(root) == ()


@pytest.mark.parametrize("content", [UNREADABLE, ""])
def test_a_governor_that_cannot_be_read_is_one_line(root: Path, folder: Path, content: str | Path) -> None:
    """What is not known cannot be restored, and is not set; the others have their own back."""
    put(root, "sys/devices/system/cpu/cpufreq/policy4/scaling_governor", content)
    refused = r"governor cannot be read \(.*policy4/scaling_governor\), and was not set to 'performance'$"
    with pytest.raises(DeviceError, match=refused), governor_set("performance", folder=folder, root=root):
        pass
    assert (root / "sys/devices/system/cpu/cpufreq/policy0/scaling_governor").read_text().strip() == "schedutil"


@pytest.mark.parametrize(("name", "within"), [("performance", ["performance"] * 2), (None, ["schedutil", "powersave"])])
@pytest.mark.parametrize("is_failing", [False, True])
def test_a_governor_is_set_and_restored(
    root: Path, folder: Path, name: str | None, within: list[str], is_failing: bool
) -> None:
    with suppress(KeyError), governor_set(name, folder=folder, root=root):
        assert chosen(root) == within
        if is_failing:
            raise KeyError
    assert chosen(root) == ["schedutil", "powersave"]


def test_what_a_killed_process_had_set_is_restored(root: Path, folder: Path) -> None:
    """Killed while one governor is set within a run that has set another, it leaves what was there before both."""
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("this one")
    done = subprocess.run([sys.executable, "-c", _KILLED, str(folder), str(root)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert chosen(root) == ["powersave", "powersave"]
    assert all("restored to" in line for line in restore_leftovers(folder, root))
    assert chosen(root) == ["schedutil", "powersave"]
    assert not (folder / "restore.json").exists()


def test_within_a_run_its_own_governor_comes_back(root: Path, folder: Path) -> None:
    """After each of several governors the run's is set again, and at its end what was there before, without a note."""
    with stabilised(Conditions(governor="performance"), folder=folder, root=root) as stability:
        for name in ("powersave", "performance", "powersave"):
            with governor_set(name, folder=folder, root=root):
                assert chosen(root) == [name, name]
            assert chosen(root) == ["performance", "performance"]
    assert chosen(root) == ["schedutil", "powersave"]
    assert stability.notes == []


@pytest.mark.parametrize("kept", ["schedutil", None])
def test_a_governor_that_is_not_taken_is_one_line(
    root: Path, folder: Path, kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "perfsuite.device.stability.governing.write_line", lambda *_: "Permission denied" if kept is None else None
    )
    with pytest.raises(DeviceError, match="policy0"), governor_set("performance", folder=folder, root=root):
        pass
