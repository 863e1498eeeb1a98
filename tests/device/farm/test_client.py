"""What labgrid's client prints, read."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from typing import Any

import pytest

from perfsuite.device.farm.client import Holder, holder_named, new_holder, parsed_reservations, places
from perfsuite.device.farm.request import farm_request, length_s
from perfsuite.errors import PerfsuiteError

from ...sys_trees import FIELD


def test_a_name_tells_which_run_it_is_and_since_when() -> None:
    told = holder_named(new_holder().name)
    assert told.pid == os.getpid()
    assert told.is_alive_here
    assert f"on {socket.gethostname()} (run of process {os.getpid()}, since 20" in told.text
    assert new_holder().name != new_holder().name
    assert told.name.count("/") == 1


@pytest.mark.parametrize(
    ("pattern", "replacement", "is_alive"),
    [(r"\.\d+-", ".1-", False), (r"-\w{8}-(\w{6})$", r"-00000000-\1", None)],
    ids=["another start: another process of its number", "another container or boot: its number means nothing here"],
)
def test_a_number_alone_is_no_run(pattern: str, replacement: str, is_alive: bool | None) -> None:
    user = re.sub(pattern, replacement, new_holder().user)
    told = Holder(host=socket.gethostname(), user=user)
    assert (told.pid, told.is_alive_here) == (os.getpid(), is_alive)


def test_a_run_whose_process_is_gone_is_dead() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    user = new_holder().user.replace(f"-{os.getpid()}.", f"-{gone.pid}.")
    assert Holder(host=socket.gethostname(), user=user).is_alive_here is False
    assert Holder(host="elsewhere", user=user).is_alive_here is None


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


@pytest.mark.parametrize("told", ["", "-1", "1d", "inf", "nan", "1h30m", "٣s", "1e3", " 1s", "9" * 400])
def test_what_is_no_length_is_none(told: str) -> None:
    assert length_s(told) is None


RESERVATIONS = """\
Reservation 'KZDSTHQWBP':
  owner: desk/me+1
  token: KZDSTHQWBP
  state: allocated
  filters:
    main: board=rubikpi
  allocations:
    main: board-1
  created: 2026-11-22 08:23:50.347664
  timeout: 2026-11-22 08:24:50.347721
"""


class Printer:
    def __init__(self, printed: str) -> None:
        self.printed = printed

    def call(self, *_: str) -> str:
        return self.printed


def test_places_are_read_whatever_their_comments_hold() -> None:
    """A comment with a colon is no holder, and a place without one is free."""
    printed: Any = Printer((FIELD / "24-labgrid-address-comes-later" / "places.txt").read_text())
    assert [(each.name, each.holder and each.holder.name, each.token) for each in places(printed)] == [
        ("attic-7", None, None),
        ("attic-8", "lab/somebody", "ABCDEFGHIJ"),
    ]


def test_reservations_are_read() -> None:
    (only,) = parsed_reservations(RESERVATIONS)
    assert (only.token, only.owner.name, only.state) == ("KZDSTHQWBP", "desk/me+1", "allocated")
    assert parsed_reservations("") == ()
