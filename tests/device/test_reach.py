"""A way to a device is told in words that mean one thing."""

from __future__ import annotations

import pytest

from perfsuite.device.reach import Reach


@pytest.mark.parametrize(
    ("reach", "text"),
    [
        (Reach(), "local"),
        (Reach(way="adb"), "adb"),
        (Reach(way="adb", address="10.0.0.2:5555"), "adb 10.0.0.2:5555"),
        (Reach(way="ssh", address="ada@pi", port=2222), "ssh ada@pi:2222"),
        (Reach(way="ssh", address="fe80::1"), "ssh fe80::1"),
        (Reach(way="ssh", address="ada@fe80::1", port=22), "ssh ada@[fe80::1]:22"),
    ],
)
def test_a_port_is_told_from_an_ipv6_address(reach: Reach, text: str) -> None:
    """The address has brackets where a port follows, as it is written for --perf-address."""
    assert reach.text == text
