"""The run's end of the supervisor: starts it, and asks it to give the board back."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from typing import IO

from perfsuite.device.farm.client import CALL_LIMIT_S, Client
from perfsuite.device.farm.returning import give_back
from perfsuite.device.held_signals import signals_held_off
from perfsuite.errors import LinkError, PerfsuiteError

#: It makes up to a dozen calls of a quarter of a second, and each may take its limit where the coordinator is away.
_ANSWER_LIMIT_S = 2 * CALL_LIMIT_S


class Supervision:
    """A supervisor that is running."""

    def __init__(self, client: Client) -> None:
        self._client = client
        command = [sys.executable, "-I", "-m", "perfsuite.device.farm.supervisor", str(os.getpid())]
        command += [client.request.coordinator or "", client.holder.host, client.holder.user]
        with signals_held_off():  # what is started inherits that: none comes before it has begun
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )

    @property
    def pid(self) -> int:
        """The supervisor's process."""
        return self._process.pid

    def give_back(self) -> tuple[str, ...]:
        """Give back what the run holds, and return the places; a supervisor that has died or hangs is done without.

        Raises LinkError: the coordinator cannot be reached; the supervisor goes on trying for ten minutes.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        answer = _line(self._process.stdout, _ANSWER_LIMIT_S)
        if not answer:
            self._process.stdout.close()
            return self._given_back_here()
        return self._told(json.loads(answer))

    def _given_back_here(self) -> tuple[str, ...]:
        """Give back without the supervisor; should that fail, one that only hangs may yet go on."""
        try:
            given = give_back(self._client)
        except PerfsuiteError:
            self._process.returncode = self._process.poll() or 0  # Popen would warn of one that goes on
            raise
        self._process.kill()
        self._process.wait()
        return given

    def _told(self, answer: dict[str, object]) -> tuple[str, ...]:
        assert self._process.stdout is not None
        self._process.stdout.close()
        if "error" in answer:
            self._process.returncode = 0  # it goes on by itself; Popen would warn of that
            raise LinkError(f"{answer['error']}; its supervisor goes on trying to give the board back for 10 min")
        self._process.wait(CALL_LIMIT_S)
        given = answer["given_back"]
        return tuple(map(str, given)) if isinstance(given, list) else ()


def _line(pipe: IO[bytes], limit_s: float) -> bytes:
    """Return the line that comes, or nothing where the process ended without or took too long."""
    ready, _, _ = select.select([pipe], [], [], limit_s)
    return pipe.readline() if ready else b""
