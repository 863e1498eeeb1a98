"""Where runs are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli.kept_folders import kept_folder


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, two below that of a repository, which is below one with a history of its own."""
    folder = tmp_path / "repository" / "src" / "part"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / ".perfsuite" / "history").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def test_the_nearest_folder_above_is_found(below: Path) -> None:
    """The repository's own folder has it."""
    kept = below.parents[1] / ".perfsuite" / "history"
    kept.mkdir(parents=True)
    assert kept_folder("history") == kept
    assert kept_folder("runs") == Path(".perfsuite/runs")


def test_the_current_folder_comes_first(below: Path) -> None:
    """It is named as people write it."""
    (below.parent / ".perfsuite" / "history").mkdir(parents=True)
    (below / ".perfsuite" / "history").mkdir(parents=True)
    assert kept_folder("history") == Path(".perfsuite/history")


@pytest.mark.usefixtures("below")
def test_nothing_beyond_the_repository_is_found() -> None:
    """A history above the repository is another project's."""
    assert kept_folder("history") == Path(".perfsuite/history")
