"""Where runs are kept."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from perfsuite.cli.kept_folders import kept_folder
from perfsuite.cli.nearest import nearest, refuse_mistyped
from perfsuite.errors import PerfsuiteError


def test_the_nearest_name_is_found(tmp_path: Path) -> None:
    """The hint fits an argument that may be several; a name that is like none, or exists, is left to the command."""
    assert nearest("reprot", ["report", "export"]) == "report"
    assert nearest("xyz", ["report", "export"]) is None
    (tmp_path / "monday").mkdir()
    options = argparse.Namespace(runs=[tmp_path / "monday", tmp_path / "mondya"])
    with pytest.raises(PerfsuiteError, match=f"mondya: no such file or folder; did you mean {tmp_path}/monday[?]"):
        refuse_mistyped(options)
    refuse_mistyped(argparse.Namespace(runs=[tmp_path / "none"], path=tmp_path, output=tmp_path / "x", files="abc"))


def test_a_run_of_the_usual_folder_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only its name was given."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".perfsuite" / "runs" / "20260301T020000-17").mkdir(parents=True)
    with pytest.raises(PerfsuiteError, match=r"did you mean [.]perfsuite/runs/20260301T020000-17"):
        refuse_mistyped(argparse.Namespace(run_path=Path("20260301T020000-71")))


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, two below that of a repository, which is below one with a history of its own."""
    folder = tmp_path / "repository" / "src" / "part"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / ".perfsuite" / "history").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_the_nearest_folder_is_found(below: Path) -> None:
    """A history above the repository is another project's; the current folder comes first, as people write it."""
    assert kept_folder("history") == Path(".perfsuite/history")
    kept = below.parents[1] / ".perfsuite" / "history"
    kept.mkdir(parents=True)
    assert kept_folder("history") == kept
    assert kept_folder("runs") == Path(".perfsuite/runs")
    (below.parent / ".perfsuite" / "history").mkdir(parents=True)
    (below / ".perfsuite" / "history").mkdir(parents=True)
    assert kept_folder("history") == Path(".perfsuite/history")
