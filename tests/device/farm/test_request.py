"""What --farm, --farm-wait and --farm-break may be given."""

from __future__ import annotations

import pytest

from perfsuite.device.farm.request import farm_request
from perfsuite.errors import PerfsuiteError


@pytest.mark.parametrize("named", ["farm", "farm.example.org:20408", "127.0.0.1", "[::1]:20408", "10.0.0.1:1"])
def test_a_coordinator_is_a_host_with_or_without_a_port(named: str) -> None:
    """Names and addresses are taken as labgrid takes them."""
    assert farm_request(named).coordinator == named


def test_a_coordinator_that_is_not_named_is_left_to_labgrid() -> None:
    """labgrid reads its own variable."""
    request = farm_request()
    assert request.coordinator is None
    assert request.text.startswith("LG_COORDINATOR")


@pytest.mark.parametrize("named", ["-x", "a b", "host:", "host:port", "http://host", "$(id)", "host\n"])
def test_what_is_no_coordinator_is_refused(named: str) -> None:
    """Nothing that could be an option or an address of another form reaches labgrid's client."""
    with pytest.raises(PerfsuiteError, match="expected the coordinator as HOST or HOST:PORT"):
        farm_request(named)


@pytest.mark.parametrize(("told", "wait_s"), [("0", 0), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_a_wait_has_a_unit(told: str, wait_s: float) -> None:
    """Seconds, minutes and hours are understood."""
    assert farm_request(wait=told).wait_limit_s == wait_s


def test_places_that_are_avoided_are_named_one_after_the_other() -> None:
    """A comma is between them."""
    assert farm_request(avoided="attic-1,attic-2").avoided_places == {"attic-1", "attic-2"}
    assert farm_request().avoided_places == frozenset()


@pytest.mark.parametrize("told", ["", "-1", "1d", "inf", "nan", "1h30m"])
def test_a_wait_without_a_meaning_is_refused(told: str) -> None:
    """There is no wait without a limit."""
    with pytest.raises(PerfsuiteError, match="--farm-wait="):
        farm_request(wait=told)
