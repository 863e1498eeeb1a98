"""How the command ends."""

from __future__ import annotations

import errno
import signal

import pytest

from perfsuite.cli.ending import ended, fail_in_the_end
from tests.command_streams import Refused, Streams

LONG = "x" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", LONG],
        ["baseline", "diff", LONG],
    ],
    ids=lambda arguments: " ".join(arguments[:-1]),
)
def test_a_name_that_the_system_refuses_is_a_line(arguments: list[str], refused: Refused) -> None:
    """A name that is too long is reported with the reason, wherever it is given."""
    told = refused(arguments)
    assert f"{LONG}: " in told
    assert "File name too long" in told


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "a\x1b[1m"), "a\\x1b[1m: Permission denied"),
        (OSError(errno.EIO, "Input/output error", b"b"), "b: Input/output error"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (OSError("closed"), "closed"),
        (OSError(), "OSError"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), None),
    ],
)
def test_what_the_system_refuses_is_a_line(error: OSError, line: str | None, capsys: Streams) -> None:
    """The file where one is known, and the reason; a mistake's exit code, except a reader that went away."""

    def work() -> int:
        raise error

    assert ended(work) == (0 if line is None else 2)
    assert capsys.readouterr() == ("", "" if line is None else f"perfsuite: error: {line}\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_request_to_end_unwinds_and_is_heard_once(number: int, status: int, capsys: Streams) -> None:
    """What is open is closed, and a second request soon after does not break that off; handlers are as before then."""
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    closed = []

    def work() -> int:
        try:
            signal.raise_signal(number)
        finally:
            for again in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.raise_signal(again)
            closed.append(number)
        return 0

    try:
        found: object = ended(work)
    except SystemExit as caught:
        found = caught.code
    assert (found, closed) == (status, [number])
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    assert capsys.readouterr().err == ("perfsuite: interrupted\n" if number == signal.SIGINT else "")


@pytest.mark.parametrize(("asked", "status"), [(0, 2), (1, 1)])
def test_what_fails_in_the_end_is_a_failure(asked: int, status: int) -> None:
    """Of that command alone, also where a reader went away; what is no success by itself keeps its exit code."""

    def work() -> int:
        fail_in_the_end()
        return asked

    def unread() -> int:
        fail_in_the_end()
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    assert [ended(work), ended(unread), ended(lambda: 0)] == [status, 2, 0]
