"""Objects of a bucket come and go whole, and one line says that a bucket is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import HistoryError
from perfsuite.records.history_place import HistoryBucket
from perfsuite.report.history import append_run, open_history, runs_of
from perfsuite.report.history.bucket import OpenBucket
from perfsuite.testing.run_files import synthetic_run


def test_an_object_is_what_was_put(bucket: HistoryBucket, tmp_path: Path) -> None:
    """It is listed with its size, read as it was written, and gone when it is removed, once or twice."""
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    opened = OpenBucket(bucket)
    opened.put("runs/a b+é.parquet", tmp_path / "file")
    assert {name: each.n_bytes for name, each in opened.objects().items()} == {"runs/a b+é.parquet": 3_000_000}
    read: list[bytes] = []
    assert opened.fetch("runs/a b+é.parquet", read.extend)
    assert b"".join(read) == (tmp_path / "file").read_bytes()
    opened.remove(["runs/a b+é.parquet"])
    opened.remove(["runs/a b+é.parquet"])
    assert opened.objects() == {}
    assert not opened.fetch("runs/a b+é.parquet", read.extend)


@pytest.mark.long
def test_more_objects_than_a_page_are_listed(bucket: HistoryBucket, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    opened = OpenBucket(bucket)
    for number in range(1_001):
        opened.put(f"runs/{number}.parquet", tmp_path / "file")
    assert len(opened.objects()) == 1_001
    opened.remove(opened.objects())
    assert opened.objects() == {}


def test_a_bucket_that_is_not_there_is_told(bucket: HistoryBucket) -> None:
    missing = HistoryBucket(address="s3://elsewhere/nights")
    with pytest.raises(HistoryError, match=r"^s3://elsewhere/nights: cannot be listed \(NoSuchBucket\); see AWS"):
        OpenBucket(missing).objects()
    with pytest.raises(HistoryError, match=r"^s3://elsewhere/nights: runs/.* cannot be written \(NoSuchBucket\)"):
        append_run(synthetic_run(n_cases=8), missing)


def test_a_run_is_added_by_one_request(bucket: HistoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is listed, read or removed: who may only write can add; the object is named for what it holds."""

    def refused(*_: object) -> None:
        raise AssertionError

    run = synthetic_run(n_cases=8)
    with monkeypatch.context() as patch:
        for name in ("objects", "fetch", "remove"):
            patch.setattr(OpenBucket, name, refused)
        first, again = append_run(run, bucket), append_run(run, bucket)
    assert first == again
    assert [f"{bucket}/{name}" for name in OpenBucket(bucket).objects()] == [first]
    with open_history(bucket) as history:
        assert [each.n_cases for each in runs_of(history)] == [8]
