"""A bucket's history is read from a copy, which is right at every moment of a merge elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import HistoryError
from perfsuite.records.history_place import HistoryBucket
from perfsuite.report.history import append_run, compact, mirror, open_history, runs_of
from perfsuite.report.history.bucket import OpenBucket, Stored
from perfsuite.report.history.mirror import mirror_folder, readable_folder
from perfsuite.report.history.reader import ask
from perfsuite.testing.run_files import synthetic_run


def add(bucket: HistoryBucket, *days: int) -> None:
    for day in days:
        append_run(synthetic_run(n_cases=12, seed=day, started_at=f"2026-03-{day:02}T02:00:00+00:00"), bucket)


def held(bucket: HistoryBucket) -> tuple[int, int]:
    with open_history(bucket) as history:
        return len(runs_of(history)), history.rows("SELECT count(*) FROM history")[0][0]


def names(bucket: HistoryBucket) -> list[str]:
    return sorted(name.split("/")[0] for name in OpenBucket(bucket).objects())


def before(monkeypatch: pytest.MonkeyPatch, name: str, do: Callable[[], object]) -> None:
    """Do something right before a bucket is first asked in this way."""
    method = getattr(OpenBucket, name)

    def interrupted(opened: OpenBucket, *arguments: Any) -> Any:
        monkeypatch.setattr(OpenBucket, name, method)
        do()
        return method(opened, *arguments)

    monkeypatch.setattr(OpenBucket, name, interrupted)


def test_two_farms_keep_one_history(bucket: HistoryBucket) -> None:
    """Their nights come at the same time, and all are there; farms below a common prefix are read as one, too."""
    with ThreadPoolExecutor(2) as farms:
        list(farms.map(lambda days: add(bucket, *days), [range(1, 7), range(11, 17)]))
    assert held(bucket) == (12, 144)
    add(HistoryBucket(address=f"{bucket}/attic"), 20)
    assert held(bucket) == (13, 156)
    assert held(HistoryBucket(address="s3://farm")) == (13, 156)
    assert ask(bucket, "SELECT count(DISTINCT run_id) FROM history").rows == ((13,),)


def test_an_object_is_fetched_once(bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a copy that is there, what is new is added, and what has gone goes; another length is another object."""
    fetched: list[str] = []
    fetch = OpenBucket.fetch

    def noted(opened: OpenBucket, name: str, write: Any) -> bool:
        fetched.append(name)
        return fetch(opened, name, write)

    monkeypatch.setattr(OpenBucket, "fetch", noted)
    add(bucket, 1, 2)
    assert held(bucket) == held(bucket) == (2, 24)
    add(bucket, 3)
    assert held(bucket) == (3, 36)
    assert len(fetched) == len(set(fetched)) == 3
    first = sorted(OpenBucket(bucket).objects())[0]
    (mirror_folder(bucket) / first).write_bytes(b"cut")
    assert held(bucket) == (3, 36)
    OpenBucket(bucket).remove([first])
    assert held(bucket) == (2, 24)


def test_what_is_no_file_of_a_history_stays_where_it_is(bucket: HistoryBucket, tmp_path: Path) -> None:
    """Objects of other kinds, hidden ones, and names that no file can have are not fetched; what is cut is left out."""
    add(bucket, 1)
    (tmp_path / "file").write_text("x")
    opened = OpenBucket(bucket)
    for name in ("readme.txt", ".hidden.parquet", ".tmp/a.parquet", "runs/a\u202eb.parquet", f"{'x' * 300}.parquet"):
        opened.put(name, tmp_path / "file")
    opened.put("runs/other.parquet", tmp_path / "file")
    with open_history(bucket) as history:
        assert len(runs_of(history)) == 1
        assert [each.path.name for each in history.skipped] == ["other.parquet"]
    assert len(list(mirror_folder(bucket).rglob("*.parquet"))) == 2
    assert compact(bucket).n_runs == 1
    assert "runs/other.parquet" in opened.objects()


@pytest.mark.parametrize("name", ["../x.parquet", "/x.parquet", "a//b.parquet", "a/../../b.parquet", "a/.b/c.parquet"])
def test_a_name_that_is_no_path_below_is_none(name: str) -> None:
    """Whatever a server lists, nothing is written outside of the copy."""
    assert mirror._histories({name: Stored(n_bytes=1, changed_s=1)}) == {}


def test_one_object_is_left_of_a_merge(bucket: HistoryBucket) -> None:
    add(bucket, 1, 2, 3)
    done = compact(bucket)
    assert (done.n_files, done.n_runs) == (3, 3)
    assert [f"{bucket}/{name}" for name in OpenBucket(bucket).objects()] == [done.path]
    assert compact(bucket).path is None
    add(bucket, 4)
    assert compact(bucket).n_runs == 4
    assert names(bucket) == ["compacted"]
    assert held(bucket) == (4, 48)


@pytest.mark.parametrize("step", ["put", "remove"])
def test_a_run_that_comes_while_objects_are_merged_stays(
    bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    add(bucket, 1, 2)
    before(monkeypatch, step, lambda: add(bucket, 3))
    compact(bucket)
    assert names(bucket) == ["compacted", "runs"]
    assert held(bucket) == (3, 36)


@pytest.mark.parametrize("step", ["put", "remove"])
def test_two_merges_at_the_same_time_lose_nothing(
    bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Each removes what its own object holds: all is there at least once, and readers take it once."""
    add(bucket, 1, 2, 3)
    before(monkeypatch, step, lambda: (add(bucket, 4), compact(bucket)))
    compact(bucket)
    assert held(bucket) == (4, 48)
    compact(bucket)
    assert names(bucket) == ["compacted"]
    assert held(bucket) == (4, 48)


def test_a_merge_that_dies_loses_and_doubles_nothing(bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it removes anything, rows are there twice, and are read once."""

    def dying() -> None:
        raise KeyboardInterrupt

    add(bucket, 1, 2)
    before(monkeypatch, "remove", dying)
    with pytest.raises(KeyboardInterrupt):
        compact(bucket)
    assert names(bucket) == ["compacted", "runs", "runs"]
    assert held(bucket) == (2, 24)
    compact(bucket)
    assert names(bucket) == ["compacted"]


@pytest.mark.parametrize("step", ["fetch", "objects"])
def test_a_reader_is_right_while_objects_are_merged(
    bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str
) -> None:
    """A merge that ends between a listing and what follows is seen, and the bucket is listed again."""
    add(bucket, 1, 2, 3)

    def merged_elsewhere() -> None:
        with monkeypatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
            compact(bucket)

    before(monkeypatch, step, merged_elsewhere)
    assert held(bucket) == (3, 36)


def test_a_listing_that_a_merge_slips_through_is_done_again(
    bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first page is older than the merged object, and its second younger than what that took in."""
    add(bucket, 1, 2, 3)
    compact(bucket)
    objects, pages = OpenBucket.objects, [dict[str, Stored]()]
    monkeypatch.setattr(OpenBucket, "objects", lambda opened: pages.pop() if pages else objects(opened))
    assert held(bucket) == (3, 36)


def test_a_bucket_that_is_merged_without_end_is_told(bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """After eight listings, in one line."""
    listed = [{f"compacted/{number}.parquet": Stored(n_bytes=1, changed_s=1)} for number in range(40)]
    monkeypatch.setattr(OpenBucket, "objects", lambda _: listed.pop())
    with pytest.raises(HistoryError, match=r"^s3://farm/nights: objects are merged again and again while"):
        readable_folder(bucket)
    assert len(listed) == 32
