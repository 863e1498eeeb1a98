"""A machine is had by one run at a time, with the processors that its conditions name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.device.stability.restore_file import STATE_FOLDER
from perfsuite.device.stability.stabilised import stabilised
from perfsuite.errors import DeviceError, LockedError
from perfsuite.measure.board.holding import Claim, Held, held
from tests.device_lock import LOCK_NAME, owner_called

from ...sys_trees import put


def claim(tmp_path: Path, **changes: object) -> Claim:
    told = Claim(name="pi", user="ada", host="desk", run_id="1", purpose="a test", lock_folder=str(tmp_path))
    return replace(told, **changes)  # type: ignore[arg-type]


def test_somebody_is_waited_for_until_the_time_is_up(tmp_path: Path) -> None:
    """The owner of the machine is named at once, and again in the end."""
    told: list[str] = []
    with (
        held(NO_CONDITIONS, claim(tmp_path), told.append, cache_dir=tmp_path / "cache"),
        pytest.raises(LockedError, match="waited"),
        held(NO_CONDITIONS, claim(tmp_path, run_id="2", wait_s=0.3), told.append, cache_dir=tmp_path / "cache"),
    ):
        pass
    (line,) = told
    assert "ada from desk" in line


def test_the_processors_are_given_back(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    one = Conditions(processors=(min(before),))
    with held(one, claim(tmp_path), print, cache_dir=tmp_path / "cache"):
        assert os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before
    with (
        pytest.raises(DeviceError, match="4096"),
        held(Conditions(processors=(4096,)), claim(tmp_path), print, cache_dir=tmp_path / "cache"),
    ):
        pass
    assert os.sched_getaffinity(0) == before


GOVERNOR = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"

#: Has the machine with a governor, in a process of its own; says what it came to, or why it was refused.
_INNER = """
import json, sys
from functools import partial
from pathlib import Path
from perfsuite.device.machine import Conditions
from perfsuite.device.stability import stabilised
from perfsuite.errors import PerfsuiteError
from perfsuite.measure.board.holding import Claim, held
folder, run_id, governor = Path(sys.argv[1]), *sys.argv[2:]
stabilised.stabilised = partial(stabilised.stabilised, root=folder / "tree")
claim = Claim(name="pi", user="ada", host="desk", run_id=run_id, purpose="within", lock_folder=str(folder))
try:
    with held(Conditions(governor=governor), claim, print, cache_dir=folder / "cache") as seen:
        notes = seen().notes
    print(json.dumps({"notes": notes, "after": seen().notes}))
except PerfsuiteError as error:
    print(json.dumps({"error": str(error)}))
"""


@pytest.fixture
def governor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let this machine have a governor, which is in a tree of the test's; processes are the machine's own."""
    tree = tmp_path / "tree"
    put(tree, str(Path(GOVERNOR).parent / "scaling_available_governors"), "performance powersave schedutil")
    put(tree, "sys/devices/system/cpu/cpu0/cpufreq", Path("../cpufreq/policy0"))
    put(tree, "proc", Path("/proc"))
    monkeypatch.setattr("perfsuite.device.stability.stabilised.stabilised", partial(stabilised, root=tree))
    return put(tree, GOVERNOR, "schedutil")


def within(folder: Path, run_id: str, governor: str) -> dict[str, object]:
    line = [sys.executable, "-c", _INNER, str(folder), run_id, governor]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    told: dict[str, object] = json.loads(done.stdout)
    return told


def test_a_process_of_the_same_run_leaves_the_governor_to_the_one_around_it(tmp_path: Path, governor: Path) -> None:
    """It measures under what that one has set, which restores it; where it would have another one, it says so."""
    with held(Conditions(governor="performance"), claim(tmp_path), print, cache_dir=tmp_path / "cache") as seen:
        assert governor.read_text().strip() == "performance"
        assert within(tmp_path, "1", "performance") == {"notes": [], "after": []}
        assert governor.read_text().strip() == "performance"
        told = within(tmp_path, "1", "powersave")
        assert f"process {os.getpid()} still holds what it has set, and restores that itself" in str(told["notes"])
        assert governor.read_text().strip() == "performance"
        assert "held by ada from desk" in str(within(tmp_path, "2", "performance")["error"])
    assert seen() == Held()
    assert governor.read_text().strip() == "schedutil"


def test_a_process_of_the_same_run_may_set_what_the_one_around_it_has_not(tmp_path: Path, governor: Path) -> None:
    """It restores that itself, before the other one goes on."""
    with held(NO_CONDITIONS, claim(tmp_path), print, cache_dir=tmp_path / "cache"):
        assert within(tmp_path, "1", "performance") == {"notes": [], "after": []}
        assert governor.read_text().strip() == "schedutil"
    assert list((tmp_path / "cache" / STATE_FOLDER).glob("restore.json*")) == []


def test_what_a_crashed_run_changed_is_restored_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its lock names another cache than this run's."""
    asked: list[Path] = []
    monkeypatch.setattr(
        "perfsuite.device.stability.restore_file.restore_leftovers", lambda each: asked.append(each) or ("restored",)
    )
    (tmp_path / "other").mkdir()
    dead = owner_called("ada", run_id="0", purpose="a test", state_folder=str(tmp_path / "other"))
    (tmp_path / LOCK_NAME).write_text(json.dumps(dead.to_plain()))
    with held(NO_CONDITIONS, claim(tmp_path), print, cache_dir=tmp_path / "cache") as seen:
        killed, *notes = seen().notes
    assert killed.startswith("the run before this one was killed: ada from desk")
    assert (asked, "restored" in notes) == ([tmp_path / "other"], True)
