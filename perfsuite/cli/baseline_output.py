"""What ``perfsuite baseline`` prints: tables for people and JSON for programs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.units import format_change, format_count, format_ns
from perfsuite.verdict.changes import CaseChange
from perfsuite.verdict.entry import BaselineEntry, StoredSession
from perfsuite.verdict.recorded_run import RecordedRun
from perfsuite.verdict.sentinel_weights import fitted_weights
from perfsuite.verdict.summary import CaseSummary, case_summaries


def warn(line: str) -> None:
    """Print a line that is no result."""
    print(f"perfsuite: {line}", file=sys.stderr)


def show_rejected(run: RecordedRun) -> None:
    """Name the cases of a run that are left out, with their outcome."""
    for outcome, count in Counter(run.rejected.values()).items():
        named = ", ".join(case_id for case_id, seen in run.rejected.items() if seen == outcome)
        print(f"left out, {outcome} ({count}): {named}")


def show_changes(changes: Sequence[CaseChange], margin_ratio: float) -> None:
    """Print a table of changes, the slowest first, and how many are beyond the margin."""
    table = _table(left=("case",), right=("stored", "new", "change", "99 % bounds", "since anchor"))
    for each in sorted(changes, key=lambda each: -(each.ratio or 0.0)):
        mark = "bold red" if each.is_beyond(margin_ratio) else None
        figures = (format_ns(each.old_ns), format_ns(each.new_ns), format_change(each.ratio), _bounds(each))
        table.add_row(each.case_id, *figures, format_change(each.anchor_ratio), style=mark)
    show(table)
    n_beyond = sum(each.is_beyond(margin_ratio) for each in changes)
    print(f"{n_beyond} of {len(changes)} cases are slower than stored by more than {margin_ratio * 100:g} %")


def print_changes(changes: Sequence[CaseChange], margin_ratio: float) -> None:
    """Print changes as JSON."""
    cases = [_plain_change(each, margin_ratio) for each in changes]
    print(json.dumps({"margin_ratio": margin_ratio, "cases": cases}, indent=1))


def show_entries(entries: Sequence[BaselineEntry], weights: Mapping[str, float]) -> None:
    """Print each entry: its fingerprint, its sessions, its anchor, its cases."""
    for entry in entries:
        print(entry.machine_text)
        _show_sessions(entry)
        approvals = format_count(len(entry.approvals), "approval")
        print(f"anchor of {entry.anchor.recorded_at}: {entry.anchor.reason}; {approvals}")
        _show_cases(entry, weights)


def print_entries(device: str, name: str, entries: Sequence[BaselineEntry], weights: Mapping[str, float]) -> None:
    """Print entries as JSON."""
    plain = {"device": device, "model": name, "entries": [_plain_entry(entry, weights) for entry in entries]}
    print(json.dumps(plain, indent=1))


def _show_sessions(entry: BaselineEntry) -> None:
    table = _table(left=("session",), right=("cases", "memory", "compute", "load", "waiting"))
    for session in entry.sessions:
        covariates = session.covariates
        table.add_row(
            session.recorded_at,
            str(len(session.samples_ns)),
            *(format_ns(session.sentinel_ns(name)) for name in ("memory", "compute")),
            _number(covariates.get("load_average")),
            _percent(covariates.get("waiting_ratio")),
        )
    show(table)


def _show_cases(entry: BaselineEntry, weights: Mapping[str, float]) -> None:
    table = _table(left=("case",), right=("sessions", "median", "within", "between", "anchor", "since"))
    for each in case_summaries(entry, fitted_weights(entry, weights)):
        spreads = (_percent(each.within_ratio), _percent(each.between_ratio))
        anchor = (format_ns(each.anchor_ns), format_change(each.since_anchor_ratio))
        table.add_row(each.case_id, str(each.n_sessions), format_ns(each.median_ns), *spreads, *anchor)
    show(table)


def _table(*, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in left:
        table.add_column(name, overflow="fold")
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _plain_change(change: CaseChange, margin_ratio: float) -> dict[str, Any]:
    return {
        "id": change.case_id,
        "stored_ns": change.old_ns,
        "new_ns": change.new_ns,
        "change_ratio": change.ratio,
        "lower_ratio": change.change.lower_ratio if change.change else None,
        "upper_ratio": change.change.upper_ratio if change.change else None,
        "since_anchor_ratio": change.anchor_ratio,
        "is_beyond": change.is_beyond(margin_ratio),
    }


def _plain_entry(entry: BaselineEntry, weights: Mapping[str, float]) -> dict[str, Any]:
    return {
        "fingerprint": dict(entry.fingerprint),
        "board": entry.board,
        "sessions": [_plain_session(session) for session in entry.sessions],
        "anchor": {"recorded_at": entry.anchor.recorded_at, "reason": entry.anchor.reason},
        "approvals": [{"approved_at": each.approved_at, "reason": each.reason} for each in entry.approvals],
        "cases": [_plain_summary(each) for each in case_summaries(entry, fitted_weights(entry, weights))],
    }


def _plain_session(session: StoredSession) -> dict[str, Any]:
    return {
        "recorded_at": session.recorded_at,
        "suite_version": session.suite_version,
        "engine_version": session.engine_version,
        "n_cases": len(session.samples_ns),
        "sentinels_ns": {name: round(median(times)) for name, times in session.sentinels_ns.items() if times},
        "covariates": dict(session.covariates),
    }


def _plain_summary(summary: CaseSummary) -> dict[str, Any]:
    plain = asdict(summary)
    return {"id": plain.pop("case_id"), **plain}


def _bounds(change: CaseChange) -> str:
    if change.change is None:
        return "-"
    return f"{format_change(change.change.lower_ratio)} to {format_change(change.change.upper_ratio)}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio * 100:.1f} %"
