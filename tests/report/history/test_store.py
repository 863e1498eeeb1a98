"""A history on S3: objects come and go whole, and are fetched once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import HistoryError
from perfsuite.report.history import append_run, compact, open_history, runs_of
from perfsuite.report.history.reader import answer_query
from perfsuite.report.history.store import BucketStore, is_file_name
from perfsuite.testing.run_files import synthetic_run


def add(bucket: str, *days: int) -> None:
    for day in days:
        append_run(synthetic_run(n_cases=12, seed=day, started_at=f"2026-03-{day:02}T02:00:00+00:00"), bucket)


def held(bucket: str) -> tuple[int, int]:
    history = open_history(bucket)
    return len(runs_of(history)), history.rows("SELECT count(*) FROM history")[0][0]


def put(bucket: str, name: str, content: bytes = b"x") -> None:
    BucketStore(bucket).write(name, lambda path: path.write_bytes(content))


def test_two_farms_keep_one_history(bucket: str) -> None:
    """Their nights come at the same time, and all are there; farms below a common prefix are read as one, too."""
    with ThreadPoolExecutor(2) as farms:
        list(farms.map(lambda days: add(bucket, *days), [range(1, 7), range(11, 17)]))
    assert held(bucket) == (12, 144)
    add(f"{bucket}/attic", 20)
    assert held(bucket) == held("s3://farm") == (13, 156)
    assert answer_query(open_history(bucket), "SELECT count(DISTINCT run_id) FROM history").rows == ((13,),)


def test_a_run_is_added_by_one_request(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is listed, read or removed, so that who may only write can add; the same run is the same object."""
    run = synthetic_run(n_cases=8)
    with monkeypatch.context() as patch:
        for name in ("paths", "remove"):
            patch.delattr(BucketStore, name)
        assert append_run(run, bucket) == append_run(run, bucket)
    assert held(bucket) == (1, 8)


def test_an_object_is_fetched_once(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has gone from the bucket goes from the cache."""
    fetched: list[Path] = []
    fetch = BucketStore._fetch
    monkeypatch.setattr(BucketStore, "_fetch", lambda store, path: (fetched.append(path), fetch(store, path)))
    add(bucket, 1, 2)
    assert held(bucket) == held(bucket) == (2, 24)
    add(bucket, 3)
    assert held(bucket) == (3, 36)
    assert len(fetched) == len(set(fetched)) == 3
    BucketStore(bucket).remove(fetched[:1] * 2)
    assert held(bucket) == (2, 24)
    assert not fetched[0].exists()


def test_what_is_no_file_of_a_history_stays_where_it_is(bucket: str) -> None:
    """Objects of other kinds, hidden ones, and names that no file can have are not fetched; what is cut is left out."""
    add(bucket, 1)
    for name in ("readme.txt", ".hidden.parquet", ".tmp/a.parquet", "runs/a\u202eb.parquet", f"{'x' * 300}.parquet"):
        put(bucket, name)
    put(bucket, "runs/other.parquet")
    history = open_history(bucket)
    assert len(runs_of(history)) == 1
    assert [each.path.name for each in history.skipped] == ["other.parquet"]
    assert compact(bucket).n_runs == 1
    assert [path.name for path in BucketStore(bucket).paths() if path.name == "other.parquet"]


@pytest.mark.parametrize("name", ["../x.parquet", "/x.parquet", "a//b.parquet", "a/../../b.parquet", "a/.b/c.parquet"])
def test_a_name_that_is_no_path_below_is_none(name: str) -> None:
    """Whatever a server lists, nothing is written outside of the cache."""
    assert not is_file_name(name)


def test_one_object_is_left_of_a_merge(bucket: str) -> None:
    add(bucket, 1, 2, 3)
    done = compact(bucket)
    assert (done.n_files, done.n_runs) == (3, 3)
    (path,) = BucketStore(bucket).paths()
    assert str(done.path) == f"{bucket}/compacted/{path.name}"
    assert compact(bucket).path is None
    add(bucket, 4)
    assert (compact(bucket).n_runs, held(bucket)) == (4, (4, 48))


@pytest.mark.parametrize("step", ["_listed", "_fetch"])
def test_a_merge_elsewhere_hides_no_run(
    bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str
) -> None:
    """One that ends between a listing and what follows is seen, and the bucket is listed again."""
    add(bucket, 1, 2, 3)
    method: Callable[..., Any] = getattr(BucketStore, step)

    def interrupted(store: BucketStore, *arguments: Any) -> Any:
        monkeypatch.setattr(BucketStore, step, method)
        before = method(store, *arguments) if step == "_listed" else None
        with monkeypatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
            compact(bucket)
        return method(store, *arguments) if before is None else before

    monkeypatch.setattr(BucketStore, step, interrupted)
    assert held(bucket) == (3, 36)


@pytest.mark.long
def test_more_objects_than_a_page_are_listed(bucket: str) -> None:
    for number in range(1_001):
        put(bucket, f"runs/{number}.parquet")
    assert len(BucketStore(bucket).paths()) == 1_001


def test_a_bucket_that_is_not_there_is_told(bucket: str) -> None:
    missing = "s3://elsewhere/nights"
    with pytest.raises(HistoryError, match=r"^s3://elsewhere/nights: cannot be listed \(NoSuchBucket\); see AWS"):
        BucketStore(missing).paths()
    with pytest.raises(HistoryError, match=r"^s3://elsewhere/nights: runs/.* cannot be written \(NoSuchBucket\)"):
        append_run(synthetic_run(n_cases=8), missing)
