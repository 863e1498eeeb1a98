"""Where runs are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli.kept_folders import kept_folder
from perfsuite.errors import PerfsuiteError


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, two below that of a repository, which is below one with a history of its own."""
    folder = tmp_path / "repository" / "src" / "part"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / ".perfsuite" / "history").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", [".perfsuite", ".perfsuite/history"])
def test_a_folder_above_that_others_can_write_is_refused(below: Path, name: str) -> None:
    """As a cache is: runs would go there, and history come from there; one in the current folder is yours."""
    (below.parent / ".perfsuite/history").mkdir(parents=True)
    (below.parent / name).chmod(0o777)
    with pytest.raises(PerfsuiteError, match=f"{name}: others can write there"):
        kept_folder("history")
    (below / ".perfsuite/history").mkdir(parents=True)
    assert kept_folder("history") == Path(".perfsuite/history")


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
