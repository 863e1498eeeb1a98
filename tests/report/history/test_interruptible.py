"""Whatever ends the wait for DuckDB ends its work."""

from __future__ import annotations

import signal
import threading

import duckdb
import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history.interruptible import interruptible

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"


def test_answers_and_errors_come_through() -> None:
    """As if the work were done here."""
    with duckdb.connect() as connection:
        assert interruptible(connection, lambda: connection.execute("SELECT 1").fetchall()) == [(1,)]
        with pytest.raises(duckdb.ParserException):
            interruptible(connection, lambda: connection.execute("SELEC"))


def test_a_signal_ends_the_work() -> None:
    """Ctrl-C is raised here, and the connection is free again."""
    with duckdb.connect() as connection:
        timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(connection, lambda: connection.execute(ENDLESS).fetchall(), limit_s=60.0)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_a_limit_ends_the_work() -> None:
    """It is told, and the connection is free again."""
    with duckdb.connect() as connection:
        with pytest.raises(HistoryError, match=r"takes longer than 0\.1 s"):
            interruptible(connection, lambda: connection.execute(ENDLESS).fetchall(), limit_s=0.1)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
