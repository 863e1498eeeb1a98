"""Ends the agent that a run has left behind on a lost link, before another one of the same run takes its place.

Anybody may place a lock that names this run and any process. So only a lock of this very account counts, and the
process is the one meant only where it started when the lock says.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from perfsuite.device.lock import lock_state
from perfsuite.device.lock.owner import LockOwner
from perfsuite.device.lock.state import Holder
from perfsuite.device.process_start import pid_namespace, process_start
from perfsuite.measure.board.holding import Claim

#: How long an agent may take to restore the device, and how often it is looked at, s.
END_LIMIT_S = 30.0
_HOLDER_LOOK_S = 0.1

#: Holders that are there, and can be ended.
_THERE = (Holder.RUNS, Holder.HANGS)


def end_predecessor(claim: Claim, *, limit_s: float = END_LIMIT_S) -> bool:
    """End the process that holds the lock for this very run, and wait until it has; whether there was one.

    It is asked first, so that it restores what it has set, and killed when it does not: the next one finds what was to
    be restored. Without this both would measure at once, for processes of one run share the lock.
    """
    owner = _holder(claim)
    if owner is None:
        return False
    with ExitStack() as stack:
        send = _sender(owner.pid, stack)
        for number, wait_s in ((signal.SIGTERM, limit_s), (signal.SIGKILL, 1.0)):
            if send is None or _holder(claim) != owner:  # looked at again, since the process is held
                return True
            with suppress(ProcessLookupError, PermissionError):
                send(number)
            if _is_let_go(claim, owner, wait_s):
                return True
    return True


def _is_let_go(claim: Claim, owner: LockOwner, wait_s: float) -> bool:
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        if _holder(claim) != owner:
            return True
        time.sleep(_HOLDER_LOOK_S)
    return False


def _sender(pid: int, stack: ExitStack) -> Callable[[int], None] | None:
    """Return what signals a process, and no later one with its number; None where it is gone.

    *Source*: pidfd_open(2), Linux 5.3; older kernels, and some sandboxes, do not have it.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except (AttributeError, OSError):
        return partial(os.kill, pid)
    stack.callback(os.close, handle)
    return partial(signal.pidfd_send_signal, handle)


def _holder(claim: Claim) -> LockOwner | None:
    """Return the process of this run, and this account, that has the lock, if it is another than this one."""
    state = lock_state(None if claim.lock_folder is None else Path(claim.lock_folder))
    if state is None or not state.is_own or state.owner is None or state.holder not in _THERE:
        return None
    owner = state.owner
    if owner.run_id != claim.run_id or owner.pid_namespace != pid_namespace() or owner.pid == os.getpid():
        return None
    started = process_start(owner.pid)
    return owner if started is not None and owner.start_ticks == started.ticks else None
