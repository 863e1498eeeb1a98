"""What killed processes left goes."""

from __future__ import annotations

import signal
import tempfile
import threading
from pathlib import Path

import duckdb
import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history.database import database, database_errors, interruptible, with_own_types
from perfsuite.report.history.folder import HistoryFiles

ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3"


def test_answers_and_errors_come_through() -> None:
    with duckdb.connect() as connection:
        assert interruptible(connection, lambda: connection.execute("SELECT 1").fetchall()) == [(1,)]
        with pytest.raises(duckdb.ParserException):
            interruptible(connection, lambda: connection.execute("SELEC"))


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


WHOLE = "'r' AS run_id, now()::TIMESTAMP AS started_at, 'd' AS device, 'c' AS case_id, 'pass' AS outcome"


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (WHOLE, None),
        (f"{WHOLE}, 1 AS other", None),
        (f"{WHOLE}, 1.5::DOUBLE AS measured_ns", "its column measured_ns is DOUBLE, expected BIGINT"),
        (f"{WHOLE}, ['a'] AS samples_ns", "its column samples_ns is VARCHAR[], expected BIGINT[]"),
        (WHOLE.partition(", ")[2], "lacks the column run_id"),
    ],
)
def test_a_file_is_taken_by_its_columns(tmp_path: Path, columns: str, reason: str | None) -> None:
    """Columns that are added or missing do no harm; other types do, and rows of no run."""
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns}) TO '{path}' (FORMAT parquet)")
        files = with_own_types(connection, HistoryFiles(paths=(path,)), (path,))
    assert [each.reason for each in files.skipped] == ([] if reason is None else [reason])
    assert files.paths == ((path,) if reason is None else ())


def test_nothing_is_left_and_no_room_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not finished is in a work folder, which is gone afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with database():
        assert [each.name.startswith(".perfsuite-work-") for each in tmp_path.iterdir()] == [True]
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with (
        pytest.raises(HistoryError, match=r"absent.*: cannot be written \(No such file"),
        database(),
    ):
        pass


def test_too_little_memory_is_one_line() -> None:
    with pytest.raises(HistoryError, match=r"^sql: it fails \(it takes more memory"), database_errors("sql: it fails"):
        raise MemoryError
