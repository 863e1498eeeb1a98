"""The exit code that a cell leaves in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.nightly.exit_file import EXIT_NAME, ExitNote, read_exit, write_exit


def test_an_exit_code_is_read_as_it_was_written(tmp_path: Path) -> None:
    note = ExitNote(exit_code=1, seconds=2.5)
    write_exit(tmp_path, note)
    assert read_exit(tmp_path) == note


@pytest.mark.parametrize("text", [None, "{", '{"exit_code": -9, "seconds": 1}'])
def test_what_is_no_exit_code_is_none(tmp_path: Path, text: str | None) -> None:
    """A cell without one has not ended by itself."""
    if text is not None:
        (tmp_path / EXIT_NAME).write_text(text)
    assert read_exit(tmp_path) is None
