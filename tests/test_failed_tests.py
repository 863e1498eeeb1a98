"""Tests that failed are run once more where they are few."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.failed_tests import failed_tests


def run_of(folder: Path, source: str) -> Path:
    """Run tests with a cache of their own; return its folder."""
    (folder / "test_some.py").write_text(source)
    cache = folder / "cache"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:perfsuite", "-o", f"cache_dir={cache}", "test_some.py"]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False)
    return cache


@pytest.mark.parametrize(
    ("source", "failed"),
    [
        ("def test_a(): pass", ()),
        ("def test_a(): assert 0\ndef test_b(): pass", ("test_some.py::test_a",)),
        ("import pytest\n@pytest.mark.parametrize('i', range(4))\ndef test_a(i): assert 0", ()),
        ("import nothing_of_this_name", ()),
    ],
    ids=["none", "one", "too many", "a whole file"],
)
def test_few_failed_tests_are_named(tmp_path: Path, source: str, failed: tuple[str, ...]) -> None:
    """None are named where none failed, where more than three did, and where a file could not be read."""
    assert failed_tests(run_of(tmp_path, source)) == failed
