"""What ``--farm`` does to a run's profile."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.reach import Reach
from perfsuite.plugin.farm_options import FARM_BOARD_KEY, on_farm_board

from ..farm_daemons import running_farm

REACHED = replace(find_profile("host"), name="my-shelf", kind="shelf", reach=Reach(way="ssh", identity_file="key"))


class Config:
    """What of pytest's configuration is used: options, a stash, what is called at the end."""

    def __init__(self, **options: object) -> None:
        self.option = Namespace(**{"farm": None, "farm_wait": "1h", "farm_break": None, "farm_avoid": None, **options})
        self.stash = pytest.Stash()
        self.ends = ExitStack()
        self.pluginmanager = pytest.PytestPluginManager()

    def add_cleanup(self, end: Callable[[], None]) -> None:
        """Call it at the end."""
        self.ends.callback(end)


def on_board(config: Config, profile: Profile) -> Profile:
    """Return the profile with the way to a board."""
    return on_farm_board(cast(Any, config), profile)


def test_a_run_without_a_farm_is_left_alone() -> None:
    """Nothing is asked of labgrid."""
    config = Config()
    assert on_board(config, REACHED) is REACHED
    assert FARM_BOARD_KEY not in config.stash


@pytest.mark.parametrize(
    ("options", "profile", "told"),
    [
        ({"farm_break": "attic"}, REACHED, "--farm-break=attic: needs --farm"),
        ({"farm_avoid": "attic"}, REACHED, "--farm-avoid=attic: needs --farm"),
        ({"farm": ""}, find_profile("host"), "--farm: host is this machine"),
        ({"farm": ""}, find_profile("pixel8pro"), "--farm: pixel8pro is reached by adb"),
    ],
)
def test_what_no_farm_can_do_is_refused(options: dict[str, object], profile: Profile, told: str) -> None:
    """Breaking a lock without a farm, and borrowing this machine."""
    with pytest.raises(pytest.UsageError, match=told):
        on_board(Config(**options), profile)


@pytest.mark.long
def test_a_run_has_its_board_until_pytest_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The profile leads to the board, the stash says which, and the end gives it back."""
    with running_farm(tmp_path) as farm:
        place = farm.add_board("shelf")
        config = Config(farm=farm.coordinator)
        with config.ends:
            profile = on_board(config, REACHED)
            assert profile.reach.address == "root@127.0.0.1"
            assert profile.reach.identity_file == "key"
            assert config.stash[FARM_BOARD_KEY].place == place
            assert not farm.is_free(place)
        assert farm.is_free(place)
        assert f"perfsuite: gave {place} back\n" in capsys.readouterr().err
