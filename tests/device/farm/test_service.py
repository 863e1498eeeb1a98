"""The NetworkService of a place, as labgrid's client prints it."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.device.farm.service import place_reach
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError

from .test_listings import Printer

pytest.importorskip("yaml", reason="labgrid, which brings PyYAML, is not installed; 'make test-needs' installs it")


def environment(*resources: str) -> Any:
    """Return a client whose place has these resources."""
    return Printer("targets:\n  b:\n    resources:\n" + "".join(f"    - {each}\n" for each in resources))


def test_the_address_of_the_place_takes_the_place_of_the_profile_s() -> None:
    """A service without a port leaves it to OpenSSH."""
    client = environment("NetworkService: {address: b.local, username: root}", "NetworkPowerPort: {host: p}")
    reach = place_reach(client, "b", Reach(way="ssh", address="old", port=22, home="/opt"))
    assert reach == Reach(way="ssh", address="root@b.local", home="/opt")


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        (["RawSerialPort: {port: tty}"], "has 0 resources"),
        (["NetworkService: {address: a, username: u}", "NetworkService: {address: b, username: u}"], "has 2"),
        (["NetworkService: {address: '', username: u}"], "address of its NetworkService is ''"),
        (["NetworkService: {address: -oProxyCommand=x, username: u}"], "expected the name of a host"),
        (["NetworkService: {address: a b, username: u}"], "address of its NetworkService is 'a b'"),
        (["NetworkService: {address: evil@h, username: u}"], "address of its NetworkService is 'evil@h'"),
        (["NetworkService: {address: h, username: -oProxyCommand=x}"], "username of its NetworkService is '-oPr"),
        (["NetworkService: {address: h, username: u@evil}"], "username of its NetworkService is 'u@evil'"),
        (["NetworkService: {address: a, username: u, port: x}"], "port of its NetworkService is 'x'"),
        (["NetworkService: {address: a, username: u, port: true}"], "port of its NetworkService is True"),
        (["NetworkService: {address: a, username: u, port: -5}"], "port of its NetworkService is -5"),
        (["NetworkService: {address: a, username: u, port: 99999}"], "expected a whole number from 1 to 65535"),
        (["NetworkService: [}"], "cannot be read"),
    ],
)
def test_a_place_that_says_no_address_is_refused(resources: list[str], told: str) -> None:
    """None, several, and such as would be an option of ssh."""
    with pytest.raises(DeviceError, match=told):
        place_reach(environment(*resources), "b", Reach())
