"""The file of a night: which cells it has, and what became of them; written whole after each cell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain, count
from pathlib import Path

from perfsuite import __version__
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import LockedError, PerfsuiteError
from perfsuite.nightly.cell_end import CellEnd, has_run
from perfsuite.nightly.night_plan import NightPlan
from perfsuite.option_table import own_name
from perfsuite.records.codec import read_json, to_plain
from perfsuite.records.own_files import is_locked, open_lock
from perfsuite.records.whole_file import make_folder, place_folder, write_json

#: What the file is called in the folder of a night.
STATE_NAME = "night.json"

SCHEMA = 1

#: A link to the folder of the night that was begun last.
LATEST = "latest"

_LOCK_NAME = ".lock"

#: The cells of a night that was killed, which are interrupted then, end within this time.
_ENDING_LIMIT_S = 60.0

Ends = Mapping[str, CellEnd]

_AGAIN = "begin another night without --resume"

_GIT_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NightOrigin:
    """What is measured in a night: half of one and half of another is no night."""

    #: Of the working tree; None where it has none.
    commit: str | None
    suite_version: str = __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class _NightState:
    commit: str | None
    suite_version: str
    #: What is asked of each cell: what must not change within a night.
    plan: Mapping[str, tuple[str, ...]]
    cells: Mapping[str, CellEnd]


def origin_here() -> NightOrigin:
    """Return what a night in this folder measures."""
    command = ["git", "--no-optional-locks", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return NightOrigin(commit=None)
    return NightOrigin(commit=done.stdout.strip() or None)


def write_state(folder: Path, plan: NightPlan, ends: Ends, origin: NightOrigin) -> None:
    """Write what is known of a night."""
    state = _NightState(commit=origin.commit, suite_version=origin.suite_version, plan=_asked(plan), cells=ends)
    write_json(folder / STATE_NAME, {"schema": SCHEMA, **to_plain(state)}, PerfsuiteError)


def read_state(folder: Path, plan: NightPlan, origin: NightOrigin) -> dict[str, CellEnd]:
    """Return what became of the cells of a night that must be gone on with.

    A cell whose run.json is gone or cannot be read is not there.

    Raises `PerfsuiteError` where the file cannot be read, or the night was begun with another plan, at another commit,
    or by another version.
    """
    path = folder / STATE_NAME
    state = read_json(path, _NightState, PerfsuiteError, _AGAIN, schema=SCHEMA)
    if differing := _difference(state.plan, _asked(plan)):
        raise PerfsuiteError(f"{path}: the plan has changed since the night began: {differing}; {_AGAIN}")
    if state.commit != origin.commit:
        old, new = ((each or "none")[:12] for each in (state.commit, origin.commit))
        began = f"the night began at commit {old}, and the working tree is at {new}; check that one out"
        raise PerfsuiteError(f"{path}: {began}, or {_AGAIN}")
    if state.suite_version != origin.suite_version:
        began = f"the night began with perfsuite {state.suite_version}, and this is {origin.suite_version}"
        raise PerfsuiteError(f"{path}: {began}; install that one, or {_AGAIN}")
    ends = {cell.key: state.cells[cell.key] for cell in plan.cells if cell.key in state.cells}
    return {key: end for key, end in ends.items() if not end.is_finished or has_run(folder / key)}


def _asked(plan: NightPlan) -> dict[str, tuple[str, ...]]:
    return {cell.key: cell.words for cell in plan.cells}


def _difference(old: Mapping[str, tuple[str, ...]], new: Mapping[str, tuple[str, ...]]) -> str | None:
    """Name the first cell that is not as it was."""
    for key in (*old, *new):
        if key not in new:
            return f"{key} is gone"
        if key not in old:
            return f"{key} is new"
        if [*map(own_name, old[key])] != [*map(own_name, new[key])]:  # nights may have begun by short names
            return f"{key} was {' '.join(old[key])}, is {' '.join(new[key])}"
    return None


def new_night(folder: Path, plan: NightPlan, origin: NightOrigin) -> Path:
    """Make the folder of a new night, named for the time, with its state in it, and let ``latest`` lead there."""
    if (link := folder / LATEST).exists() and not link.is_symlink():
        raise PerfsuiteError(f"{link}: is not a link of a night's; move it away, or choose another --output")
    began = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"
    names = chain([began], (f"{began}-{number}" for number in count(1)))
    try:
        make_folder(folder)
        with work_folder(folder) as work:
            draft = work / "night"
            draft.mkdir()
            write_state(draft, plan, {}, origin)
            night = next(folder / name for name in names if not (folder / name).exists())
            place_folder(draft, night)
            (work / LATEST).symlink_to(night.name)
            (work / LATEST).replace(link)
    except OSError as error:
        text = f"{folder}: no night can be made there ({error.strerror}); choose another --output"
        raise PerfsuiteError(text) from error
    return night


def last_night(folder: Path) -> Path:
    """Return the folder of the night that began last; `PerfsuiteError` where there is none."""
    nights = sorted(path.parent for path in folder.glob(f"*/{STATE_NAME}") if path.parent.name != LATEST)
    if not nights:
        raise PerfsuiteError(f"{folder}: holds no night to go on with; leave out --resume, or name its folder with -o")
    return nights[-1]


@contextmanager
def held_night(night: Path) -> Iterator[int]:
    """Hold a night's folder; the handle is inherited by the cells, so that those of a killed night end first.

    Raises `LockedError` where another process is at this night, or cells of a killed one have not ended in a minute.
    """
    handle = open_lock(night / _LOCK_NAME, PerfsuiteError)
    try:
        if not is_locked(handle, _ENDING_LIMIT_S):
            raise LockedError(f"{night}: another 'perfsuite nightly' is at this night; wait for its end")
        yield handle
    finally:
        os.close(handle)
