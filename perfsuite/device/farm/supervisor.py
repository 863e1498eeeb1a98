"""The program that gives a board back when the run that borrowed it ends, however it ends.

It waits on a pipe that the run holds open. When that closes, by the run or by the kernel for a run that was killed, it
gives back all that the run's name holds, prints what as one line of JSON, and ends. It is in a session of its own,
so that Ctrl-C at the terminal does not reach it. Nor does it heed a request to terminate: a job whose processes are all
asked to would end it with its run, and leave the board locked.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress

from perfsuite.device.end_requests import END_REQUESTS
from perfsuite.device.farm.client import Client, Holder
from perfsuite.device.farm.request import FarmRequest
from perfsuite.device.farm.supervision import give_back
from perfsuite.errors import PerfsuiteError

#: Whether the run is there is also looked at: a child of its own may hold the pipe open.
_LOOK_PERIOD_S = 1.0

#: A coordinator that is away is tried again, for this long.
_RETRY_PERIOD_S, _RETRY_LIMIT_S = 5.0, 600.0


def main(arguments: list[str]) -> int:
    """Wait for the end of the run, then give back: the arguments are its process, coordinator, host and user."""
    pid, coordinator, host, user = arguments
    for number in END_REQUESTS:
        signal.signal(number, signal.SIG_IGN)
    _await_end(int(pid))
    client = Client(request=FarmRequest(coordinator=coordinator or None), holder=Holder(host=host, user=user))
    deadline_s = time.monotonic() + _RETRY_LIMIT_S
    while True:
        try:
            _tell({"given_back": give_back(client)})
            return 0
        except PerfsuiteError as error:
            _tell({"error": str(error)})
        if time.monotonic() > deadline_s:
            return 1
        time.sleep(_RETRY_PERIOD_S)


def _await_end(pid: int) -> None:
    """Return when standard input has ended, or the process is no longer this one's parent."""
    while os.getppid() == pid:
        ready, _, _ = select.select([0], [], [], _LOOK_PERIOD_S)
        if ready and not os.read(0, 4096):
            return


def _tell(answer: dict[str, object]) -> None:
    with suppress(OSError):  # the run is gone, and nobody reads
        os.write(1, f"{json.dumps(answer)}\n".encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
