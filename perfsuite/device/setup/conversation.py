"""The desk's end of the installer: its lines as they come, and no longer silence than it may keep."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from perfsuite.device.target.exchange import Exchange
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import LinkError

#: The installer says something every five seconds; connecting included.
SILENCE_LIMIT_S = 90.0

#: Longest to wait for the installer to end by itself, once its input is closed; and longer than all of its steps.
_END_LIMIT_S, _LONGEST_S = 30.0, 86400.0

_Answer = TypeVar("_Answer")


class _AnsweredError(Exception):
    """What was waited for is here."""


def converse(
    target: Target,
    command: Sequence[str],
    hear: Callable[[dict[str, Any]], _Answer | None],
    *,
    silence_limit_s: float = SILENCE_LIMIT_S,
) -> _Answer | None:
    """Start a program there, let `hear` have what its lines of JSON say, and return what that returns other than None.

    Then, and where `hear` raises, the program is ended there; None where it ends by itself. Raises LinkError: the link
    was lost, or nothing was heard for too long.
    """
    process = target.start(command)
    unread, answers = bytearray(), list[_Answer]()

    def take(chunk: bytes) -> None:
        unread.extend(chunk)
        *lines, rest = unread.split(b"\n")
        unread[:] = rest
        for event in filter(None, map(_event, lines)):
            if (answer := hear(event)) is not None:
                answers.append(answer)
                raise _AnsweredError

    exchange = Exchange(process, io.BytesIO(), 0, patience_s=_END_LIMIT_S)
    try:
        errors = exchange.carry(take, _LONGEST_S, silence_limit_s=silence_limit_s)
    except _AnsweredError:
        return answers[0]
    except TimeoutError:
        raise LinkError(
            f"{target.text}: heard nothing for {silence_limit_s:.0f} s; look whether it is still there, then again"
        ) from None
    if process.returncode not in (0, 1):
        raise LinkError(f"{target.text}: {target.link_complaint(errors)}")
    return None


def _event(line: bytes | bytearray) -> dict[str, Any] | None:
    """Read a line; None for what else prints there, such as a login message."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
