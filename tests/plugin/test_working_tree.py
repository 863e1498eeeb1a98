"""The commit of a working tree, in real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfsuite.plugin import working_tree
from perfsuite.plugin.working_tree import commit_of, named_commit


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", *who, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a working tree with one commit on the branch ``trunk``."""
    _git(tmp_path, "init", "--quiet", "--initial-branch=trunk")
    (tmp_path / "tracked").write_text("1")
    _git(tmp_path, "add", "tracked")
    _git(tmp_path, "commit", "--quiet", "-m", "first")
    return tmp_path


def test_a_clean_tree_has_its_commit_and_branch(tree: Path) -> None:
    """From any folder within it; files that git does not track make it no other."""
    (tree / "within").mkdir()
    (tree / "within" / "untracked").touch()
    for folder in (tree, tree / "within"):
        commit = commit_of(folder)
        assert commit is not None
        assert (commit.sha, commit.is_dirty, commit.branch) == (_git(tree, "rev-parse", "HEAD"), False, "trunk")


def test_a_changed_file_makes_a_tree_dirty(tree: Path) -> None:
    """Staged or not."""
    (tree / "tracked").write_text("2")
    assert commit_of(tree) is not None
    assert commit_of(tree).is_dirty  # type: ignore[union-attr]
    _git(tree, "add", "tracked")
    assert commit_of(tree).is_dirty  # type: ignore[union-attr]


def test_a_detached_tree_is_on_no_branch(tree: Path) -> None:
    """As continuous integration checks out."""
    _git(tree, "checkout", "--quiet", "--detach")
    assert commit_of(tree).branch is None  # type: ignore[union-attr]


def test_where_there_is_no_commit_none_is_told(tmp_path: Path) -> None:
    """A folder that is no working tree, one without a commit, and one that is not there."""
    _git(tmp_path, "init", "--quiet", "empty")
    (tmp_path / "bare").mkdir()
    assert commit_of(tmp_path / "empty") is None
    assert commit_of(tmp_path / "gone") is None


def test_without_git_there_is_no_commit(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a program that is missing nor one that hangs is an error of the run."""
    monkeypatch.setenv("PATH", str(tree))
    assert commit_of(tree) is None


def test_git_that_hangs_is_given_up(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the limit, as if it were not there."""
    (tree / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tree / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tree}:/usr/bin:/bin")
    monkeypatch.setattr(working_tree, "_LIMIT_S", 0.1)
    assert commit_of(tree) is None


def test_a_tree_whose_state_is_not_known_counts_as_dirty(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be told to be clean is not."""
    asked = working_tree._git
    monkeypatch.setattr(
        working_tree, "_git", lambda folder, *words: None if words[0] == "status" else asked(folder, *words)
    )
    assert commit_of(tree).is_dirty  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["0c1e570", "A" * 40, " 0c1e570\n"])
def test_a_commit_can_be_named(text: str) -> None:
    """In 7 to 40 hexadecimal digits of either case; nothing is known of its tree."""
    commit = named_commit(text)
    assert (commit.sha, commit.is_dirty, commit.branch) == (text.strip().lower(), False, None)


@pytest.mark.parametrize("text", ["", "0c1e57", "main", "a" * 41, "0c1e570 ; ls", "-c1e5700"])
def test_what_is_no_commit_is_refused(text: str) -> None:
    """The option is named, with what it takes."""
    with pytest.raises(pytest.UsageError, match=r"--perf-commit=.*: expected 7 to 40 hexadecimal digits"):
        named_commit(text)
