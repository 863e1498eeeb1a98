"""Histories on S3: a server on this machine, a bucket of each test's own, and a cache that goes with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.s3_server import forget_all, make_bucket, running_s3


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, running_s3(patch) as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    forget_all(s3)
    make_bucket(s3, "farm")
    return "s3://farm/nights"
