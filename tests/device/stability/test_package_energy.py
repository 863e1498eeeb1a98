"""Energy counted by x86 packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.package_energy import find_package_energy
from tests.sys_trees import UNREADABLE, put

ZONE = "sys/class/powercap/intel-rapl"
FULL_UJ = 262_143_328_850


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine of two packages, each with a part of its own."""
    for number in (0, 1):
        put(tmp_path, f"{ZONE}:{number}/name", f"package-{number}")
        put(tmp_path, f"{ZONE}:{number}/energy_uj", "1000000")
        put(tmp_path, f"{ZONE}:{number}/max_energy_range_uj", str(FULL_UJ))
        put(tmp_path, f"{ZONE}:{number}:0/name", "core")
        put(tmp_path, f"{ZONE}:{number}:0/energy_uj", "900000")
    return tmp_path


def count(root: Path, number: int, energy: str | Path) -> None:
    """Let a package's counter stand somewhere."""
    put(root, f"{ZONE}:{number}/energy_uj", energy)


def test_the_packages_are_added(root: Path) -> None:
    """Their parts are in them; the first reading is 0."""
    (found,) = find_package_energy(root)
    assert (found.read().counted_joules, len(found.counters)) == (0.0, 2)
    count(root, 0, "3000000")
    count(root, 1, "1500000")
    assert found.read().counted_joules == 2.5
    assert found.read().watts is None


def test_a_counter_that_begins_again_goes_on(root: Path) -> None:
    """What was left to its end is counted."""
    count(root, 0, str(FULL_UJ - 400_000))
    (found,) = find_package_energy(root)
    found.read()
    count(root, 0, "600000")
    assert found.read().counted_joules == pytest.approx(1.0)


def test_a_counter_that_goes_back_without_an_end_is_not_measured(root: Path) -> None:
    """Without its range nobody knows how much has passed, then or later."""
    (found,) = find_package_energy(root)
    found.read()
    put(root, f"{ZONE}:0/max_energy_range_uj", UNREADABLE)
    for energy in ("5", "9000000"):
        count(root, 0, energy)
        assert found.read().counted_joules is None


@pytest.mark.parametrize("energy", ["-1", "", "lots", UNREADABLE])
def test_a_counter_that_cannot_be_read_is_not_measured(root: Path, energy: str | Path) -> None:
    """One of two is not the machine; users other than root read none."""
    count(root, 1, energy)
    assert find_package_energy(root)[0].read().counted_joules is None


def test_a_counter_of_the_platform_is_taken_alone(root: Path) -> None:
    """The packages are in it."""
    put(root, f"{ZONE}:2/name", "psys")
    put(root, f"{ZONE}:2/energy_uj", "7")
    (found,) = find_package_energy(root)
    assert (len(found.counters), found.covers) == (1, "the platform")


def test_other_machines_have_none(tmp_path: Path) -> None:
    """Boards do not count energy."""
    assert find_package_energy(tmp_path) == ()
