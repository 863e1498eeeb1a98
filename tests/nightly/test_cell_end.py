"""What a cell's exit code and files say became of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from perfsuite.nightly.cell_end import LOG_NAME, CellEnd, Ending, broken_reason, cell_end

FRAME = ["====== test session starts ======", "collected 3 items"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["ERROR: no such device", "perfsuite: gave attic-1 back"], "no such device"),
        (
            ["perfsuite: error: ssh board: the link was lost", "====== 1 error in 2 s ======"],
            "ssh board: the link was lost",
        ),
        ([*FRAME, "perfsuite: borrowed attic-1 (ssh a) as me", "perfsuite: gave attic-1 back"], "collected 3 items"),
        (["Segmentation fault", "!!!!!!!!", "cases/test_phase.py ...   [ 50%]"], "Segmentation fault"),
        ([], ""),
    ],
)
def test_the_reason_is_the_last_line_that_says_one(lines: list[str], reason: str) -> None:
    """What a farm, a frame or the progress says is none; without any that says why it is the last with words."""
    assert broken_reason(lines) == reason


#: The end of a reason.
BUSY = "valid: the board was busy, hot or unstable"


def end_of(
    folder: Path, exit_code: int, *outcomes: str, log: str = "", stopped: str | None = None, **more: object
) -> CellEnd:
    """Return the end of a cell that left a run of these outcomes."""
    cases = [{"id": f"phase/{n}", "outcome": outcome} for n, outcome in enumerate(outcomes)]
    if outcomes:
        (folder / "run.json").write_text(json.dumps({"schema": 1, "cases": cases, **more}))
    (folder / LOG_NAME).write_text(log)
    return cell_end(folder, exit_code, 1.0, stopped)


@pytest.mark.parametrize("outcome", ["regressed", "slow", "impossible"])
def test_a_cell_fails_where_a_case_does(tmp_path: Path, outcome: str) -> None:
    """Exit code 1, and a case that says why."""
    assert end_of(tmp_path, 1, "pass", outcome).ending is Ending.FAILED


@pytest.mark.parametrize(
    ("exit_code", "outcomes", "log", "why"),
    [
        (0, (), "no tests ran\n", "not all was measured: no tests ran"),
        (1, ("pass", "invalid"), "1 error\n", "not all was measured: 1 error"),
        (2, ("pass",), "", "was interrupted"),
        (3, (), "INTERNALERROR> boom\n", "pytest or the suite failed: boom"),
        (4, (), "ERROR: ssh board: no route\n\n", "ssh board: no route"),
        (5, (), "", "no case was left to be measured"),
        (137, (), "", "ended by signal 9"),
        (77, (), "", "exit code 77"),
    ],
)
def test_a_cell_that_was_not_measured_is_broken(
    tmp_path: Path, exit_code: int, outcomes: tuple[str, ...], log: str, why: str
) -> None:
    """It tells why, by its log or by its exit code, and never counts as passed or as failed."""
    end = end_of(tmp_path, exit_code, *outcomes, log=log)
    assert (end.ending, end.why) == (Ending.BROKEN, why)


@pytest.mark.parametrize(
    ("outcomes", "ending", "why"),
    [
        (("pass", "new", "new"), Ending.MEASURED, ""),
        (("pass", "invalid"), Ending.MEASURED, ""),
        (
            ("pass", "invalid", "invalid"),
            Ending.BROKEN,
            f"2 of 3 cases are not {BUSY}",
        ),
        (
            ("pass", *["invalid"] * 99),
            Ending.BROKEN,
            f"99 of 100 cases are not {BUSY}",
        ),
        (("invalid", "invalid"), Ending.BROKEN, f"no case is {BUSY}"),
    ],
)
def test_a_cell_is_measured_where_half_of_its_cases_are_valid(
    tmp_path: Path, outcomes: tuple[str, ...], ending: Ending, why: str
) -> None:
    """One valid case among many makes no cell green; the row has the numbers, and they are counted."""
    end = end_of(tmp_path, 0, *outcomes)
    assert (end.ending, end.why, end.n_cases) == (ending, why, Counter(outcomes))


def test_a_strict_run_fails_by_what_is_undecided(tmp_path: Path) -> None:
    """The run says that it was asked for --perf-strict or --perf-suspect, on the command line or by addopts."""
    for asked, ending in (("--perf-suspect=fail", Ending.FAILED), ("--perf-suspect=pass", Ending.BROKEN)):
        assert end_of(tmp_path, 1, "suspect", arguments=[asked]).ending is ending
    assert end_of(tmp_path, 1, "inconclusive", arguments=["--perf-suspect=fail"]).ending is Ending.BROKEN
    assert end_of(tmp_path, 1, "new", arguments=["--perf-strict"]).ending is Ending.FAILED
    assert end_of(tmp_path, 1, "new", arguments=["--device=host"]).ending is Ending.BROKEN
    assert (
        end_of(tmp_path, 1, "pass", arguments=["--perf-strict"], log="1 error\n").why == "not all was measured: 1 error"
    )


def test_a_cell_that_was_stopped_is_broken_whatever_it_left(tmp_path: Path) -> None:
    """Why it was stopped counts for more than how it ended; what an interrupted run holds is not all."""
    end = end_of(tmp_path, 0, "pass", stopped="took longer than its limit of 2 s")
    assert (end.ending, end.why, end.exit_code) == (Ending.BROKEN, "took longer than its limit of 2 s", None)
    assert end_of(tmp_path, 1, "regressed", interrupted=True).ending is Ending.BROKEN


def test_the_board_that_was_borrowed_is_told(tmp_path: Path) -> None:
    """It stands near the beginning of a log that may be long, and is blamed where the run broke on it by itself.

    Not for what was measured and is invalid, and not for a run that was stopped.
    """
    log = "perfsuite: borrowed attic-1 (ssh root@attic:22) as desk/me\n" + "x\n" * 200_000 + "ERROR: lost\n"
    end = end_of(tmp_path, 4, log=log)
    assert (end.place, end.why, end.blames_its_place) == ("attic-1", "lost", True)
    assert not end_of(tmp_path, 4, stopped="ended with the night").blames_its_place
    assert not end_of(tmp_path, 0, "invalid").blames_its_place


@pytest.mark.parametrize(
    ("exit_code", "outcomes", "why"),
    [
        (10, ("inconclusive", "incomparable"), "nothing could be judged"),
        (11, ("suspect", "pass"), "looks slower, not proven, or too few pairs"),
    ],
)
def test_a_cell_that_left_something_open_is_measured_and_says_so(
    tmp_path: Path, exit_code: int, outcomes: tuple[str, ...], why: str
) -> None:
    """Exit codes 10 and 11 of valid cases need no second attempt; of invalid ones they do, as with any other code."""
    end = end_of(tmp_path, exit_code, *outcomes)
    assert (end.ending, end.open_code, end.why) == (Ending.MEASURED, exit_code, why)
    broken = end_of(tmp_path, exit_code, "invalid")
    assert (broken.ending, broken.open_code) == (Ending.BROKEN, 0)
    assert broken.why == "no case is valid: the board was busy, hot or unstable"
