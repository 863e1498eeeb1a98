"""What ``perfsuite baseline`` answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of, figure, percent
from perfsuite.units import format_change, format_count, format_ns
from perfsuite.verdict.changes import CaseChange, case_summaries, drift_lines
from perfsuite.verdict.drift import fitted_weights
from perfsuite.verdict.entry import BaselineEntry, StoredSession
from perfsuite.verdict.recorded_run import RecordedRun


def rejected_lines(run: RecordedRun) -> Iterator[str]:
    """Name the cases of a run that are left out, with their outcome."""
    for outcome, count in Counter(run.rejected.values()).items():
        named = ", ".join(case_id for case_id, seen in run.rejected.items() if seen == outcome)
        yield f"left out, {outcome} ({count}): {named}"


def written_answer(written: Sequence[tuple[Path, int]], told: Callable[[Path, str], str], run: RecordedRun) -> Answer:
    """Return the files that a run went into, each with its number of cases, and what of the run was left out."""
    return Answer(
        parts=lambda: (
            *(f"{path}: {told(path, format_count(n_cases, 'case'))}" for path, n_cases in written),
            *rejected_lines(run),
        ),
        plain=lambda: {
            "recorded_at": run.recorded_at,
            "files": [{"file": str(path), "n_cases": n_cases} for path, n_cases in written],
            "left_out": [{"id": case_id, "outcome": outcome} for case_id, outcome in run.rejected.items()],
        },
    )


def changes_answer(changes: Sequence[CaseChange], margin_ratio: float, run: RecordedRun) -> Answer:
    """Return the changes of a run, for people the slowest first, and how many are beyond the margin."""
    return Answer(
        parts=lambda: (*_change_parts(changes, margin_ratio), *rejected_lines(run)),
        plain=lambda: {"margin_ratio": margin_ratio, "cases": [_plain_change(each, margin_ratio) for each in changes]},
    )


def entries_answer(device: str, name: str, entries: Sequence[BaselineEntry], weights: Mapping[str, float]) -> Answer:
    """Return each entry: its fingerprint, its sessions, its anchor, its cases."""
    return Answer(
        parts=lambda: (part for entry in entries for part in _entry_parts(entry, weights)),
        plain=lambda: {"device": device, "model": name, "entries": [_plain_entry(entry, weights) for entry in entries]},
    )


def _change_parts(changes: Sequence[CaseChange], margin_ratio: float) -> Iterator[Part]:
    slowest_first = sorted(changes, key=lambda each: -(each.ratio or 0.0))
    yield Sheet(
        ("case", ">stored", ">new", ">change", ">99 % bounds", ">since anchor"),
        [
            (
                each.case_id,
                *(format_ns(each.old_ns), format_ns(each.new_ns), format_change(each.ratio), _bounds(each)),
                format_change(each.anchor_ratio),
            )
            for each in slowest_first
        ],
        styles=["bold red" if each.is_beyond(margin_ratio) else None for each in slowest_first],
    )
    yield from drift_lines(changes)
    n_beyond = sum(each.is_beyond(margin_ratio) for each in changes)
    n_compared = sum(each.change is not None for each in changes)
    if n_alone := len(changes) - n_compared:
        yield f"{n_alone} of {format_count(len(changes), 'case')}: nothing is stored that it can be compared with"
    if n_compared:
        yield f"{n_beyond} of {n_compared} cases are slower than stored by more than {margin_ratio * 100:g} %"


def _entry_parts(entry: BaselineEntry, weights: Mapping[str, float]) -> Iterator[Part]:
    yield entry.machine_text
    yield Sheet(
        ("session", ">cases", ">memory", ">compute", ">load", ">waiting"),
        [
            (
                *(each.recorded_at, len(each.samples_ns)),
                *(format_ns(each.sentinel_ns(name)) for name in ("memory", "compute")),
                figure("{:.2f}", each.covariates.get("load_average")),
                percent(each.covariates.get("waiting_ratio")),
            )
            for each in entry.sessions
        ],
    )
    approvals = format_count(len(entry.approvals), "approval")
    yield f"anchor of {entry.anchor.recorded_at}: {entry.anchor.reason}; {approvals}"
    yield Sheet(
        ("case", ">sessions", ">median", ">within", ">between", ">anchor", ">since"),
        [
            (
                *(each.case_id, each.n_sessions, format_ns(each.median_ns)),
                *(percent(each.within_ratio), percent(each.between_ratio)),
                *(format_ns(each.anchor_ns), format_change(each.since_anchor_ratio)),
            )
            for each in case_summaries(entry, fitted_weights(entry, weights))
        ],
    )


def _plain_change(change: CaseChange, margin_ratio: float) -> dict[str, Any]:
    return {
        "id": change.case_id,
        "stored_ns": change.old_ns,
        "new_ns": change.new_ns,
        "change_ratio": change.ratio,
        "lower_ratio": change.change and change.change.lower_ratio,
        "upper_ratio": change.change and change.change.upper_ratio,
        "since_anchor_ratio": change.anchor_ratio,
        "drift": change.drift,
        "is_beyond": change.is_beyond(margin_ratio),
    }


def _plain_entry(entry: BaselineEntry, weights: Mapping[str, float]) -> dict[str, Any]:
    summaries = map(asdict, case_summaries(entry, fitted_weights(entry, weights)))
    return {
        "fingerprint": dict(entry.fingerprint),
        "board": entry.board,
        "sessions": [_plain_session(session) for session in entry.sessions],
        "anchor": fields_of(entry.anchor, "recorded_at", "reason"),
        "approvals": [fields_of(each, "approved_at", "reason") for each in entry.approvals],
        "cases": [{"id": each.pop("case_id"), **each} for each in summaries],
    }


def _plain_session(session: StoredSession) -> dict[str, Any]:
    return {
        **fields_of(session, "recorded_at", "suite_version", "engine_version"),
        "n_cases": len(session.samples_ns),
        "sentinels_ns": {name: round(median(times)) for name, times in session.sentinels_ns.items() if times},
        "covariates": dict(session.covariates),
    }


def _bounds(change: CaseChange) -> str:
    found = change.change
    return "-" if found is None else f"{format_change(found.lower_ratio)} to {format_change(found.upper_ratio)}"
