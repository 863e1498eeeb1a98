"""The desk's end of the installer: its lines as they come, and no longer silence than it may keep."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from perfsuite.device.target.shell_target import Target
from perfsuite.errors import LinkError

#: The installer says something every five seconds; connecting included.
SILENCE_LIMIT_S = 90.0

#: Longest to wait for the installer to end by itself, once its input is closed.
_END_LIMIT_S = 30.0


def converse(
    target: Target, command: Sequence[str], *, silence_limit_s: float = SILENCE_LIMIT_S
) -> Generator[dict[str, Any], None, None]:
    """Start a program there, and yield what its lines of JSON say; where the caller stops, it is ended there.

    Raises LinkError: the link was lost, or nothing was heard for too long.
    """
    process = target.start(command)
    assert process.stdout is not None
    assert process.stderr is not None
    lines: queue.Queue[bytes | None] = queue.Queue()
    errors: list[bytes] = []
    readers = (
        threading.Thread(target=_pass_on, args=(process.stdout, lines), daemon=True),
        threading.Thread(target=_collect, args=(process.stderr, errors), daemon=True),
    )
    for reader in readers:
        reader.start()
    try:
        yield from _events(target, lines, silence_limit_s)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_LIMIT_S)
        readers[1].join(1.0)
        if process.returncode not in (0, 1):
            raise LinkError(f"{target.text}: {target.link_complaint(b''.join(errors))}")
    finally:
        _end(process)
        for reader, pipe in zip(readers, (process.stdout, process.stderr), strict=True):
            reader.join(1.0)
            if not reader.is_alive():  # what the program left running there may keep it open
                pipe.close()


def _events(target: Target, lines: queue.Queue[bytes | None], silence_limit_s: float) -> Iterator[dict[str, Any]]:
    while True:
        try:
            line = lines.get(timeout=silence_limit_s)
        except queue.Empty:
            raise LinkError(
                f"{target.text}: heard nothing for {silence_limit_s:.0f} s; look whether it is still there, then again"
            ) from None
        if line is None:
            return
        with suppress(ValueError):  # what else prints there, such as a login message
            event = json.loads(line)
            if isinstance(event, dict):
                yield event


def _pass_on(pipe: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    with suppress(ValueError, OSError):  # closed under the reader
        for line in pipe:
            lines.put(line)
    lines.put(None)


def _collect(pipe: IO[bytes], errors: list[bytes]) -> None:
    with suppress(ValueError, OSError):
        errors.extend(pipe)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the program's input, by which it ends there, and wait for that."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
