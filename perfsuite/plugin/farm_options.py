"""``--farm``, ``--farm-wait``, ``--farm-break`` and ``--farm-avoid``: a run on a board that is borrowed from a farm."""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from perfsuite.device.profile import Profile
from perfsuite.report.terminal_text import terminal_text

if TYPE_CHECKING:  # only a run on a farm needs what borrows a board
    from perfsuite.device.farm.borrowing import FarmBoard

#: The board of a farm that a run has; absent where it has none.
FARM_BOARD_KEY: pytest.StashKey[FarmBoard] = pytest.StashKey()


def on_farm_board(config: pytest.Config, profile: Profile) -> Profile:
    """Borrow a board where ``--farm`` asks for one, and return the profile with the way to it.

    The board is given back when pytest ends. Call it last, when all other options have been found good: it may wait
    for an hour.

    Raises pytest.UsageError: ``--farm-break`` or ``--farm-avoid`` was given without ``--farm``, or ``--farm`` with a
    device that is not reached by ssh; PerfsuiteError: no board could be borrowed; see `borrowed_board`.
    """
    option = config.option
    if option.farm is None:
        for name, place in (("--farm-break", option.farm_break), ("--farm-avoid", option.farm_avoid)):
            if place is not None:
                raise pytest.UsageError(f"{name}={place}: needs --farm")
        return profile
    if profile.reach.way != "ssh":
        how = "this machine" if profile.reach.way == "local" else f"reached by {profile.reach.way}"
        raise pytest.UsageError(f"--farm: {profile.name} is {how}; name a --device that is reached by ssh")
    from perfsuite.device.farm.borrowing import borrowed_board  # only a run on a farm needs them
    from perfsuite.device.farm.request import farm_request

    request = farm_request(
        option.farm, wait=option.farm_wait, broken_place=option.farm_break, avoided=option.farm_avoid
    )
    stack = ExitStack()
    config.add_cleanup(stack.close)
    lent = borrowed_board(profile.kind, profile.reach, request, tell=lambda text: _tell_beside(config, text))
    board = config.stash[FARM_BOARD_KEY] = stack.enter_context(lent)
    return replace(profile, reach=board.reach)


def _tell_beside(config: pytest.Config, text: str) -> None:
    """Print a line beside whatever pytest captures."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        print(f"perfsuite: {terminal_text(text)}", file=sys.stderr, flush=True)
