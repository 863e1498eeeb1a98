"""The file of a night: which cells it has, and what became of them; written whole after each cell."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfsuite import __version__
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import CellEnd, cell_end, has_run
from perfsuite.nightly.exit_file import read_exit
from perfsuite.nightly.plan import NightPlan
from perfsuite.records.codec import read_json, to_plain
from perfsuite.records.whole_file import write_json

#: What the file is called in the folder of a night.
STATE_NAME = "night.json"

SCHEMA = 1

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
    """The whole file."""

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
    """Return what became of the cells of a night that is to be gone on with.

    A cell whose pytest ended when the night did, too late to be noted, is there as its folder says; one whose run.json
    is gone or cannot be read is not there.

    Raises `PerfsuiteError` where the file cannot be read, or the night was begun with another plan, at another commit,
    or by another version.
    """
    path = folder / STATE_NAME
    state = read_json(path, _NightState, PerfsuiteError, _AGAIN, schema=SCHEMA)
    if differing := _difference(state.plan, _asked(plan)):
        raise PerfsuiteError(f"{path}: the plan has changed since the night began: {differing}; {_AGAIN}")
    _refuse_other_origin(path, NightOrigin(commit=state.commit, suite_version=state.suite_version), origin)
    ends = {cell.key: state.cells[cell.key] for cell in plan.cells if cell.key in state.cells}
    for cell in plan.cells:
        known, note = ends.get(cell.key), read_exit(folder / cell.key)
        if note is not None and (known is None or not known.is_finished):
            ends[cell.key] = cell_end(folder / cell.key, note.exit_code, note.seconds, None)
    return {key: end for key, end in ends.items() if not end.is_finished or has_run(folder / key)}


def _refuse_other_origin(path: Path, began: NightOrigin, now: NightOrigin) -> None:
    if began.commit != now.commit:
        old, new = ((each or "none")[:12] for each in (began.commit, now.commit))
        raise PerfsuiteError(
            f"{path}: the night began at commit {old}, and the working tree is at {new}; "
            f"check that one out, or {_AGAIN}"
        )
    if began.suite_version != now.suite_version:
        raise PerfsuiteError(
            f"{path}: the night began with perfsuite {began.suite_version}, and this is {now.suite_version}; "
            f"install that one, or {_AGAIN}"
        )


def _asked(plan: NightPlan) -> dict[str, tuple[str, ...]]:
    return {cell.key: cell.words for cell in plan.cells}


def _difference(old: Mapping[str, tuple[str, ...]], new: Mapping[str, tuple[str, ...]]) -> str | None:
    """Name the first cell that is not as it was."""
    for key in (*old, *new):
        if key not in new:
            return f"{key} is gone"
        if key not in old:
            return f"{key} is new"
        if old[key] != new[key]:
            return f"{key} was {' '.join(old[key])}, is {' '.join(new[key])}"
    return None
