"""The one place that knows this machine from a board at the end of a link."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from perfsuite.device.machine import Conditions
from perfsuite.device.reach import Reach
from perfsuite.measure.board.hello import Hello
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.environment import environment_lock_folder, environment_run_id

#: What a slow link is given time for: an answer, such as what a board is, and a long run's record.
_ANSWER_BYTES, _RECORD_BYTES = 1_000_000, 50_000_000


def desk_claim(device: str, reach: Reach, *, purpose: str, run_id: str, wait_s: float = 0.0) -> Claim:
    """Say that this program wants a device which is reached so.

    On this machine it does so within the run that has started this program, if one has, and where the environment says
    that locks lie; a board has its own place of locks, and knows no run of this machine.
    """
    from perfsuite.device.lock_owner import account_name  # only whoever measures needs locks

    is_local = reach.way == "local"
    return Claim(
        name=device,
        user=account_name(os.getuid()),
        host=socket.gethostname(),
        run_id=(environment_run_id() if is_local else None) or run_id,
        purpose=purpose,
        wait_s=wait_s,
        lock_folder=environment_lock_folder() if is_local else None,
        is_shared=is_local,
    )


def choose_board(
    reach: Reach, conditions: Conditions, claim: Claim, *, cache_dir: Path, tell: Callable[[str], None]
) -> Board:
    """Return the board that is reached so; nothing is asked of it until it is opened.

    `tell` gets what is waited for.

    Raises `DeviceError` where there is no such way, or no such address.
    """
    if reach.way == "local":
        from perfsuite.measure.board.local_board import LocalBoard  # what is linked needs none of it

        return LocalBoard(cache_dir=cache_dir, conditions=conditions, claim=claim, tell=tell)
    from perfsuite.device.target.opening import open_target  # a local run needs no link
    from perfsuite.measure.board.connecting import LinkLimits
    from perfsuite.measure.board.remote_board import RemoteBoard, TargetConnecting

    hello, target, usual = Hello(claim=claim, conditions=conditions), open_target(reach), LinkLimits()
    limits = replace(
        usual,
        answer_s=usual.answer_s + target.seconds_for(_ANSWER_BYTES),
        beyond_worker_s=usual.beyond_worker_s + target.seconds_for(_RECORD_BYTES),
    )
    connecting = TargetConnecting(
        name=claim.name, target=target, home=reach.home, hello=hello, tell=tell, limits=limits, cache_dir=cache_dir
    )
    return RemoteBoard(connecting=connecting)
