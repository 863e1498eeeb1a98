"""Which commits lie between two runs."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from perfsuite.records.run_origin import Commit

_LIMIT_S = 10.0
_MOST_COMMITS = 20
_SHA = re.compile(r"[0-9a-fA-F]{7,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitsBetween:
    """Commits after one run's and up to another's, the newest first; or why they are not known."""

    #: ``<short id> <subject>``.
    lines: tuple[str, ...] = ()
    #: What else is to be said, each in a few words.
    remarks: tuple[str, ...] = ()


def commits_between(repo: Path, old: Commit | None, new: Commit | None) -> CommitsBetween:
    """Ask git for the commits between those of two runs; what is not known is said, and never an error."""
    if old is None or new is None:
        return CommitsBetween(remarks=(f"unknown, as {'both runs' if old is new else 'one run'} told none",))
    dirty = tuple(
        f"the {name} run's sources differed from {commit.sha[:10]}"
        for name, commit in (("older", old), ("newer", new))
        if commit.is_dirty
    )
    if old.sha == new.sha:
        return CommitsBetween(remarks=(f"both runs are of {new.sha[:10]}", *dirty))
    lines, remark = _log(repo, old.sha, new.sha)
    return CommitsBetween(lines=lines, remarks=(*([remark] if remark else []), *dirty))


def _log(repo: Path, old: str, new: str) -> tuple[tuple[str, ...], str]:
    if not (_SHA.fullmatch(old) and _SHA.fullmatch(new)):
        return (), f"commits {old!r} and {new!r} are no ids of git"
    named = f"{old[:10]}..{new[:10]}"
    command = ["git", "-C", str(repo), "log", "--oneline", "--no-decorate", "--no-color", f"-{_MOST_COMMITS + 1}"]
    try:
        told = subprocess.run(
            [*command, f"{old}..{new}", "--"],
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"{named}: git cannot be asked ({type(error).__name__})"
    if told.returncode:
        return (), f"{named} is unknown in {repo.resolve()}; name its repository with --repo"
    lines = tuple(told.stdout.decode("utf-8", "replace").splitlines())
    if not lines:
        return (), f"{named}: the newer run is of an older commit, or of another branch's"
    return lines[:_MOST_COMMITS], f"{named}: and more" if len(lines) > _MOST_COMMITS else ""
