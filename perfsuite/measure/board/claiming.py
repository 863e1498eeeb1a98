"""Saying who wants a device, from the desk."""

from __future__ import annotations

import os
import socket

from perfsuite.device.reach import Reach
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.launch import environment_lock_folder, environment_run_id


def desk_claim(device: str, reach: Reach, *, purpose: str, run_id: str, wait_s: float = 0.0) -> Claim:
    """Say that this program wants a device which is reached so.

    On this machine it does so within the run that has started this program, if one has, and where the environment says
    that locks lie; a board has its own place of locks, and knows no run of this machine.
    """
    from perfsuite.device.lock.reading import account_name  # only whoever measures needs locks

    is_local = reach.way == "local"
    return Claim(
        name=device,
        user=account_name(os.getuid()),
        host=socket.gethostname(),
        run_id=(environment_run_id() if is_local else None) or run_id,
        purpose=purpose,
        wait_s=wait_s,
        lock_folder=environment_lock_folder() if is_local else None,
    )
