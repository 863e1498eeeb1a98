"""What killed processes left goes."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history.database import WORK_PREFIX, database, database_errors


def test_stale_folders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of more than a day ago, and no others."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in (f"{WORK_PREFIX}old", f"{WORK_PREFIX}new", "else"):
        (tmp_path / name).mkdir()
    two_days_ago = time.time() - 2 * 86_400
    for name in (f"{WORK_PREFIX}old", "else"):
        os.utime(tmp_path / name, (two_days_ago, two_days_ago))
    with database():
        pass
    assert {path.name for path in tmp_path.iterdir()} == {f"{WORK_PREFIX}new", "else"}


def test_too_little_memory_is_one_line() -> None:
    """It is told as what could not be done."""
    with pytest.raises(HistoryError, match=r"^sql: it fails \(it takes more memory"), database_errors("sql: it fails"):
        raise MemoryError
