"""What somebody may have meant who mistyped a path."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from perfsuite.cli.kept_folders import kept_folder
from perfsuite.errors import PerfsuiteError, alike

#: Arguments that name a file or folder that must be there.
_INPUTS = ("run_path", "runs", "run_paths", "recording", "bench_path", "plan", "path", "files")

#: A path is not taken for another one that shares little more than its ending.
_ALIKE_RATIO = 0.8


def refuse_mistyped(options: argparse.Namespace) -> None:
    """Refuse a path that is not there where one beside it is like it; others are for the subcommand to refuse.

    Raises `PerfsuiteError`: it names the path that may have been meant.
    """
    for path in _inputs(options):
        if not path.exists() and (meant := _nearest_path(path)) is not None:
            raise PerfsuiteError(f"{path}: no such file or folder; did you mean {meant}?")


def _inputs(options: argparse.Namespace) -> Iterator[Path]:
    for name in _INPUTS:
        given = getattr(options, name, None)
        for each in given if isinstance(given, list | tuple) else [given]:
            if isinstance(each, Path):
                yield each


def _nearest_path(path: Path) -> Path | None:
    """Look beside the path, then among the runs by their names."""
    for folder in (path.parent, kept_folder("runs")):
        if folder.is_dir() and (found := alike(path.name, _names(folder), least_ratio=_ALIKE_RATIO)):
            return folder / found[0]
    return None


def _names(folder: Path) -> Iterator[str]:
    with suppress(OSError):  # a folder that cannot be read offers nothing
        yield from (each.name for each in folder.iterdir())
