"""Files are merged, and a reader is right at every moment of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from perfsuite.report.history import append_run, cases_of, compact, files, open_history, runs_of, trend_of
from perfsuite.report.history.append import LOOSE
from perfsuite.report.history.columns import MARK
from perfsuite.report.history.store import HistoryStore
from perfsuite.testing.run_files import synthetic_run

DECODE = "phase/smollm2-135m-q8_0/siso/decode"


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def history_dir(tmp_path: Path) -> Path:
    for day in range(1, 5):
        append_run(synthetic_run(n_cases=12, seed=day, started_at=f"2026-03-0{day}T02:00:00+00:00"), tmp_path)
    return tmp_path


def loose_files(history_dir: Path) -> list[Path]:
    return sorted((history_dir / LOOSE).glob("*.parquet"))


def held(history_dir: Path) -> tuple[int, int, int]:
    history = open_history(history_dir)
    n_rows = sum(each.n_runs for each in cases_of(history))
    return len(runs_of(history)), n_rows, len(trend_of(history, DECODE))


def test_one_file_is_left(history_dir: Path) -> None:
    done = compact(history_dir)
    (path,) = history_dir.rglob("*.parquet")
    assert (done.path, done.n_files, done.n_runs) == (path, 4, 4)
    rows = duckdb.execute("SELECT case_id, started_at FROM read_parquet(?)", [str(path)]).fetchall()
    assert rows == sorted(rows)
    assert held(history_dir) == (4, 48, 4)
    assert compact(history_dir).path is None


@pytest.mark.parametrize("n_removed", [0, 2])
def test_a_merge_that_dies_loses_and_doubles_nothing(
    history_dir: Path, monkeypatch: pytest.MonkeyPatch, n_removed: int
) -> None:
    """Wherever removing ended, readers find each case of each run once, and the next merge ends it."""
    remove = HistoryStore.remove

    def dying(store: HistoryStore, paths: Sequence[Path]) -> None:
        remove(store, paths[:n_removed])
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(HistoryStore, "remove", dying)
        with pytest.raises(Killed):
            compact(history_dir)
    assert len(loose_files(history_dir)) == 4 - n_removed
    assert held(history_dir) == (4, 48, 4)
    compact(history_dir)
    assert len(list(history_dir.rglob("*.parquet"))) == 1
    assert held(history_dir) == (4, 48, 4)


def test_a_reader_does_not_mind_files_that_go(history_dir: Path) -> None:
    """A question that was begun before a merge is answered after it."""
    history = open_history(history_dir)
    assert len(runs_of(history)) == 4
    compact(history_dir)
    assert len(trend_of(history, DECODE)) == 4
    assert history.skipped == ()


@pytest.mark.parametrize(("owner", "step"), [(files, "_mark_of"), (HistoryStore, "_listed")])
def test_a_merge_while_the_folder_is_listed_hides_no_run(
    history_dir: Path, monkeypatch: pytest.MonkeyPatch, owner: object, step: str
) -> None:
    """Files were listed, and have gone when their footers are read; or neither they nor the merged one were listed."""
    method = getattr(owner, step)

    def torn(argument: object) -> object:
        monkeypatch.setattr(owner, step, method)
        compact(history_dir)
        return [] if step == "_listed" else method(argument)

    monkeypatch.setattr(owner, step, torn)
    assert held(history_dir) == (4, 48, 4)


def test_two_that_merge_at_the_same_time_lose_nothing(history_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two merges of the same files leave two files, which count once."""
    remove = HistoryStore.remove

    def after_another(store: HistoryStore, paths: Sequence[Path]) -> None:
        monkeypatch.setattr(HistoryStore, "remove", remove)
        compact(history_dir)
        remove(store, paths)

    monkeypatch.setattr(HistoryStore, "remove", after_another)
    compact(history_dir)
    assert held(history_dir) == (4, 48, 4)


def test_foreign_and_damaged_files_stay_where_they_are(history_dir: Path) -> None:
    """Each is named and left alone, where its content is damaged, too; the others are merged."""
    foreign, (cut, damaged, *_) = history_dir / LOOSE / "a.parquet", loose_files(history_dir)
    foreign.write_bytes(b"not Parquet at all")
    cut.write_bytes(cut.read_bytes()[:-100])
    content = bytearray(damaged.read_bytes())
    content[4:4000] = bytes(3996)
    damaged.write_bytes(content)
    done = compact(history_dir)
    assert (done.n_files, done.n_runs) == (2, 2)
    assert {each.path for each in done.skipped} == {foreign, cut, damaged} == {*loose_files(history_dir)} | {foreign}


def test_folders_below_are_read_and_not_merged(history_dir: Path) -> None:
    """A fleet's folders are in one; the whole is read, and each is merged by itself."""
    other = replace(synthetic_run(n_cases=12, seed=7), device="board")
    append_run(other, history_dir / "fleet" / "board")
    compact(history_dir)
    assert held(history_dir)[0] == 5
    assert len(loose_files(history_dir / "fleet" / "board")) == 1


@pytest.mark.parametrize("columns", ["deadbeef", MARK.rpartition("=")[2]])
@pytest.mark.parametrize("change", ["REPLACE ('abc' AS started_at, 'x' AS run_id)", "EXCLUDE case_id"])
def test_a_file_with_other_columns_than_it_says_is_neither_merged_nor_removed(
    history_dir: Path, columns: str, change: str
) -> None:
    """It is named, stays, and changes no column of the merged file."""
    (one, *_) = loose_files(history_dir)
    foreign, key = one.with_name("0.parquet"), f"{MARK.rpartition('=')[0]}={columns}"
    rows = f"SELECT * {change} FROM read_parquet('{one}')"
    duckdb.execute(f"COPY ({rows}) TO '{foreign}' (FORMAT parquet, KV_METADATA {{'{key}': 'yes'}})")
    done = compact(history_dir)
    assert [each.path for each in done.skipped] == [foreign]
    assert (done.n_runs, loose_files(history_dir)) == (4, [foreign])
    assert compact(history_dir).path is None
    assert held(history_dir) == (4, 48, 4)
