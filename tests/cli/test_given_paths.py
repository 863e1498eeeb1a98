"""The files that a command line names."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from perfsuite.cli.given_paths import check_paths
from perfsuite.errors import PerfsuiteError


def given(**options: object) -> argparse.Namespace:
    """What a parser made of a command line."""
    return argparse.Namespace(**options)


def test_a_mistyped_input_is_answered_by_the_nearest(tmp_path: Path) -> None:
    """An argument may be several; a name that is like none, and what is there, is left to the command."""
    (tmp_path / "monday").mkdir()
    with pytest.raises(PerfsuiteError, match=f"mondya: no such file or folder; did you mean {tmp_path}/monday[?]"):
        check_paths(given(runs=[tmp_path / "monday", tmp_path / "mondya"]))
    check_paths(given(runs=[tmp_path / "none"], path=tmp_path, output=tmp_path / "x", files="abc"))


def test_a_run_of_the_usual_folder_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".perfsuite" / "runs" / "20260301T020000-17").mkdir(parents=True)
    with pytest.raises(PerfsuiteError, match=r"did you mean [.]perfsuite/runs/20260301T020000-17"):
        check_paths(given(run_path=Path("20260301T020000-71")))


def test_an_output_that_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    """Nothing is made for it, nothing stays beside it, and what is there is kept."""
    (tmp_path / "here").write_text("kept")
    check_paths(given(output=tmp_path / "here", plot=tmp_path / "new" / "a.png", csv=None))
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert (tmp_path / "here").read_text() == "kept"


def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A folder in the place of a file, a file in the place of a folder, and a file system that takes none."""
    (tmp_path / "here").write_text("kept")
    with pytest.raises(PerfsuiteError, match=rf"--output={tmp_path}: is a folder, expected the name of a file"):
        check_paths(given(output=tmp_path))
    check_paths(given(output=tmp_path, makes_folder=True))
    with pytest.raises(PerfsuiteError, match=r"--plot=.*: cannot be written \(.*/here is not a folder\); name another"):
        check_paths(given(plot=tmp_path / "here" / "a.png"))
    with pytest.raises(PerfsuiteError, match=r"--csv=/proc/none/a.csv: cannot be written \(.*\); name a file in"):
        check_paths(given(csv=Path("/proc/none/a.csv")))


def test_a_file_is_read_or_written_once(tmp_path: Path) -> None:
    """An output is neither an input, nor another output, by whatever name."""
    (tmp_path / "lengths.txt").write_text("1\n")
    with pytest.raises(PerfsuiteError, match=r"--output=.*: is read or written already; expected a file of its own"):
        check_paths(given(files=[tmp_path / "lengths.txt"], output=tmp_path / "new" / ".." / "lengths.txt"))
    with pytest.raises(PerfsuiteError, match=r"--plot=.*: is read or written already"):
        check_paths(given(output=tmp_path / "a.png", plot=tmp_path / "a.png"))


@pytest.mark.parametrize("asked", ["dry_run", "list"])
def test_what_is_only_shown_needs_no_place(asked: str) -> None:
    """An output that is not written now may be one that cannot be."""
    check_paths(given(output=Path("/proc/none/a"), **{asked: True}))
    with pytest.raises(PerfsuiteError, match="cannot be written"):
        check_paths(given(output=Path("/proc/none/a"), **{asked: False}))
