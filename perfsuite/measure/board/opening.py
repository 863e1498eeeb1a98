"""The one place that knows this machine from a board at the end of a link."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from perfsuite.device.conditions import Conditions
from perfsuite.device.reach import Reach
from perfsuite.measure.board.hello import Hello
from perfsuite.measure.board.holding import Claim, held
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Board


def choose_board(
    reach: Reach, conditions: Conditions, claim: Claim, *, cache_dir: Path, tell: Callable[[str], None]
) -> Board:
    """Return the board that is reached so; nothing is asked of it until it is opened.

    `tell` is told what is waited for.

    Raises `DeviceError` where there is no such way, or no such address.
    """
    if reach.way == "local":
        return LocalBoard(
            cache_dir=cache_dir,
            conditions=conditions,
            hold=partial(held, conditions, claim, tell, cache_dir=cache_dir),
        )
    from perfsuite.device.target.opening import open_target  # a local run needs no link
    from perfsuite.measure.board.connecting import Connecting
    from perfsuite.measure.board.remote_board import RemoteBoard

    hello = Hello(claim=claim, conditions=conditions)
    connecting = Connecting(name=claim.name, target=open_target(reach), home=reach.home, hello=hello, tell=tell)
    return RemoteBoard(connecting=connecting)
