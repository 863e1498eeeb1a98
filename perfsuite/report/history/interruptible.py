"""Runs DuckDB's work so that Ctrl-C, a request to terminate and a limit of time end it.

Python handles signals in its main thread alone, and not while that is inside DuckDB. So the work is done in a thread
beside it, and the main thread waits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeVar

from perfsuite.errors import HistoryError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: How long work that was interrupted may take to end.
_END_LIMIT_S = 10.0
#: A signal that another thread has taken is seen after so long at the latest.
_POLL_S = 0.1

_Answer = TypeVar("_Answer")


def interruptible(
    connection: DuckDBPyConnection, work: Callable[[], _Answer], *, limit_s: float | None = None
) -> _Answer:
    """Do the work, and return or raise what it does; whatever ends the wait interrupts the work.

    Raises HistoryError where the work takes longer than `limit_s`.
    """
    answers: list[_Answer] = []
    errors: list[BaseException] = []
    is_done = Event()  # a signal during Thread.join makes some Pythons take the thread for ended

    def do() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            is_done.set()

    Thread(target=do, name="perfsuite-history", daemon=True).start()
    try:
        _wait(is_done, limit_s)
    finally:
        _end(is_done, connection)
    if errors:
        raise errors[0]
    return answers[0]


def _wait(is_done: Event, limit_s: float | None) -> None:
    end_s = time.monotonic() + limit_s if limit_s is not None else math.inf
    while not is_done.wait(min(_POLL_S, max(end_s - time.monotonic(), 0.0))):
        if time.monotonic() >= end_s:
            raise HistoryError(f"takes longer than {limit_s:g} s, and was ended")


def _end(is_done: Event, connection: DuckDBPyConnection) -> None:
    """Interrupt the work, which may be between two queries, until it has ended."""
    end_s = time.monotonic() + _END_LIMIT_S
    while not is_done.is_set() and time.monotonic() < end_s:
        connection.interrupt()
        is_done.wait(_POLL_S)
