"""The kernel's account of a process, from real and made-up status files."""

from __future__ import annotations

from pathlib import Path

from perfsuite.measure.resident import resident_sample

STATUS = "Name:\tx\nVmHWM:\t  400 kB\nRssAnon:\t  100 kB\nRssFile:\t  20 kB\nRssShmem:\t  3 kB\n"


def test_sizes_are_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "status"
    path.write_text(STATUS)
    seen = resident_sample(path)
    assert seen is not None
    sample, mark = seen
    assert (sample.anonymous_bytes, sample.file_bytes, sample.shared_bytes) == (102400, 20480, 3072)
    assert mark == 409600


def test_a_process_that_is_gone_has_nothing(tmp_path: Path) -> None:
    """There is no file to read; and a zombie's has no sizes."""
    path = tmp_path / "status"
    assert resident_sample(path) is None
    path.write_text("Name:\tx\nState:\tZ (zombie)\n")
    assert resident_sample(path) is None
