"""Change points as they are reported."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from perfsuite.cli import history_changes
from perfsuite.cli.history_changes import CommitsBetween, commits_between, tell_changes
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import BoardName, Commit
from perfsuite.records.trend_point import TrendPoint
from tests.command_streams import Streams

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
    """None are for runs of one commit, whose sources may have differed from it, and for one that went back."""
    folder, (first, _, third) = repo
    told = commits_between(folder, first, third)
    assert [line.partition(" ")[2] for line in told.lines] == ["third", "<script>"]
    assert told.remarks == ()
    same = commits_between(folder, first, Commit(sha=first.sha, is_dirty=True))
    assert same.lines == ()
    assert same.remarks[0].startswith("both runs are of ")
    assert same.remarks[1].startswith("the newer run's sources differed from ")
    assert "older commit" in commits_between(folder, third, first).remarks[0]


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


OPTIONS = argparse.Namespace(json=False, repo=Path())
OLD, NEW = Commit(sha="a" * 40), Commit(sha="b" * 40, is_dirty=True)


def trend(case_id: str, n_nights: int = 30, ratio: float = 1.1, device: str = "board") -> list[TrendPoint]:
    """Nights that alternate by 1 %, slower from the twentieth on."""
    return [
        TrendPoint(
            run_id=f"run-{night}",
            started_at=datetime(2026, 3, 1, 2, tzinfo=timezone.utc) + timedelta(days=night),
            device=device,
            case_id=case_id,
            outcome=Outcome.PASS,
            measured_ns=round((1.0 + 0.01 * (night % 2)) * (ratio if night >= 20 else 1.0) * 5e6),
            fingerprint={"soc": "one"},
            fingerprint_digest="one",
            commit=NEW if night >= 20 else OLD,
        )
        for night in range(n_nights)
    ]


def told(points: list[TrendPoint], capsys: Streams) -> str:
    tell_changes(points, OPTIONS, empty="nothing there")
    return capsys.readouterr().out


def test_cases_that_changed_together_are_told_together(capsys: Streams) -> None:
    """One seam with its runs and commits, and the hint that what moves most cases is none of them."""
    points = [point for number in range(14) for point in trend(f"mine/{number:02d}")]
    text = told(points, capsys)
    assert text.count("between the runs of") == 1
    assert "2026-03-20 02:00 (aaaaaaaaaa) and 2026-03-21 02:00 (bbbbbbbbbb+)" in text
    assert "and 2 cases more" in text
    assert "14 of 14 cases changed here: look at the machine and the build first" in text
    assert "commits: aaaaaaaaaa..bbbbbbbbbb is unknown in" in text
    assert "commits: the newer run's sources differed from bbbbbbbbbb" in text


def test_a_few_cases_are_not_the_machine(capsys: Streams) -> None:
    """One case of six is reported without the hint."""
    points = [point for number in range(6) for point in trend(f"mine/{number}", ratio=1.0 if number else 1.1)]
    text = told(points, capsys)
    assert "mine/0" in text
    assert "look at the machine" not in text


def test_a_fingerprint_is_told_once_for_all_cases(capsys: Streams) -> None:
    """What was measured on became another, for so many cases, whose nights at the seam end on different ones."""
    points = [
        replace(point, fingerprint={"soc": "two"}, fingerprint_digest="two") if point.commit == NEW else point
        for number in range(3)
        for point in trend(f"mine/{number}")
    ]
    text = told(points, capsys)
    assert text.count("another fingerprint, so a new series (+8.9 % at the seam): soc 'one', now 'two'") == 1
    assert ", 3 cases" in text
    assert "too few runs: 10 of one fingerprint" in text


def test_nothing_found_says_how_long_it_takes(capsys: Streams) -> None:
    """No change, too few runs, and no run at all are told apart; what is reported is advice."""
    assert "no change point in 1 case; a change shows once 4 runs have followed it where 13 precede it, and later" in (
        told(trend("mine/0", ratio=1.0), capsys)
    )
    assert "too few runs: 5 of one fingerprint and board, and change points need at least 14" in told(
        trend("mine/0", n_nights=5), capsys
    )
    assert told([], capsys) == "nothing there\n"


def test_git_is_asked_once_for_cases_that_changed_together(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """As text and as JSON; each case has the commits all the same."""
    asked: list[tuple[Commit | None, Commit | None]] = []

    def between(repo: Path, old: Commit | None, new: Commit | None) -> CommitsBetween:
        asked.append((old, new))
        return CommitsBetween(lines=("1234567 why",))

    monkeypatch.setattr(history_changes, "commits_between", between)
    points = [point for number in range(6) for point in trend(f"mine/{number}")]
    tell_changes(points, argparse.Namespace(json=True, repo=Path()), empty="")
    cases = json.loads(capsys.readouterr().out)
    assert [case["changes"][0]["commits"] for case in cases] == [["1234567 why"]] * 6
    assert asked == [(OLD, NEW)]


def test_the_board_that_changed_is_told(capsys: Streams) -> None:
    """Where there are several boards of a kind, the seam names the one whose runs it lies between."""
    changed, same = (
        [
            replace(
                point, run_id=f"{name}-{point.run_id}", board=BoardName(identity=name, hostname="h", is_linked=True)
            )
            for point in trend("mine/0", ratio=ratio)
        ]
        for name, ratio in (("one", 1.1), ("two", 1.0))
    )
    text = told([point for pair in zip(changed, same, strict=True) for point in pair], capsys)
    assert "board, board one (h): between the runs of 2026-03-20" in text
    assert text.count("between the runs of") == 1
    assert told(changed, capsys).startswith("board: between the runs of")
