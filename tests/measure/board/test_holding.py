"""This machine is had by one run at a time, with the processors and the governor that its conditions name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.governors import STATE_FOLDER
from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.errors import DeviceError, LockedError
from perfsuite.measure.board.holding import Claim, Held
from perfsuite.measure.board.local_board import LocalBoard
from tests.device_lock import LOCK_NAME, lock_holder, owner_called

from ...sys_trees import put

GOVERNOR = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"

#: Takes this machine with conditions; what is not given back by then is after the test.
Taken = Callable[..., LocalBoard]


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Taken]:
    boards: list[LocalBoard] = []

    def take(conditions: Conditions = NO_CONDITIONS, tell: Callable[[str], None] = print, **changes: Any) -> LocalBoard:
        claim = Claim(
            name="pi",
            user="ada",
            host="desk",
            run_id="1",
            purpose="a test",
            lock_folder=str(tmp_path),
            is_shared=True,
        )
        root = tmp_path / "tree" if (tmp_path / "tree").exists() else Path("/")
        boards.append(
            LocalBoard(
                cache_dir=tmp_path / "cache",
                conditions=conditions,
                claim=replace(claim, **changes),
                tell=tell,
                root=root,
            )
        )
        boards[-1].open()
        return boards[-1]

    yield take
    for each in reversed(boards):
        each.close()


def test_somebody_is_waited_for_until_the_time_is_up(taken: Taken) -> None:
    """The owner of the machine is named at once, and again in the end."""
    told: list[str] = []
    taken()
    with pytest.raises(LockedError, match="waited"):
        taken(tell=told.append, run_id="2", wait_s=0.3)
    (line,) = told
    assert "ada from desk" in line


def test_the_processors_are_given_back(taken: Taken) -> None:
    before = os.sched_getaffinity(0)
    board = taken(Conditions(processors=(min(before),)))
    assert os.sched_getaffinity(0) == {min(before)}
    board.close()
    assert os.sched_getaffinity(0) == before
    with pytest.raises(DeviceError, match="4096"):
        taken(Conditions(processors=(4096,)))
    assert os.sched_getaffinity(0) == before


@pytest.fixture
def governor(tmp_path: Path) -> Path:
    """Let this machine have a governor, which is in a tree of the test's."""
    tree = tmp_path / "tree"
    put(tree, str(Path(GOVERNOR).parent / "scaling_available_governors"), "performance powersave schedutil")
    put(tree, "sys/devices/system/cpu/cpu0/cpufreq", Path("../cpufreq/policy0"))
    return put(tree, GOVERNOR, "schedutil")


def test_a_process_of_the_same_run_leaves_the_governor_to_the_one_around_it(taken: Taken, governor: Path) -> None:
    """It measures under what that one has set, which restores it; where it would have another one, it says so."""
    outer = taken(Conditions(governor="performance"))
    assert governor.read_text().strip() == "performance"
    inner = taken(Conditions(governor="performance"))
    assert inner.held() == Held()
    inner.close()
    inner = taken(Conditions(governor="powersave"))
    assert "still holds what it has set, and restores that itself" in str(inner.held().notes)
    inner.close()
    assert governor.read_text().strip() == "performance"
    with pytest.raises(LockedError, match="held by ada from desk"):
        taken(run_id="2")
    outer.close()
    assert outer.held() == Held()
    assert governor.read_text().strip() == "schedutil"


def test_a_process_of_the_same_run_may_set_what_the_one_around_it_has_not(
    taken: Taken, governor: Path, tmp_path: Path
) -> None:
    """It restores that itself, before the other one goes on; that one's end is noticed by the one within."""
    outer = taken()
    inner = taken(Conditions(governor="performance"))
    assert governor.read_text().strip() == "performance"
    inner.close()
    assert inner.held() == Held()
    assert governor.read_text().strip() == "schedutil"
    assert list((tmp_path / "cache" / STATE_FOLDER).glob("restore.json*")) == []
    inner = taken()
    outer.close()
    assert "the device's lock was lost" in str(inner.held().problems)


def test_what_a_killed_run_changed_is_restored_by_the_next(taken: Taken, governor: Path, tmp_path: Path) -> None:
    """Also where its lock names another cache than this run's."""
    change = {"path": GOVERNOR, "before": "powersave", "set_to": ["schedutil"]}
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    left = {"boot_id": boot, "process_id": 2**22 + 1, "process_start": 1, "changes": [change]}
    put(tmp_path, "other/restore.json", json.dumps(left))
    dead = owner_called("ada", run_id="0", state_folder=str(tmp_path / "other"))
    (tmp_path / LOCK_NAME).write_text(json.dumps(dead.to_plain()))
    killed, *notes = taken().held().notes
    assert killed.startswith("the run before this one was killed: ada from desk")
    assert any("restored to 'powersave'" in each for each in notes)
    assert governor.read_text().strip() == "powersave"


def test_a_program_that_was_ended_is_told_and_does_not_come_back(taken: Taken, tmp_path: Path) -> None:
    """As by 'perfsuite devices unlock --force': the run ends, and what it had is restored."""
    board = taken()
    owner = lock_holder(tmp_path)
    assert owner is not None
    os.kill(owner.pid, 15)
    for _ in range(2):
        with pytest.raises(Exception, match=r"^pi: the program there was ended from outside"):
            board.competition()
    assert lock_holder(tmp_path) is None
