"""What labgrid's client prints, read."""

from __future__ import annotations

from typing import Any

from perfsuite.device.farm.client import parsed_reservations, places

PLACES = """\
Place 'board-1':
  aliases: one
  comment: acquired: nobody/else
  tags: board=rubikpi, shelf=2
  matches:
    farm1/board1/*
  acquired: desk/alice
  acquired resources:
    farm1/board1/NetworkService/NetworkService
  created: 2026-11-22 08:23:48.872834
  changed: 2026-11-22 08:23:51.365791
  reservation: KZDSTHQWBP
Place 'it's':
  matches:
  acquired: None
  acquired resources:
  created: 2026-11-22 08:23:49.586174
  changed: 2026-11-22 08:23:50.086508
"""

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
    """A client that prints what it is given."""

    def __init__(self, printed: str) -> None:
        self.printed = printed

    def call(self, *_: str) -> str:
        """Return it, whatever is called."""
        return self.printed


def test_places_are_read() -> None:
    """Names, tags, holder and token are there; what is not there is None."""
    client: Any = Printer(PLACES)
    first, second = places(client)
    assert (first.name, second.name) == ("board-1", "it's")
    assert first.tags == {"board": "rubikpi", "shelf": "2"}
    assert first.holder is not None
    assert first.holder.name == "desk/alice"
    assert (first.token, second.token) == ("KZDSTHQWBP", None)
    assert (second.holder, second.tags) == (None, {})


def test_reservations_are_read() -> None:
    """Token, owner and state are there; a farm without any prints nothing."""
    (only,) = parsed_reservations(RESERVATIONS)
    assert (only.token, only.owner.name, only.state) == ("KZDSTHQWBP", "desk/me+1", "allocated")
    assert parsed_reservations("") == ()
