"""The commits between two runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from perfsuite.cli.history_commits import commits_between
from perfsuite.records.run_origin import Commit

SUBJECTS = ("first", "<script>", "third")


@pytest.fixture
def repo(tmp_path: Path) -> tuple[Path, list[Commit]]:
    """A repository of three commits, the oldest first."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()

    git("init", "-q")
    commits = []
    for subject in SUBJECTS:
        git("commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", subject)
        commits.append(Commit(sha=git("rev-parse", "HEAD")))
    return tmp_path, commits


def test_commits_after_the_older_run_are_listed(repo: tuple[Path, list[Commit]]) -> None:
    """The newest first, without that of the older run."""
    folder, commits = repo
    told = commits_between(folder, commits[0], commits[2])
    assert [line.partition(" ")[2] for line in told.lines] == ["third", "<script>"]
    assert told.remarks == ()


def test_the_same_commit_and_changed_files_are_told(repo: tuple[Path, list[Commit]]) -> None:
    """Where both runs are of one commit it is said, and where their sources differed from it."""
    folder, commits = repo
    dirty = Commit(sha=commits[0].sha, is_dirty=True)
    told = commits_between(folder, commits[0], dirty)
    assert told.lines == ()
    assert told.remarks[0].startswith("both runs are of ")
    assert told.remarks[1].startswith("the newer run's sources differed from ")


def test_an_older_commit_is_told(repo: tuple[Path, list[Commit]]) -> None:
    """A run that went back has no commits in between."""
    folder, commits = repo
    assert "older commit" in commits_between(folder, commits[2], commits[0]).remarks[0]


@pytest.mark.parametrize(
    ("old", "new", "remark"),
    [
        (None, None, "both runs told none"),
        (Commit(sha="a" * 40), None, "one run told none"),
        (Commit(sha="a" * 40), Commit(sha="b" * 40), "is unknown in"),
        (Commit(sha="--output=x"), Commit(sha="b" * 40), "are no ids of git"),
    ],
)
def test_what_is_not_known_is_said(
    repo: tuple[Path, list[Commit]], old: Commit | None, new: Commit | None, remark: str
) -> None:
    """A missing, unknown or made-up commit is a remark, and no error."""
    told = commits_between(repo[0], old, new)
    assert told.lines == ()
    assert remark in told.remarks[0]


def test_a_git_that_hangs_or_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting has a limit."""

    def hang(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 10.0)

    monkeypatch.setattr(subprocess, "run", hang)
    told = commits_between(tmp_path, Commit(sha="a" * 40), Commit(sha="b" * 40))
    assert "git cannot be asked (TimeoutExpired)" in told.remarks[0]
