"""Clusters, and which processors are the fast ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.probe.processors import big_processors, clusters, processor_list

from .device_trees import readings, surveyed


@pytest.mark.parametrize(
    ("tree", "big"),
    [("rubikpi", (4, 5, 6, 7)), ("orangepi5", (4, 5, 6, 7)), ("raspberrypi5", ()), ("pixel8pro", (4, 5, 6, 7, 8))],
)
def test_the_fast_processors_of_four_boards(tree: str, big: tuple[int, ...], tmp_path: Path) -> None:
    """Small processors are left out; where all are alike, none is named."""
    assert big_processors(clusters(surveyed(tree, tmp_path))) == big


def test_capacities_tell_more_than_clocks() -> None:
    """Where the kernel tells capacities, they decide: a slow design may have a high clock."""
    found = clusters(
        readings(
            "/sys/devices/system/cpu/cpufreq/policy0/related_cpus = 0 1",
            "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq = 2000000",
            "/sys/devices/system/cpu/cpu0/cpu_capacity = 300",
            "/sys/devices/system/cpu/cpufreq/policy2/related_cpus = 2 3",
            "/sys/devices/system/cpu/cpufreq/policy2/cpuinfo_max_freq = 2100000",
            "/sys/devices/system/cpu/cpu2/cpu_capacity = 1024",
        )
    )
    assert big_processors(found) == (2, 3)


def test_without_control_of_clocks_there_is_one_cluster() -> None:
    """A virtual machine has its processors, and no governor."""
    (only,) = clusters(readings("/sys/devices/system/cpu/online = 0-1"))
    assert only.processors == (0, 1)
    assert only.path is None
    assert clusters(readings()) == ()


def test_lists_of_processors_are_read_in_both_forms() -> None:
    """The kernel writes ranges in some files and single numbers in others."""
    assert processor_list("0-2,5") == processor_list("0 1 2 5") == (0, 1, 2, 5)
    assert processor_list("") == ()
