"""Files are merged, and a reader is right at every moment of it."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history import (
    append_run,
    cases_of,
    compact,
    compaction,
    folder,
    folder_lock,
    open_history,
    runs_of,
    trend_of,
)
from perfsuite.report.history.columns import MARK
from perfsuite.report.history.compaction import merge_loose
from perfsuite.report.history.folder import COMPACTED, LOOSE, loose_files
from perfsuite.testing.run_files import synthetic_run

DECODE = "phase/smollm2-135m-q8_0/siso/decode"


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def history_dir(tmp_path: Path) -> Path:
    for day in range(1, 5):
        append_run(synthetic_run(n_cases=12, seed=day, started_at=f"2026-03-0{day}T02:00:00+00:00"), tmp_path)
    return tmp_path


def held(history_dir: Path) -> tuple[int, int, int]:
    with open_history(history_dir) as history:
        n_rows = sum(each.n_runs for each in cases_of(history))
        return len(runs_of(history)), n_rows, len(trend_of(history, DECODE))


def test_one_file_is_left(history_dir: Path) -> None:
    done = compact(history_dir)
    (path,) = history_dir.rglob("*.parquet")
    assert (done.path, done.n_files, done.n_runs) == (path, 4, 4)
    rows = duckdb.execute("SELECT case_id, started_at FROM read_parquet(?)", [str(path)]).fetchall()
    assert rows == sorted(rows)
    assert held(history_dir) == (4, 48, 4)


@pytest.mark.parametrize("n_removed", range(4))
def test_a_merge_that_dies_loses_and_doubles_nothing(
    history_dir: Path, monkeypatch: pytest.MonkeyPatch, n_removed: int
) -> None:
    """Wherever removing ended, readers find each case of each run once, and the next merge ends it."""
    unlink, count = Path.unlink, 0

    def dying(path: Path, missing_ok: bool = False) -> None:
        nonlocal count
        if path.parent.name == LOOSE and count == n_removed:
            raise Killed
        count += path.parent.name == LOOSE
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", dying)
        with pytest.raises(Killed):
            compact(history_dir)
    assert len(loose_files(history_dir)) == 4 - n_removed
    assert held(history_dir) == (4, 48, 4)
    compact(history_dir)
    assert len(list(history_dir.rglob("*.parquet"))) == 1
    assert held(history_dir) == (4, 48, 4)


def test_a_merge_that_dies_while_writing_changes_nothing(history_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(source: str, target: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying)
        with pytest.raises(Killed):
            compact(history_dir)
    assert held(history_dir) == (4, 48, 4)
    assert len(loose_files(history_dir)) == 4


def test_the_merged_file_is_on_the_disk_before_any_goes(history_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(compaction, "_flush", lambda path: seen.append((path.exists(), len(loose_files(history_dir)))))
    compact(history_dir)
    assert seen == [(True, 4)]


def test_a_reader_does_not_mind_files_that_go(history_dir: Path) -> None:
    """A question that was begun before a merge is answered after it."""
    with open_history(history_dir) as history:
        assert len(runs_of(history)) == 4
        compact(history_dir)
        assert len(trend_of(history, DECODE)) == 4
        assert history.skipped == ()


def merge_at(monkeypatch: pytest.MonkeyPatch, name: str, history_dir: Path, *, is_after: bool) -> None:
    """Let a merge end before or after the first call of one of the steps of listing the folder."""
    step = getattr(folder, name)

    def with_merge(*arguments: object) -> object:
        monkeypatch.setattr(folder, name, step)
        before = step(*arguments) if is_after else None
        compact(history_dir)
        return before if is_after else step(*arguments)

    monkeypatch.setattr(folder, name, with_merge)


@pytest.mark.parametrize("is_after", [False, True])
def test_a_merge_that_ends_while_footers_are_read_hides_no_run(
    history_dir: Path, monkeypatch: pytest.MonkeyPatch, is_after: bool
) -> None:
    """Files were listed, and have gone when their footers are read; the merged file is found all the same."""
    merge_at(monkeypatch, "_mark_of", history_dir, is_after=is_after)
    assert held(history_dir) == (4, 48, 4)


def test_a_merge_that_ends_between_two_folders_hides_no_run(history_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged files were listed before the merge and single ones after it, so that the first listing has neither."""
    found = folder._found_below

    def torn(history_dir: Path) -> list[Path]:
        monkeypatch.setattr(folder, "_found_below", found)
        merged = [path for path in found(history_dir) if path.parent.name == COMPACTED]
        compact(history_dir)
        return [*merged, *(path for path in found(history_dir) if path.parent.name == LOOSE)]

    monkeypatch.setattr(folder, "_found_below", torn)
    assert held(history_dir) == (4, 48, 4)


def test_a_folder_that_never_rests_is_told(history_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files go each time that the folder is listed, no part of it is taken for the whole."""
    monkeypatch.setattr(folder, "_mark_of", lambda path: (None, None))
    with pytest.raises(HistoryError, match="merged again and again"):
        held(history_dir)


def test_two_that_merge_at_the_same_time_wait_for_each_other(history_dir: Path) -> None:
    """Where the lock does not come free in time it is reported; runs go on being added, and merge later."""
    with (history_dir / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(HistoryError, match="is being compacted by another process"):
            compact(history_dir, limit_s=0.1)
        merge_loose(history_dir)
        assert len(loose_files(history_dir)) == 4
    merge_loose(history_dir)
    assert len(loose_files(history_dir)) == 0


def test_two_that_merge_without_a_lock_lose_nothing(history_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without locks, two merges of the same files leave two files, which count once."""
    remove, n_merges = compaction._remove, 1

    def with_another_merge(paths: list[Path]) -> None:
        nonlocal n_merges
        n_merges += 1
        if n_merges == 2:
            compact(history_dir)
        remove(paths)

    monkeypatch.setattr(folder_lock, "_is_locked", lambda handle, limit_s: True)
    monkeypatch.setattr(compaction, "_remove", with_another_merge)
    compact(history_dir)
    assert n_merges == 3
    assert held(history_dir) == (4, 48, 4)


def test_damaged_files_stay_where_they_are(history_dir: Path) -> None:
    """A foreign file and a file that is cut short are named and left alone; the others are merged."""
    foreign, short = history_dir / LOOSE / "a.parquet", loose_files(history_dir)[0]
    foreign.write_bytes(b"not Parquet at all")
    short.write_bytes(short.read_bytes()[:-100])
    done = compact(history_dir)
    assert done.n_runs == 3
    assert {each.path for each in done.skipped} == {foreign, short}
    assert foreign.exists()
    assert short.exists()


def test_a_file_damaged_in_its_middle_stops_the_merge(history_dir: Path) -> None:
    """Where a file's footer is whole and its content is not, nothing is changed."""
    path = loose_files(history_dir)[0]
    content = bytearray(path.read_bytes())
    content[4:4000] = bytes(3996)
    path.write_bytes(content)
    with pytest.raises(HistoryError, match="nothing was changed"):
        compact(history_dir)
    assert len(loose_files(history_dir)) == 4
    assert not list((history_dir / COMPACTED).glob("*.parquet"))


def test_folders_below_are_read_and_not_merged(history_dir: Path) -> None:
    """A fleet's folders are in one; the whole is read, and each is merged by itself."""
    other = replace(synthetic_run(n_cases=12, seed=7), device="board")
    append_run(other, history_dir / "fleet" / "board")
    compact(history_dir)
    assert held(history_dir)[0] == 5
    assert len(loose_files(history_dir / "fleet" / "board")) == 1


@pytest.mark.parametrize("columns", ["deadbeef", MARK.rpartition("=")[2]])
def test_a_file_with_other_types_is_neither_merged_nor_removed(history_dir: Path, columns: str) -> None:
    """Whatever its footer says, it is named, stays, and changes no column of the merged file."""
    (one, *_) = loose_files(history_dir)
    foreign, key = one.with_name("0.parquet"), f"{MARK.rpartition('=')[0]}={columns}"
    rows = f"SELECT * REPLACE ('abc' AS started_at, 'x' AS run_id) FROM read_parquet('{one}')"
    duckdb.execute(f"COPY ({rows}) TO '{foreign}' (FORMAT parquet, KV_METADATA {{'{key}': 'yes'}})")
    done = compact(history_dir)
    assert [each.text for each in done.skipped] == [
        f"{foreign}: its column started_at is VARCHAR, expected TIMESTAMP; left out"
    ]
    assert (done.n_runs, loose_files(history_dir)) == (4, [foreign])
    assert compact(history_dir).path is None
    if columns == "deadbeef":
        assert held(history_dir) == (4, 48, 4)
