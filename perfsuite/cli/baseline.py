"""``perfsuite baseline``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of, figure, give, percent
from perfsuite.cli.command_help import Commands, Row, add_command, add_option, add_run
from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, Profile, find_profile
from perfsuite.errors import BaselineError
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from perfsuite.records.run_file import run_path
from perfsuite.units import format_change, format_count, format_ns
from perfsuite.verdict.baseline import BaselineFile, baseline_path, changing, read_baselines, write_baselines
from perfsuite.verdict.changes import (
    CaseChange,
    approval_text,
    approvals_path,
    approve,
    case_changes,
    case_summaries,
    checked_reason,
    drift_lines,
    with_approval,
)
from perfsuite.verdict.drift import fitted_weights
from perfsuite.verdict.entry import BaselineEntry, entry_with
from perfsuite.verdict.match import absence_text, settings_text
from perfsuite.verdict.recorded_run import RecordedGroup, RecordedRun, read_run, require_reference

_RUN = ("run_path RUN", "folder or run.json of a run", Path)
_ENTRY: tuple[Row, ...] = (
    ("device DEVICE", "device profile"),
    ("name MODEL", "a model, 'kernels' or 'own'"),
    (
        "--where FIELD=VALUE",
        "only entries with this value in the fingerprint; repeatable",
        None,
        [],
        {"action": "append"},
    ),
    ("--board ID", "only this board: its identity, or the first letters of it"),
)


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its own subcommands."""
    parser = add_command(
        commands,
        "baseline",
        about="""
        Baselines are files of your repository, one for each device and model. Each keeps the sessions of a fingerprint.
        Runs with --perf-inject or --against are never stored.
        """,
        examples={
            "perfsuite baseline diff perf-run --margin=0.03": "compare a run with the baselines",
            "perfsuite baseline approve perf-run --reason 'the new kernel pads rows'": "make it the reference",
        },
        writes="files of --baseline-dir; 'approve' also writes a text for reviewers",
        exits={
            1: "'diff' found a case that is slower by more than the margin",
            10: "'diff' had nothing to compare with",
        },
        see=("docs/how-it-works.md", "docs/comparing.md"),
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_actions(actions)
    for name, run in _RUNS.items():
        add_run(actions.choices[name], run)
        text = "folder of the baselines (default baselines)"
        add_option(actions.choices[name], "--baseline-dir DIR", text, Path, Path("baselines"))


def _add_actions(actions: Commands) -> None:
    add_command(
        actions,
        "record",
        summary="add a run as a session",
        about="Later runs are compared with all sessions of their fingerprint.",
        options=[_RUN],
    )
    margin = ("--margin RATIO", "slowdown that passes, a ratio (default 0.05)", float, DEFAULT_MARGIN_RATIO)
    add_command(
        actions,
        "diff",
        summary="compare a run with the baselines",
        examples={"perfsuite baseline diff perf-run --json": "as JSON"},
        exits={1: "a case is slower by more than the margin", 10: "nothing could be compared"},
        options=[margin, _RUN],
    )
    add_command(
        actions,
        "approve",
        summary="make a run the new reference",
        about="Older sessions then count for nothing. Slow creep is still measured from the same anchor.",
        writes="the baselines, and a text for reviewers beside each",
        options=[("--reason TEXT", "why the change is right", {"required": True}), _RUN],
    )
    add_command(
        actions,
        "show",
        summary="list sessions and cases with their spreads",
        examples={"perfsuite baseline show host kernels --where=n_cores=2": "of one fingerprint"},
        options=_ENTRY,
    )
    add_command(
        actions,
        "anchor",
        summary="measure slow creep from the present reference on",
        examples={"perfsuite baseline anchor host kernels --reason 'a new driver'": "after a new driver"},
        options=[("--reason TEXT", "why creep is measured from here", {"required": True}), *_ENTRY],
    )
    add_command(
        actions,
        "prune",
        summary="keep the newest sessions only",
        examples={"perfsuite baseline prune host kernels --keep=5": "five of each case"},
        options=[("--keep N", "sessions to keep of each case", int, {"required": True}), *_ENTRY],
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _record(options: argparse.Namespace) -> int:
    run = read_run(run_path(options.run_path))
    require_reference(run)
    with changing(options.baseline_dir / run.device):
        changed = list(_recorded(options, run))
        write_baselines(*(stored for stored, _ in changed))
    written = [(stored.path, len(group.session.samples_ns)) for stored, group in changed]
    return give(_written(written, lambda _, cases: f"{cases} of {run.recorded_at} added", run), options)


def _recorded(options: argparse.Namespace, run: RecordedRun) -> Iterator[tuple[BaselineFile, RecordedGroup]]:
    """Yield the files with the run in them, except those that hold it: a record that was cut off is completed."""
    files = [(_file_of(options, run, group), group) for group in run.groups]
    lacking = [
        (stored, group)
        for stored, group in files
        if not any(each.has_session(run.recorded_at) for each in stored.comparable(group.fingerprint, run.board))
    ]
    if not lacking:
        raise BaselineError(f"{files[0][0].path}: holds the session of {run.recorded_at} already; nothing to record")
    for stored, group in lacking:
        yield stored.with_session(group.fingerprint, group.session, run.board), group


def _diff(options: argparse.Namespace) -> int:
    if not 0.0 < options.margin < 1.0:
        raise BaselineError(f"--margin={options.margin:g}: expected a ratio between 0 and 1, such as 0.05")
    run = read_run(run_path(options.run_path))
    profile = find_profile(run.device)
    changes = [change for group, entries in _stored(options, run) for change in _changes(profile, group, entries)]
    code = int(any(change.is_beyond(options.margin) for change in changes))
    if all(change.change is None for change in changes):
        code = NOTHING_JUDGED_EXIT
    plain = {"margin_ratio": options.margin, "cases": [_plain_change(each, options.margin) for each in changes]}
    lines = (*_change_parts(changes, options.margin), *_rejected_lines(run))
    return give(Answer(parts=lines, plain=plain), options, code)


def _approve(options: argparse.Namespace) -> int:
    reason, run = checked_reason(options.reason), read_run(run_path(options.run_path))
    require_reference(run)
    with changing(options.baseline_dir / run.device):
        approved = _approved(options, run, reason)
        paths = {approvals_path(stored.path): text for stored, text, _ in approved}
        texts = {path: with_approval(path, text, run.recorded_at) for path, text in paths.items()}
        write_baselines(*(stored for stored, _, _ in approved), texts=texts)
    written = [(stored.path, n_cases) for stored, _, n_cases in approved]
    return give(_written(written, lambda path, cases: f"{cases} approved; review {approvals_path(path)}", run), options)


def _approved(options: argparse.Namespace, run: RecordedRun, reason: str) -> list[tuple[BaselineFile, str, int]]:
    """Return the files with the run as their reference, the text of each, and the number of its cases."""
    profile, approved_at = find_profile(run.device), _now()
    decided, done = [], ""
    for group, entries in _stored(options, run):
        changes = _changes(profile, group, entries)
        own = entries[0]
        # What a case is held against, and so its anchor, may be of another board than the run's.
        held = {each.case_id: entry_with(entries, each.case_id) for each in changes}
        own_ids = {case_id for case_id, entry in held.items() if entry is not None and entry.board == run.board}
        changes = tuple(each if each.case_id in own_ids else replace(each, anchor_ratio=None) for each in changes)
        if own.board != run.board:
            own = own.for_board(run.board, group.session)
        try:
            approved = approve(own, group.session, changes, reason=reason, approved_at=approved_at)
        except BaselineError as error:  # of this group it is the reference already
            done = str(error)
            continue
        text = approval_text(approved, changes, reason=reason, approved_at=approved_at, recorded_at=run.recorded_at)
        decided.append((_file_of(options, run, group).with_entry(approved), text, len(changes)))
    if not decided:
        raise BaselineError(done)
    return decided


def _show(options: argparse.Namespace) -> int:
    entries = _selected(_named_file(options), options)
    weights = find_profile(options.device).sentinel_weight_ratio
    plain = {
        "device": options.device,
        "model": options.name,
        "entries": [_plain_entry(entry, weights) for entry in entries],
    }
    return give(Answer(parts=(part for each in entries for part in _entry_parts(each, weights)), plain=plain), options)


def _anchor(options: argparse.Namespace) -> int:
    reason = checked_reason(options.reason)
    with changing(_named_file(options).path.parent):
        stored = _named_file(options)
        for entry in _selected(stored, options):
            if not entry.references_ns():
                raise BaselineError(f"{stored.path}: holds no samples to measure creep from; record a run")
            stored = stored.with_entry(entry.anchored(recorded_at=_now(), reason=reason))
        write_baselines(stored)
    text = f"{stored.path}: anchored at the present reference"
    return give(Answer(parts=[text], plain={"file": str(stored.path), "reason": reason}), options)


def _prune(options: argparse.Namespace) -> int:
    if options.keep < 1:
        raise BaselineError(f"--keep={options.keep}: expected an integer of 1 or more")
    with changing(_named_file(options).path.parent):
        stored = _named_file(options)
        before = sum(len(entry.sessions) for entry in stored.entries)
        for entry in _selected(stored, options):
            stored = stored.with_entry(entry.pruned(options.keep))
        write_baselines(stored)
    kept = sum(len(entry.sessions) for entry in stored.entries)
    plain = {"file": str(stored.path), "n_before": before, "n_kept": kept}
    return give(Answer(parts=[f"{stored.path}: {kept} of {before} sessions kept"], plain=plain), options)


def _stored(options: argparse.Namespace, run: RecordedRun) -> list[tuple[RecordedGroup, tuple[BaselineEntry, ...]]]:
    """Pair each group of a run with what is stored for it; a group without is reported, a run without refused."""
    found, lacking = [], []
    for group in run.groups:
        stored = _file_of(options, run, group)
        entries = stored.comparable(group.fingerprint, run.board)
        if entries:
            found.append((group, entries))
        else:
            lacking.append(f"{stored.path}: nothing comparable is stored ({_why_nothing(stored, group, run.board)})")
    if not found:
        raise BaselineError(f"{'; '.join(lacking) or run.path}; add the run with 'perfsuite baseline record'")
    for line in lacking:
        print(f"perfsuite: {line}; its cases are left out", file=sys.stderr)
    return found


def _why_nothing(stored: BaselineFile, group: RecordedGroup, board: str | None) -> str:
    others = stored.other_boards(group.fingerprint, board)
    if others:
        return absence_text(len(others), board)
    return "; ".join(stored.machine_differences(group.fingerprint, board)) or settings_text(stored, group.fingerprint)


def _changes(profile: Profile, group: RecordedGroup, entries: Sequence[BaselineEntry]) -> tuple[CaseChange, ...]:
    others = [entry.without_session(group.session.recorded_at) for entry in entries]
    return case_changes(
        others,
        group.session,
        weights=fitted_weights(others[0], profile.sentinel_weight_ratio),
        default_spread_ratio=profile.session_spread_ratio,
    )


def _file_of(options: argparse.Namespace, run: RecordedRun, group: RecordedGroup) -> BaselineFile:
    return read_baselines(baseline_path(options.baseline_dir, run.device, group.name))


def _named_file(options: argparse.Namespace) -> BaselineFile:
    path = baseline_path(options.baseline_dir, options.device, options.name)
    stored = read_baselines(path)
    if not stored.entries:
        raise BaselineError(f"{path}: holds no entry; record one with --baseline=record or 'perfsuite baseline record'")
    return stored


def _selected(stored: BaselineFile, options: argparse.Namespace) -> tuple[BaselineEntry, ...]:
    """Return the entries that every --where fits, and --board."""
    wanted = [text.partition("=")[::2] for text in options.where]
    fitting = tuple(
        entry
        for entry in stored.entries
        if all(entry.fingerprint.get(field) == value for field, value in wanted)
        and (options.board is None or (entry.board or "").startswith(options.board))
    )
    if not fitting:
        asked = ", ".join([*options.where, *([] if options.board is None else [f"the board {options.board!r}"])])
        raise BaselineError(f"{stored.path}: no entry has {asked}; see 'perfsuite baseline show'")
    return fitting


# what is answered


def _written(written: Sequence[tuple[Path, int]], told: Callable[[Path, str], str], run: RecordedRun) -> Answer:
    """Return the files that a run went into, each with its number of cases, and what of the run was left out."""
    lines = [f"{path}: {told(path, format_count(n_cases, 'case'))}" for path, n_cases in written]
    plain = {
        "recorded_at": run.recorded_at,
        "files": [{"file": str(path), "n_cases": n_cases} for path, n_cases in written],
        "left_out": [{"id": case_id, "outcome": outcome} for case_id, outcome in run.rejected.items()],
    }
    return Answer(parts=[*lines, *_rejected_lines(run)], plain=plain)


def _rejected_lines(run: RecordedRun) -> Iterator[str]:
    """Name the cases of a run that are left out, with their outcome."""
    for outcome, count in Counter(run.rejected.values()).items():
        named = ", ".join(case_id for case_id, seen in run.rejected.items() if seen == outcome)
        yield f"left out, {outcome} ({count}): {named}"


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
        "sessions": [
            {
                **fields_of(session, "recorded_at", "suite_version", "engine_version"),
                "n_cases": len(session.samples_ns),
                "sentinels_ns": {name: round(median(times)) for name, times in session.sentinels_ns.items() if times},
                "covariates": dict(session.covariates),
            }
            for session in entry.sessions
        ],
        "anchor": fields_of(entry.anchor, "recorded_at", "reason"),
        "approvals": [fields_of(each, "approved_at", "reason") for each in entry.approvals],
        "cases": [{"id": each.pop("case_id"), **each} for each in summaries],
    }


def _bounds(change: CaseChange) -> str:
    found = change.change
    return "-" if found is None else f"{format_change(found.lower_ratio)} to {format_change(found.upper_ratio)}"


_RUNS = {"record": _record, "diff": _diff, "approve": _approve, "show": _show, "anchor": _anchor, "prune": _prune}
