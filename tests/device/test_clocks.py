"""What the kernel says of the clocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.clocks import clock_conditions
from tests.sys_trees import BOARDS, plant


def machine(root: Path, *ranges: tuple[str, str]) -> Path:
    """Write a policy for each range."""
    for number, (lowest, highest) in enumerate(ranges):
        policy = root / f"sys/devices/system/cpu/cpufreq/policy{number}"
        policy.mkdir(parents=True)
        (policy / "scaling_min_freq").write_text(f"{lowest}\n")
        (policy / "scaling_max_freq").write_text(f"{highest}\n")
    return root


@pytest.mark.parametrize(
    ("ranges", "state"),
    [
        ([("800000", "800000"), ("2400000", "2400000")], "locked"),
        ([("800000", "800000"), ("800000", "2400000")], "not locked"),
        ([("800000", "800000"), ("800000", "fast")], "not known"),
        ([("800000", "800000"), ("800000", "")], "not known"),
        ([("\0", "800000")], "not known"),
        ([], "not known"),
    ],
)
def test_clocks_are_locked_where_no_policy_leaves_a_choice(
    tmp_path: Path, ranges: list[tuple[str, str]], state: str
) -> None:
    """One policy with a range is enough to unlock them, and one that does not say to know nothing."""
    assert clock_conditions(machine(tmp_path, *ranges)) == {"governor": "none", "clocks": state}


def test_the_governor_is_told(tmp_path: Path) -> None:
    """It is the first core's."""
    folder = tmp_path / "sys/devices/system/cpu/cpu0/cpufreq"
    folder.mkdir(parents=True)
    (folder / "scaling_governor").write_text("performance\n")
    assert clock_conditions(tmp_path)["governor"] == "performance"


def test_a_board_that_scales_is_not_locked(tmp_path: Path) -> None:
    """As none is when it comes out of its box."""
    for board in BOARDS:
        assert clock_conditions(plant(board, tmp_path / board))["clocks"] == "not locked"
