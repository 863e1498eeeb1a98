"""The files that a command line names, looked at before anything is waited for, compiled or measured."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from perfsuite.cli.kept_folders import kept_folder
from perfsuite.errors import PerfsuiteError, alike

#: Arguments that name a file or folder that must be there.
_INPUTS = ("run_path", "runs", "run_paths", "recording", "bench_path", "plan", "path", "files", "model")
#: Options that name a file to write; of a subcommand that sets `makes_folder` ``--output`` names a folder.
_OUTPUTS = ("output", "plot", "csv", "state")

#: What a run has that nothing is written over; their modules are slow to import.
_OF_RUN = ("run.json", "observation.json")

#: A path is not taken for another one that shares little more than its ending.
_ALIKE_RATIO = 0.8


def check_paths(options: argparse.Namespace) -> None:
    """Refuse a mistyped input, and an output that could not be written in the end or takes the place of a file in use.

    An input that is not there, and is like nothing that is, is for the subcommand to refuse.

    Raises `PerfsuiteError`: it names the path and what may have been meant, or why it cannot be written.
    """
    taken = []
    for path in _inputs(options):
        if not os.path.lexists(path) and (meant := _nearest_path(path)) is not None:
            raise PerfsuiteError(f"{path}: no such file or folder; did you mean {meant}?")
        folder = path if path.is_dir() else path.parent
        of_run = [folder / name for name in _OF_RUN] if path == folder or path.name in _OF_RUN else []
        taken += [path, *of_run]
    writes_nothing = getattr(options, "dry_run", False) or getattr(options, "list", False)
    for name in () if writes_nothing else _OUTPUTS:
        output = getattr(options, name, None)
        if isinstance(output, Path):
            _check_output(f"--{name}={output}", output, taken, may_be_folder=getattr(options, "makes_folder", False))
            taken.append(output)


def _inputs(options: argparse.Namespace) -> Iterator[Path]:
    for given in (getattr(options, name, None) for name in _INPUTS):
        several = given if isinstance(given, list | tuple) else [given]
        yield from (each for each in several if isinstance(each, Path))


def _check_output(told: str, path: Path, taken: Sequence[Path], *, may_be_folder: bool) -> None:
    if path.is_dir() and not may_be_folder:
        raise PerfsuiteError(f"{told}: is a folder, expected the name of a file")
    if os.path.realpath(path) in map(os.path.realpath, taken):
        raise PerfsuiteError(f"{told}: is read or written already; expected a file of its own")
    if path.exists() and not (path.is_file() or path.is_dir()):
        return  # whoever writes says that a device or a pipe is no file
    own = [path.absolute()] if path.is_dir() else []
    there = next(each for each in (*own, *path.absolute().parents) if each.exists())
    if not there.is_dir():
        raise PerfsuiteError(f"{told}: cannot be written ({there} is not a folder); name another file")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise PerfsuiteError(
            f"{told}: cannot be written ({error.strerror}); name a file in a folder of yours"
        ) from None


def _nearest_path(path: Path) -> Path | None:
    """Look beside the path, then among the runs by their names; a folder that cannot be read offers nothing."""
    for folder in (path.parent, kept_folder("runs")):
        with suppress(OSError):
            names = [each.name for each in folder.iterdir()]
            if found := alike(path.name, names, least_ratio=_ALIKE_RATIO):
                return folder / found[0]
    return None
