"""A query is ended by a signal."""

from __future__ import annotations

import signal
import threading

import duckdb
import pytest

from perfsuite.report.history.database import interruptible

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"


def test_a_signal_ends_the_work() -> None:
    """Ctrl-C is raised here, and the connection is free again."""
    with duckdb.connect() as connection:
        timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(connection, lambda: connection.execute(ENDLESS).fetchall(), limit_s=60.0)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
