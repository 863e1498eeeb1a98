"""Governors that are set for a while on a board."""

from __future__ import annotations

import json

import pytest

from perfsuite.device.governors import settable_governors
from perfsuite.device.machine import Conditions
from perfsuite.errors import DeviceError
from perfsuite.measure.board.protocol import under_governor

from ...sys_trees import UNWRITABLE, governors, put
from .conftest import OnTree, Opened, rooted

_POLICY = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"


@pytest.mark.parametrize("profiles", [None, "performance"])
def test_what_was_set_before_comes_back(on_tree: OnTree, opened: Opened, profiles: str | None) -> None:
    """A governor holds while it is asked for; then that of the profile does, and at the end the board's own."""
    root = rooted(home := on_tree("rubikpi"))
    own = governors(root)
    board = opened(home, Conditions(governor=profiles))
    kept = home.folder / "cache" / "perfsuite" / "device" / "restore.json"
    within = governors(root)
    if profiles is not None:
        assert set(within) == {profiles}
        assert len(json.loads(kept.read_text())["changes"]) == len(own)
    with under_governor(board, "ondemand"):
        assert set(governors(root)) == {"ondemand"}
        board.set_governor("userspace")
        assert set(governors(root)) == {"userspace"}
    assert governors(root) == within
    board.close()
    assert governors(root) == own
    assert board.held().problems == ()
    assert not kept.exists()


def test_a_governor_that_is_not_taken_is_an_error(on_tree: OnTree, opened: Opened) -> None:
    root = rooted(home := on_tree("rubikpi"))
    own = governors(root)
    board = opened(home)
    with pytest.raises(DeviceError, match=r"^board: governor is '\w+'; 'turbo' is not offered"):
        board.set_governor("turbo")
    put(root, _POLICY, UNWRITABLE)
    with pytest.raises(DeviceError, match=r"^board: governor is 'Linux'; 'ondemand' cannot be set \(policy0: "):
        board.set_governor("ondemand")
    assert governors(root)[1:] == own[1:]


def test_a_governor_that_is_not_given_back_is_an_error(on_tree: OnTree, opened: Opened) -> None:
    """What somebody else has set meanwhile is left, and told."""
    root = rooted(home := on_tree("rubikpi"))
    board = opened(home)
    board.set_governor("ondemand")
    (root / _POLICY).write_text("userspace\n")
    with pytest.raises(DeviceError, match=r"^board: .*/policy0/scaling_governor: somebody else has set 'userspace'"):
        board.set_governor(None)
    assert set(governors(root)[1:]) == {"schedutil"}


def test_what_may_be_set_is_what_the_board_would_say(on_tree: OnTree, opened: Opened) -> None:
    """What all cores offer, where its user may write to all of them."""
    root = rooted(home := on_tree("rubikpi"))
    expected = settable_governors(root)
    assert "performance" in expected
    assert opened(home).facts().settable_governors == expected
    put(root, _POLICY, UNWRITABLE)
    assert opened(home, run_id="run-1").facts().settable_governors == () == settable_governors(root)
