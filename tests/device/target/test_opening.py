"""Every way of a profile opens, and no other."""

from __future__ import annotations

import pytest

from perfsuite.device.reach import WAYS, Reach
from perfsuite.device.target.opening import open_target
from perfsuite.errors import DeviceError


@pytest.mark.parametrize("way", WAYS)
def test_every_way_opens_without_asking_the_device(way: str) -> None:
    """Opening runs nothing, so a device that is away is opened, too; its words name the way and the address."""
    target = open_target(Reach(way=way, address="nowhere.invalid"))
    assert target.text.startswith(way)
    target.close()


def test_another_way_is_refused() -> None:
    """A way that there is not is told with those that there are."""
    with pytest.raises(DeviceError, match=r"'telnet': no way to a device; .* local, ssh, adb"):
        open_target(Reach(way="telnet"))
