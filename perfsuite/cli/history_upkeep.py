"""``perfsuite history add`` and ``compact``: what changes the history's folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from perfsuite.cli.answer import Answer, Part, fields_of, give
from perfsuite.cli.history_texts import tell_skipped
from perfsuite.errors import HistoryError, PerfsuiteError
from perfsuite.records.history_place import HistoryPlace
from perfsuite.records.run_file import RunFile, read_run_file
from perfsuite.report.history import HistoryReader, append_run, compact, run_ids
from perfsuite.report.history.append import run_identity
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_count


def add_runs(history: HistoryReader, options: argparse.Namespace) -> int:
    """Add runs that are not there yet; of a folder of runs, those that were interrupted are left out."""
    known = set(run_ids(history))
    done = [each for named in options.runs for each in _try_to_add(named, options.history, known)]

    def parts() -> Iterator[Part]:
        yield from (f"{terminal_text(str(path))}: {told}" for path, told in done if told is not None)

    give(Answer(parts=parts, plain=lambda: [{"run": str(path), "done": told} for path, told in done]), options)
    return 2 if any(told is None for _, told in done) else 0


def _try_to_add(named: Path, place: HistoryPlace, known: set[str]) -> Iterator[tuple[Path, str | None]]:
    """Add a run or those of a folder, one after the other whatever becomes of the others; yield what was done.

    None is what failed; standard error says why.
    """
    try:
        paths = _run_paths(named)
    except (PerfsuiteError, OSError) as error:
        _tell_error(named, error)
        yield named, None
        return
    for path in paths:
        try:
            yield path, _added(read_run_file(path), place, known, is_one_of_many=path != named)
        except (PerfsuiteError, OSError) as error:
            _tell_error(path, error)
            yield path, None


def _tell_error(path: Path, error: PerfsuiteError | OSError) -> None:
    """Say in one line what is wrong with a run, whose path is named."""
    why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    named = why if str(path) in why else f"{path}: {why}"
    print(f"perfsuite: error: {terminal_text(named)}", file=sys.stderr)


def _added(run: RunFile, place: HistoryPlace, known: set[str], *, is_one_of_many: bool) -> str:
    """Add a run; return what was done."""
    identity = run_identity(run)
    if identity in known:
        return "is there already"
    if run.is_interrupted and is_one_of_many:
        return "was interrupted; left out"
    append_run(run, place)
    known.add(identity)
    return f"{format_count(len(run.judgements), 'case')} added"


def merge_files(_: HistoryReader, options: argparse.Namespace) -> int:
    """Merge all files into one."""
    if isinstance(options.history, Path) and not options.history.is_dir():
        raise HistoryError(f"--history={options.history}: is no folder; nothing to compact")
    done = compact(options.history)
    tell_skipped(done.skipped)
    files = format_count(done.n_files, "file")
    told = f"{done.path}: {format_count(done.n_runs, 'run')} of {files} merged"
    plain = {"file": done.path and str(done.path), **fields_of(done, "n_files", "n_runs")}
    nothing = f"{options.history}: nothing to merge"
    give(Answer(parts=lambda: [nothing if done.path is None else told], plain=lambda: plain), options)
    return 0


def _run_paths(named: Path) -> list[Path]:
    """Return the runs that a folder of runs holds; a run, or what is none, is itself."""
    if not named.is_dir() or (named / "run.json").exists():
        return [named]
    found = sorted(named.glob("*/run.json"))
    if not found:
        raise HistoryError(f"{named}: holds no run.json, nor do the folders in it; name a run or a folder of runs")
    return found
