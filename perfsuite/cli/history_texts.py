"""What the subcommands of ``perfsuite history`` share: what they refuse, and what they say beside their answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from perfsuite.errors import HistoryError, meant
from perfsuite.records.history_place import HistoryPlace
from perfsuite.report.history import HistoryReader, SkippedFile, open_history, runs_of
from perfsuite.report.visible import terminal_text

#: More runs than any history has, and the most rows and seconds that may be asked for.
_MOST_RUNS, _MOST_ROWS, _MOST_LIMIT_S = 1_000_000_000, 100_000_000, 86_400.0

#: What positional arguments are called where people read of them.
_NAMES = {"case_id": "CASE", "pattern": "PATTERN", "query": "SELECT"}


def answered(action: Callable[[HistoryReader, argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a subcommand on its history; name on standard error each file that is left out.

    Raises HistoryError: an option cannot be, or the subcommand raises it.
    """
    _check(options)
    history = open_history(options.history)
    try:
        return action(history, options)
    finally:
        tell_skipped(history.skipped)


def _check(options: argparse.Namespace) -> None:
    given = vars(options)
    for name, value in {**given, "history": str(options.history)}.items():
        if isinstance(value, str) and value.encode("utf-8", "replace").decode() != value:
            raise HistoryError(f"{_NAMES.get(name, f'--{name}')}={value!a}: is not UTF-8")
    if (last := given.get("last")) is not None and not 1 <= last <= _MOST_RUNS:
        raise HistoryError(f"--last={last}: expected 1 to {_MOST_RUNS:,} runs")
    if not 1 <= given.get("rows", 1) <= _MOST_ROWS:
        raise HistoryError(f"--rows={options.rows}: expected 1 to {_MOST_ROWS:,}")
    if not 0.0 < given.get("limit_s", 1.0) <= _MOST_LIMIT_S:
        raise HistoryError(f"--limit-s={options.limit_s:g}: expected more than 0 and at most {_MOST_LIMIT_S:,.0f}")
    if not given.get("repo", Path()).is_dir():
        raise HistoryError(f"--repo={options.repo}: is no folder; name the git repository of the sources under test")


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
