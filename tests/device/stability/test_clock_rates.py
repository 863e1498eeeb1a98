"""The rates of the processors."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.clock_rates import cpuinfo_mhz, find_policies, mean_mhz
from tests.sys_trees import UNREADABLE, plant, put


def mean(root: Path, *processors: int) -> float | None:
    """Return the mean rate of some processors."""
    return mean_mhz([(each, each.khz()) for each in find_policies(root, processors)], processors)


def test_the_mean_is_over_the_processors_used(tmp_path: Path) -> None:
    """Four cores of 1958.4 MHz, three of 2400 and one of 2707.2; those that rest do not count."""
    root = plant("rubikpi", tmp_path)
    assert mean(root) == pytest.approx((4 * 1958.4 + 3 * 2400 + 2707.2) / 8, abs=0.05)
    assert mean(root, 4, 5, 7) == pytest.approx((2 * 2400 + 2707.2) / 3, abs=0.05)
    assert mean(root, 7) == 2707.2
    assert mean(root, 99) is None


@pytest.mark.parametrize("rate", ["0", "-1", "99999999", "fast", "", UNREADABLE, None])
def test_a_rate_that_cannot_be_is_left_out(tmp_path: Path, rate: str | Path | None) -> None:
    """The mean is over the others; without any it is None."""
    root = plant("orangepi5", tmp_path)
    put(root, "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq", rate)
    assert mean(root) == (2400 + 2256) / 2
    assert mean(root, 0, 1) is None


def test_processors_that_are_not_told_count_once(tmp_path: Path) -> None:
    """A group of unknown size is one."""
    root = plant("raspberrypi5", tmp_path)
    put(root, "sys/devices/system/cpu/cpufreq/policy0/related_cpus", "zero one")
    assert mean(root) == mean(root, 3) == 2400


@pytest.mark.parametrize(
    ("text", "mhz"),
    [
        ("processor\t: 0\ncpu MHz\t\t: 2596.100\nprocessor : 1\ncpu MHz\t\t: 2600.100", 2598.1),
        ("processor : 0\nBogoMIPS : 108.00", None),
        ("cpu MHz : 0.000", None),
        ("cpu MHz : nan", None),
    ],
)
def test_x86_tells_its_rate_elsewhere(tmp_path: Path, text: str, mhz: float | None) -> None:
    """Virtual machines have no other."""
    put(tmp_path, "proc/cpuinfo", text)
    assert cpuinfo_mhz(tmp_path) == mhz
