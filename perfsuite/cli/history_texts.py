"""What the subcommands of ``perfsuite history`` share: what they refuse, and what they say beside their answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from perfsuite.errors import HistoryError, meant
from perfsuite.records.history_place import HistoryPlace
from perfsuite.report.history import HistoryReader, SkippedFile, runs_of
from perfsuite.report.visible import terminal_text

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


def empty_text(history: HistoryReader, options: argparse.Namespace) -> str:
    """Say that a history has no run of what was asked for, where it is, and what it has or how it fills."""
    asked = {"device": options.device, "board": options.board}
    told = "".join(f" of {name} {value}" for name, value in asked.items() if value)
    place: HistoryPlace = options.history
    where = f"{place.absolute() if isinstance(place, Path) else place}: holds no run{told}"
    runs = runs_of(history)
    if not runs:
        return f"{where} yet; a run with --device adds itself, and 'perfsuite history add RUN...' adds older ones"
    there = {
        "device": [each.device for each in runs],
        "board": [name for each in runs if each.board for name in (each.board.kept_by, each.board.hostname) if name],
    }
    known = {name: tuple(dict.fromkeys(values)) for name, values in there.items()}
    named = "; ".join(f"{name}s are {', '.join(known[name]) or 'not named'}" for name in asked if asked[name])
    alike = next(filter(None, (meant(value, known[name]) for name, value in asked.items() if value)), "")
    return f"{where}; {named}{alike}"
