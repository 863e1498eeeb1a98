"""What became of a cell: by the exit code of its pytest and by the run.json that this left."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import Amount, Count
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT, ORDER_OF_WEIGHT, SUSPECT_EXIT, Outcome
from perfsuite.records.run_file import RUN_NAME, read_plain_run

#: The log of a cell in its folder, and its report beside the files that every run writes.
LOG_NAME, JUNIT_NAME = "pytest.log", "junit.xml"

#: How much of a log is read at either end, and how much of a line is told.
_MOST_READ, _MOST_TOLD = 65536, 300

#: What a run says of the board that it has; see `perfsuite.device.farm.borrowing`.
_BORROWED = re.compile(r"^(?:perfsuite: )?borrowed (\S+) \(")

#: What it says while somebody else has the device; see `perfsuite.device.lock`.
_WAITED = "; waiting for it, "

#: What begins a line that says why a run broke.
_REASONS = re.compile(r"(?:ERROR: |perfsuite: error: |INTERNALERROR> |E {3})\s*(?P<reason>\S.*)")

#: Lines that say nothing of why: those of a farm, frames of pytest's, progress.
_NO_REASON = re.compile(r"(?:perfsuite: )?(?:borrowed|borrowing|gave|waiting) .*|[=\-_!. ]*|.*\[ *\d+%\]")


def log_lines(folder: Path) -> list[str]:
    """Return the first and the last lines of a cell's log, without empty ones."""
    try:
        with (folder / LOG_NAME).open("rb") as log:
            read = log.read(_MOST_READ)
            log.seek(max(len(read), log.seek(0, os.SEEK_END) - _MOST_READ))
            read += log.read()
    except OSError:
        return []
    return [line.strip() for line in read.decode("utf-8", "replace").splitlines() if line.strip()]


def borrowed_place(lines: Sequence[str]) -> str | None:
    """Return labgrid's name of the board that a run borrowed; None where it has none, or none yet."""
    return next((match[1] for line in lines if (match := _BORROWED.search(line))), None)


def has_waited(lines: Sequence[str]) -> bool:
    """Whether the run waited for a device that somebody else had."""
    return any(_WAITED in line for line in lines)


def broken_reason(lines: Sequence[str]) -> str:
    """Return the line that says why a run broke: the last one that says so, or else the last one that says anything."""
    reasons = [match["reason"] for line in lines if (match := _REASONS.match(line))]
    told = reasons or [line for line in lines if not _NO_REASON.fullmatch(line)]
    return told[-1][:_MOST_TOLD] if told else ""


#: Of its cases, how many of a cell that counts as measured must be valid.
LEAST_VALID_RATIO = 0.5

#: Why a cell that was measured, and in which nothing fails, must be looked at, by exit code.
_OPEN = {NOTHING_JUDGED_EXIT: "nothing could be judged", SUSPECT_EXIT: "looks slower, not proven, or too few pairs"}


#: Stands for the run.json of a cell that left none.
_NO_RUN: Mapping[str, Any] = {"cases": (), "interrupted": True}

_WORDS = {
    2: "was interrupted",
    3: "pytest or the suite failed",
    5: "no case was left to be measured",
    **_OPEN,
}


class Ending(str, Enum):
    """How a cell ended."""

    #: Measured, and nothing fails; the cases by outcome say what could be judged.
    MEASURED = "measured"
    #: Measured, and a case fails.
    FAILED = "failed"
    #: Not measured, or not to the end, or on a board so busy that most cases are not valid.
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEnd:
    """How a cell ended, and why."""

    ending: Ending
    #: Of its pytest; None where that did not end by itself.
    exit_code: Count | None
    seconds: Amount
    #: In one line, also why a cell that was measured must be looked at; "" where all is well.
    why: str = ""
    #: By outcome: how many cases there are.
    n_cases: Mapping[str, Count] = field(default_factory=dict)
    #: labgrid's name of the board of a farm that was borrowed; None where none was.
    place: str | None = None

    @property
    def cases_text(self) -> str:
        """The cases by outcome, and why the cell must be looked at."""
        shown = (each.value for each in ORDER_OF_WEIGHT)
        counted = ", ".join(f"{count} {name}" for name in shown if (count := self.n_cases.get(name)))
        return "; ".join(filter(None, (counted, self.why)))

    @property
    def is_finished(self) -> bool:
        """Whether the cell was measured, and need not be again."""
        return self.ending is not Ending.BROKEN

    @property
    def open_code(self) -> int:
        """The exit code of a cell that was measured and judged nothing, or in which something is suspect; else 0."""
        return self.exit_code or 0 if self.ending is Ending.MEASURED else 0

    @property
    def blames_its_place(self) -> bool:
        """Whether another board of the farm might have done better: the run broke by itself, with no case measured."""
        return self.ending is Ending.BROKEN and self.exit_code is not None and not self.n_cases


def cell_end(folder: Path, exit_code: int, seconds: float, stopped: str | None) -> CellEnd:
    """Return what became of a cell whose pytest has ended, with 128 + N where signal N ended it.

    `stopped` says why it was stopped from without; None where it was not.
    """
    plain, lines = _plain_run(folder), log_lines(folder)
    outcomes = [Outcome(case["outcome"]) for case in plain["cases"]]
    n_valid = sum(outcome is not Outcome.INVALID for outcome in outcomes)
    is_valid = bool(outcomes) and n_valid >= LEAST_VALID_RATIO * len(outcomes)
    is_whole = stopped is None and not plain.get("interrupted") and is_valid
    ending, why = Ending.BROKEN, stopped or ""
    if is_whole and exit_code in (0, *_OPEN):
        ending, why = Ending.MEASURED, _OPEN.get(exit_code, "")
    elif is_whole and exit_code == 1 and _fails(plain, outcomes):
        ending = Ending.FAILED
    elif outcomes and not is_valid and stopped is None:
        text = f"{len(outcomes) - n_valid} of {len(outcomes)} cases are not valid" if n_valid else "no case is valid"
        why = f"{text}: the board was busy, hot or unstable"
    elif stopped is None:
        why = _why(lines, exit_code)
    return CellEnd(
        ending=ending,
        exit_code=exit_code if stopped is None else None,
        seconds=round(seconds, 1),
        why=why,
        n_cases=dict(Counter(outcome.value for outcome in outcomes)),
        place=borrowed_place(lines),
    )


def has_run(folder: Path) -> bool:
    """Whether a cell's run.json is there and can be read."""
    return _plain_run(folder) is not _NO_RUN


def _plain_run(folder: Path) -> Mapping[str, Any]:
    try:
        return read_plain_run(folder / RUN_NAME)
    except PerfsuiteError:
        return _NO_RUN


def _fails(plain: Mapping[str, Any], outcomes: Sequence[Outcome]) -> bool:
    """Whether exit code 1 is the cases' own: one fails, or is undecided or suspect in a run that was to fail then.

    What the run was asked for is read from what it says of itself: ``addopts`` may have asked for it.
    """
    asked = plain.get("arguments", ())
    fails = [Outcome.SUSPECT] if "--perf-suspect=fail" in asked else []
    fails += [each for each in Outcome if each.fails or ("--perf-strict" in asked and not each.decides)]
    return any(outcome in fails for outcome in outcomes)


def _why(lines: Sequence[str], exit_code: int) -> str:
    """Say why a cell broke: by the log's line that says so, or else by the exit code."""
    reason = broken_reason(lines)
    if exit_code in (0, 1):
        return f"not all was measured: {reason}" if reason else "not all was measured"
    words = _WORDS.get(exit_code, f"ended by signal {exit_code - 128}" if exit_code > 128 else "")
    return ": ".join(filter(None, (words, reason))) or f"exit code {exit_code}"
