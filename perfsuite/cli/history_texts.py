"""What the subcommands of ``perfsuite history`` share: what they refuse, and what they say beside their answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import HistoryError
from perfsuite.records.history_place import HistoryPlace
from perfsuite.report.visible import terminal_text

if TYPE_CHECKING:
    from perfsuite.report.history.folder import SkippedFile


#: More runs than any history has.
_MOST_RUNS = 1_000_000_000

#: What positional arguments are called where people read of them.
_NAMES = {"case_id": "CASE", "pattern": "PATTERN", "query": "SELECT"}


def check_last(options: argparse.Namespace) -> None:
    """Refuse a number of runs below 1, or beyond what DuckDB counts."""
    if options.last is not None and options.last < 1:
        raise HistoryError(f"--last={options.last}: expected 1 or more runs")
    if options.last is not None and options.last > _MOST_RUNS:
        raise HistoryError(f"--last={options.last}: expected at most {_MOST_RUNS:,} runs")


def check_texts(options: argparse.Namespace) -> None:
    """Refuse arguments that DuckDB takes for no text."""
    texts = {name: value for name, value in vars(options).items() if isinstance(value, str)}
    for name, value in {**texts, "history": str(options.history)}.items():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise HistoryError(f"{_NAMES.get(name, f'--{name}')}={value!a}: is not UTF-8") from error


def tell_skipped(skipped: Iterable[SkippedFile]) -> None:
    """Name on standard error each file that is left out."""
    for each in skipped:
        print(f"perfsuite: {terminal_text(each.text)}", file=sys.stderr)


def empty_text(options: argparse.Namespace) -> str:
    """Say of a history without runs where it was looked for, and how it fills."""
    of_device = (f" of device {options.device}" if options.device else "") + _of_board(options, "of")
    place: HistoryPlace = options.history
    return (
        f"{place.absolute() if isinstance(place, Path) else place}: holds no run{of_device} yet; a run with --device "
        "adds itself, and 'perfsuite history add RUN...' adds older ones"
    )


def no_case_text(options: argparse.Namespace) -> str:
    """Say that the history has no such case."""
    of_device = (f" on device {options.device}" if options.device else "") + _of_board(options, "on")
    return f"{options.history}: holds no case {options.case_id!r}{of_device}; 'perfsuite history cases' lists them"


def _of_board(options: argparse.Namespace, word: str) -> str:
    return f" {word} board {options.board}" if options.board else ""
