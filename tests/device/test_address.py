"""An address says by which way a device is reached, and what is none is refused in one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.device.address import ACCEPTED, asked_reach, reach_of
from perfsuite.device.profile.values import Address, takes
from perfsuite.device.reach import HOMES, Reach
from perfsuite.errors import DeviceError

KEYED = Reach(way="ssh", address="pi", port=2222, identity_file="~/.ssh/pi", known_hosts_file="k", home="/opt/p")


@pytest.mark.parametrize(
    ("text", "way", "address", "port"),
    [
        ("local", "local", "", None),
        ("ssh:pi@board:2222", "ssh", "pi@board", 2222),
        ("ssh:ada@site@gate", "ssh", "ada@site@gate", None),
        ("ssh:ada@[fe80::1]:22", "ssh", "ada@fe80::1", 22),
        ("ssh:[fe80::1%eth0]", "ssh", "fe80::1%eth0", None),
        ("pi@board:2222", "ssh", "pi@board", 2222),
        ("adb", "adb", "", None),
        ("adb:0A1B2C", "adb", "0A1B2C", None),
        ("adb:10.0.0.2:5555", "adb", "10.0.0.2:5555", None),
        ("adb:[fe80::1]:5555", "adb", "[fe80::1]:5555", None),
    ],
)
def test_ways_and_addresses_are_told_apart(text: str, way: str, address: str, port: int | None) -> None:
    """A port of ssh is one, that of adb belongs to the serial number; keys and the folder there stay."""
    assert reach_of(text) == Reach(way=way, address=address, port=port, home=HOMES[way])
    reach = reach_of(text, KEYED)
    assert (reach.way, reach.address, reach.port) == (way, address, port)
    assert (reach.identity_file, reach.known_hosts_file, reach.home) == ("~/.ssh/pi", "k", "/opt/p")
    assert takes(Address, reach.address), "a profile that is written with it must be one"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'' is not a way to a device"),
        ("pi", "'pi' is not a way to a device"),
        ("local:x", "this machine has no address"),
        ("ssh:", "'' is not an address for ssh"),
        ("ssh:-oProxyCommand=x", "'-oProxyCommand=x' is not an address for ssh"),
        ("ssh:ada@-l", "'ada@-l' is not an address for ssh"),
        ("ssh:$(id)", "'$(id)' is not an address for ssh"),
        ("ssh:fe80::1", "'fe80::1' is not a host of ssh; an IPv6 address is written in brackets: ssh:[fe80::1]"),
        ("ssh:[::1]22", "'[::1]22' is not a host of ssh; an IPv6 address is written in brackets: ssh:[fe80::1]"),
        ("ssh:pi:", "'' is not a port, which is a whole number from 1 to 65535"),
        ("ssh:pi:65536", "'65536' is not a port, which is a whole number from 1 to 65535"),
        ("ssh:pi:\u0662\u0662", "'\u0662\u0662' is not a port, which is a whole number from 1 to 65535"),
        ("adb:-s", "'-s' is not a serial number of adb"),
        ("serial", "'' is not a serial port"),
        ("serial:/dev/ttyS0,fast", "'fast' is not a rate of serial ports, such as 115200"),
    ],
)
def test_what_is_no_address_is_refused(text: str, why: str) -> None:
    with pytest.raises(DeviceError) as caught:
        reach_of(text)
    assert str(caught.value) == f"{text}: {why}; {ACCEPTED}"


def test_a_console_has_a_user_and_a_rate() -> None:
    """Either may be left out; 115200 baud is usual."""
    assert reach_of("serial:/dev/ttyUSB0") == Reach(way="serial", address="/dev/ttyUSB0")
    assert reach_of("serial:root@/dev/ttyS0,9600") == Reach(way="serial", address="root@/dev/ttyS0", baud=9600)


def test_a_refusal_is_one_line_whatever_was_asked_for() -> None:
    """What a terminal would obey is written as Python's literals are."""
    for text in ("ssh:a\nb", "adb:\x1b[2J", "ssh:pi:" + "9" * 5000):
        with pytest.raises(DeviceError) as caught:
            reach_of(text)
        assert str(caught.value).isprintable()


def test_an_address_overrides_the_profile() -> None:
    assert asked_reach("--x", "ssh:ada@[fe80::1]:22", KEYED) == replace(KEYED, address="ada@fe80::1", port=22)
    assert asked_reach("--x", "local", KEYED) == replace(KEYED, way="local", address="", port=None)
    assert asked_reach("--x", "adb") == Reach(way="adb", home=HOMES["adb"])
    assert asked_reach("--x", None, KEYED) == KEYED
