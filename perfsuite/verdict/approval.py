"""Makes a run the new reference, with a reason and a difference that people can review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from perfsuite.errors import BaselineError
from perfsuite.units import format_change, format_count, format_ns
from perfsuite.verdict.changes import CaseChange, drift_lines
from perfsuite.verdict.entry import Approval, BaselineEntry, StoredSession

#: A reason that is shorter than this gives none.
MIN_REASON_CHARACTERS = 10

#: A case that changed by no more than this is not listed.
NOTABLE_RATIO = 0.005

_HEAD = "| case | old | new | change | since the anchor |\n|---|---:|---:|---:|---:|"


def checked_reason(reason: str) -> str:
    """Return the reason on one line; one that is too short is a `BaselineError`."""
    line = " ".join(reason.split())
    if len(line) < MIN_REASON_CHARACTERS:
        raise BaselineError(
            f"--reason={line!r}: has {len(line)} characters, expected {MIN_REASON_CHARACTERS} or more; "
            "say what changed and why that is right"
        )
    return line


def notable(changes: Iterable[CaseChange]) -> tuple[CaseChange, ...]:
    """Return the cases that changed by more than half a percent, or have nothing to be compared with."""
    return tuple(each for each in changes if each.ratio is None or abs(each.ratio - 1.0) > NOTABLE_RATIO)


def approve(
    entry: BaselineEntry, session: StoredSession, changes: Sequence[CaseChange], *, reason: str, approved_at: str
) -> BaselineEntry:
    """Return the entry with `session` as the only one of its cases; other cases keep theirs.

    Raises BaselineError: the session is the only one of all its cases already.
    """
    stored = ([each.recorded_at for each in entry.sessions_of(case)] for case in session.samples_ns)
    if all(each == [session.recorded_at] for each in stored):
        raise BaselineError(f"the run of {session.recorded_at} is the reference already; nothing to approve")
    approval = Approval(
        approved_at=approved_at,
        reason=reason,
        change_ratio={each.case_id: round(each.ratio, 6) for each in notable(changes) if each.ratio is not None},
        retired_ns={each.case_id: each.old_ns for each in changes if each.old_ns is not None},
    )
    kept = tuple(each.without(session.samples_ns.keys()) for each in entry.sessions)
    remaining = replace(entry, sessions=tuple(each for each in kept if each.samples_ns))
    return replace(remaining.with_session(session), approvals=(*entry.approvals, approval))


def approval_text(
    entry: BaselineEntry, changes: Sequence[CaseChange], *, reason: str, approved_at: str, recorded_at: str
) -> str:
    """Return the section of an approval in Markdown: when, why, and what changed."""
    listed = notable(changes)
    rows = "".join(f"{line}\n" for line in (_HEAD, *map(_row, listed), "")) if listed else ""
    told = "".join(f"- {line}\n" for line in drift_lines(changes))
    return f"""## {approved_at[:10]}: {reason}

The run of {recorded_at} on {entry.machine_text}.
The anchor is of {entry.anchor.recorded_at}: {entry.anchor.reason}. \
Changes are those that remain after dividing out the drift of the sentinels.
{told}

{rows}{format_count(len(changes) - len(listed), "more case")} changed by {NOTABLE_RATIO * 100:g} % or less.
"""


def approvals_path(baselines_path: Path) -> Path:
    """Return where the approvals of a file of baselines are listed."""
    return baselines_path.with_name(f"{baselines_path.name.removesuffix('.json')}.approvals.md")


def with_approval(path: Path, text: str, recorded_at: str) -> str:
    """Return the file's text with the section of a run at its end, unless it is there already."""
    try:
        before = path.read_text("utf-8")
    except FileNotFoundError:
        before = f"# Approvals: {path.parent.name}/{path.name.removesuffix('.approvals.md')}\n"
    except (OSError, ValueError) as error:
        raise BaselineError(f"{path}: cannot be read ({error}); restore it from version control") from error
    if f"The run of {recorded_at} on " in before.rpartition("\n## ")[2]:
        return before
    return f"{before.rstrip()}\n\n{text.rstrip()}\n"


def _row(change: CaseChange) -> str:
    ratios = map(format_change, (change.ratio, change.anchor_ratio))
    cells = (f"`{change.case_id}`", format_ns(change.old_ns), format_ns(change.new_ns), *ratios)
    return f"| {' | '.join(cells)} |"
