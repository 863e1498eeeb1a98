"""The program that keeps one cell: starts its pytest, and ends it when the night ends, however that ends.

It waits on a pipe that the night holds open. When that closes, by the night for a cell that took too long or for
Ctrl-C, or by the kernel for a night that was killed, pytest is interrupted as by Ctrl-C, so that it keeps what it
measured and gives its board back; what does not end is killed. A request to terminate that comes to the keeper itself
does the same. Its exit code is pytest's, or 128 + N for signal N; a cell that ended by itself leaves it in a file, too.

pytest stays in the keeper's session, in a group of processes of its own: should the keeper be killed, the night finds
by that session what it left; see `perfsuite.nightly.running_cell`.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from perfsuite.device.end_requests import END_REQUESTS
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.exit_file import ExitNote, write_exit

#: After each signal, how long pytest has.
_PATIENCE_S = ((signal.SIGINT, 30.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))

_LOOK_PERIOD_S = 0.1


def main(arguments: list[str]) -> int:
    """Run a command: the arguments are its log, the handle of the night's lock that it is to hold, and the command."""
    log_path, lock, *command = arguments
    asked: list[int] = []
    for number in END_REQUESTS:
        signal.signal(number, lambda got, _: asked.append(got))
    began_s = time.monotonic()
    process = _started(command, Path(log_path), int(lock))
    is_ended_here = _await_end(process, asked)
    status = process.returncode if process.returncode is not None else -signal.SIGKILL
    exit_code = status if status >= 0 else 128 - status
    if not is_ended_here:
        with suppress(PerfsuiteError):  # the night has it from this program's own end
            write_exit(Path(log_path).parent, ExitNote(exit_code=exit_code, seconds=time.monotonic() - began_s))
    return exit_code


def _started(command: list[str], log_path: Path, lock: int) -> subprocess.Popen[bytes]:
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(lock,),
            preexec_fn=os.setpgrp,  # Python's own process_group is of 3.11; there are no threads here
        )


def _await_end(process: subprocess.Popen[bytes], asked: list[int]) -> bool:
    """Wait until the process has ended, and tell whether it was this program that ended it."""
    while process.poll() is None:
        ready, _, _ = select.select([0], [], [], _LOOK_PERIOD_S)
        if asked or (ready and not os.read(0, 4096)):
            _end(process)
            return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt, then terminate, then kill the process with all that it started in its group."""
    for number, patience_s in _PATIENCE_S:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
