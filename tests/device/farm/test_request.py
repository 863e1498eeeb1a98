"""What --farm, --farm-wait and --farm-break may be given."""

from __future__ import annotations

import pytest

from perfsuite.device.farm.request import farm_request
from perfsuite.errors import PerfsuiteError


@pytest.mark.parametrize("named", ["farm", "farm.example.org:20408", "127.0.0.1", "[::1]:20408", "10.0.0.1:1"])
def test_a_coordinator_is_a_host_with_or_without_a_port(named: str) -> None:
    """Names and addresses are taken as labgrid takes them."""
    assert farm_request(named).coordinator == named


@pytest.mark.parametrize("named", ["-x", "a b", "host:", "host:port", "http://host", "$(id)", "host\n"])
def test_what_is_no_coordinator_is_refused(named: str) -> None:
    """Nothing that could be an option or an address of another form reaches labgrid's client."""
    with pytest.raises(PerfsuiteError, match="expected the coordinator as HOST or HOST:PORT"):
        farm_request(named)


def test_what_is_asked_for_is_read() -> None:
    """A coordinator that is not named is left to labgrid's own variable, and a comma is between places."""
    request = farm_request(wait="1.5m", avoided="attic-1,attic-2")
    assert (request.coordinator, request.wait_limit_s) == (None, 90)
    assert request.text.startswith("LG_COORDINATOR")
    assert (request.avoided_places, farm_request().avoided_places) == ({"attic-1", "attic-2"}, frozenset())
    with pytest.raises(PerfsuiteError, match="--farm-wait=1d: expected a time such as 90s"):
        farm_request(wait="1d")
