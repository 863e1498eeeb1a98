"""The commit that a run stands on: that of the working tree in which pytest ran, or one that an option names."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from perfsuite.records.run_origin import Commit

#: Longest that git may take for one answer.
_LIMIT_S = 10.0

_SHA = re.compile(r"[0-9a-f]{7,40}")


def named_commit(text: str) -> Commit:
    """Return the commit that ``--perf-commit`` names.

    Raises pytest.UsageError: it is no commit in hexadecimal.
    """
    sha = text.strip().lower()
    if not _SHA.fullmatch(sha):
        raise pytest.UsageError(f"--perf-commit={text}: expected 7 to 40 hexadecimal digits, as 'git rev-parse HEAD'")
    return Commit(sha=sha)


def commit_of(folder: Path) -> Commit | None:
    """Return what is checked out in a folder; None without git, outside of a working tree, or before any commit.

    A tree whose state git cannot tell in time counts as dirty.
    """
    sha = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if not sha or not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    branch = _git(folder, "symbolic-ref", "--short", "--quiet", "HEAD")
    return Commit(sha=sha, is_dirty=changed != "", branch=branch or None)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git says; None where it fails. Nothing is written: other processes of git may be at work."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
