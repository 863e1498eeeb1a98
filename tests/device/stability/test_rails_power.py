"""Power of a Raspberry Pi's rails."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.rails_power import find_rails_power
from tests.sys_trees import plant, put


def test_the_rails_are_added(tmp_path: Path) -> None:
    """What is left out is said."""
    (found,) = find_rails_power(plant("raspberrypi5", tmp_path))
    assert found.read().watts == pytest.approx(5.511)
    assert "USB devices" in found.covers
    assert "losses" in found.covers


def test_an_older_board_has_no_rails(tmp_path: Path) -> None:
    """Its firmware answers that it does not know the question."""
    put(tmp_path, "usr/bin/vcgencmd", "#!/bin/sh\necho error=1 'error_msg=\"Command not registered\"'")
    assert find_rails_power(tmp_path)[0].read().watts is None


def test_another_board_is_not_asked(tmp_path: Path) -> None:
    """There is nobody to ask."""
    assert find_rails_power(plant("rubikpi", tmp_path)) == ()
