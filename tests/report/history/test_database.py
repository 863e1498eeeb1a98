"""A query is ended by a signal and by its limit."""

from __future__ import annotations

import signal
import threading

import duckdb
import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history.database import interruptible

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"


def test_a_signal_or_a_limit_ends_the_work() -> None:
    """Ctrl-C is raised here, a limit is reported, and the connection is free again."""
    with duckdb.connect() as connection:
        timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(connection, lambda: connection.execute(ENDLESS).fetchall(), limit_s=60.0)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
    with duckdb.connect() as connection:
        with pytest.raises(HistoryError, match=r"takes longer than 0\.1 s"):
            interruptible(connection, lambda: connection.execute(ENDLESS).fetchall(), limit_s=0.1)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
