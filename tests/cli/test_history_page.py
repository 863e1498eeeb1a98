"""``perfsuite history page``."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from perfsuite.cli.__main__ import main
from perfsuite.report.history import append_run
from perfsuite.testing.run_files import synthetic_run
from tests.command_streams import Refused, Streams

BEGAN_AT = datetime(2026, 3, 1, 2, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def history_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty nights; from the twentieth on some cases are 6 % slower."""
    folder = tmp_path_factory.mktemp("nights")
    for night in range(30):
        ratio = 1.06 if night >= 20 else 1.0
        started_at = (BEGAN_AT + timedelta(days=night)).isoformat()
        run = synthetic_run(n_cases=12, seed=night, started_at=started_at, change_ratio=ratio, against=None)
        append_run(run, folder)
    return folder


def test_the_page_is_written_and_told(history_dir: Path, tmp_path: Path, capsys: Streams) -> None:
    """All cases over all runs, with the change points that 'perfsuite history changes' tells."""
    path = tmp_path / "new" / "history.html"
    assert main(["history", "page", "-o", str(path), "--history", str(history_dir)]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{path}: 12 cases, 30 runs, ")
    text = path.read_text("utf-8")
    assert "30 runs on 1 device, 2026-03-01 to 2026-03-30." in text
    assert "2026-03-20 to 2026-03-21" in text
    assert "high confidence" in text


@pytest.mark.parametrize("pattern", ["DECODE", "phase/*/decode"])
def test_a_pattern_chooses_cases(history_dir: Path, tmp_path: Path, capsys: Streams, pattern: str) -> None:
    """Part of an id in either case, or with * and ? all of it, as in 'perfsuite history cases'."""
    path = tmp_path / "history.html"
    assert main(["history", "page", pattern, "-o", str(path), "--history", str(history_dir)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: 1 case, 30 runs, 1 change point")


def test_times_that_are_none_are_counted(tmp_path: Path, capsys: Streams) -> None:
    """Zeros are in no chart; the page counts those of the chosen cases, as 'perfsuite history changes' does."""
    run = synthetic_run(n_cases=8, against=None)
    append_run(replace(run, judgements=tuple(replace(each, measured_ns=0) for each in run.judgements)), tmp_path / "h")
    given = ["history", "page", "-o", str(tmp_path / "a.html"), "--history", str(tmp_path / "h")]
    assert main(given) == 0
    out, err = capsys.readouterr()
    assert "8 times of 0 ns or less; left out" in err
    assert out.startswith(f"{tmp_path / 'a.html'}: 0 cases, 0 runs")
    assert main([*given, "phase/*/decode"]) == 0
    assert "1 time of 0 ns or less; left out" in capsys.readouterr().err


def test_mistakes_are_one_line(history_dir: Path, tmp_path: Path, refused: Refused) -> None:
    """A pattern that fits nothing, an empty history, and a repository that is none."""
    given = ["history", "page", "-o", str(tmp_path / "a.html"), "--history"]
    assert "no case is like 'zzz'" in refused([*given, str(history_dir), "zzz"])
    assert "holds no run" in refused([*given, str(tmp_path / "none")])
    assert "--repo=/none: is no folder" in refused([*given, str(history_dir), "--repo", "/none"])
    assert not (tmp_path / "a.html").exists()
