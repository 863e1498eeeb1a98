"""Which frequency governors may be set, in a made-up ``/sys``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.governors import settable_governors
from tests.sys_trees import UNREADABLE, put


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


def test_what_every_core_offers_is_settable(root: Path) -> None:
    assert settable_governors(root) == ("performance", "powersave")
    assert settable_governors(root / "nothing") == ()


@pytest.mark.parametrize("offered", [UNREADABLE, b"\xff\xfe", ""])
def test_what_is_offered_and_cannot_be_read_is_nothing(root: Path, offered: str | bytes | Path) -> None:
    put(root, "sys/devices/system/cpu/cpufreq/policy4/scaling_available_governors", offered)
    assert settable_governors(root) == ()
