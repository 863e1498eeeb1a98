"""``perfsuite baseline``: record, show, compare, approve, anchor and prune what is stored."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli import baseline_output as output
from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, Profile, find_profile
from perfsuite.errors import BaselineError
from perfsuite.units import format_count
from perfsuite.verdict.approval import append_approval, approval_text, approvals_path, approve, checked_reason
from perfsuite.verdict.baseline import BaselineFile, baseline_path, read_baselines, write_baselines
from perfsuite.verdict.changes import CaseChange, case_changes
from perfsuite.verdict.entry import BaselineEntry
from perfsuite.verdict.recorded_run import RecordedGroup, RecordedRun, read_run, require_reference

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its own subcommands."""
    parser = commands.add_parser("baseline", help="record, show, compare and approve stored baselines")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_run_actions(actions)
    _add_store_actions(actions)
    for action in actions.choices.values():
        action.add_argument(
            "--baseline-dir", type=Path, default=Path("baselines"), metavar="DIR", help="default: baselines"
        )


def _add_run_actions(actions: Commands) -> None:
    record = actions.add_parser("record", help="add the samples of a run as a session")
    record.set_defaults(run=_record)
    diff = actions.add_parser("diff", help="compare a run with what is stored; 1 where a case is beyond the margin")
    diff.add_argument("--margin", type=float, default=DEFAULT_MARGIN_RATIO, metavar="RATIO", help="default 0.05")
    diff.add_argument("--json", action="store_true", help="print JSON")
    diff.set_defaults(run=_diff)
    accept = actions.add_parser("approve", help="make a run the new reference")
    accept.add_argument("--reason", required=True, metavar="TEXT", help="what changed and why that is right")
    accept.set_defaults(run=_approve)
    for action in (record, diff, accept):
        action.add_argument("run_path", type=Path, metavar="RUN.json", help="the file that a run with --device wrote")


def _add_store_actions(actions: Commands) -> None:
    show = actions.add_parser("show", help="list sessions and cases with their spreads")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(run=_show)
    anchor = actions.add_parser("anchor", help="pin the anchor to the present reference")
    anchor.add_argument("--reason", required=True, metavar="TEXT", help="why creep is measured from here on")
    anchor.set_defaults(run=_anchor)
    prune = actions.add_parser("prune", help="keep the newest sessions only")
    prune.add_argument("--keep", type=int, required=True, metavar="N", help="sessions to keep of each case")
    prune.set_defaults(run=_prune)
    for action in (show, anchor, prune):
        action.add_argument("device", metavar="DEVICE", help="device profile, such as host")
        action.add_argument("name", metavar="MODEL", help="name of the file: a model, 'kernels' or 'own'")
        action.add_argument(
            "--where", action="append", default=[], metavar="FIELD=VALUE", help="entries of this fingerprint only"
        )


def _record(options: argparse.Namespace) -> int:
    run = read_run(options.run_path)
    require_reference(run)
    changed = []
    for group in run.groups:
        stored = _file_of(options, run, group)
        entry = stored.find(group.fingerprint)
        if entry is not None and entry.has_session(run.recorded_at):
            raise BaselineError(f"{stored.path}: holds the session of {run.recorded_at} already; nothing to record")
        changed.append((stored.with_session(group.fingerprint, group.session), group))
    for stored, group in changed:
        write_baselines(stored)
        print(f"{stored.path}: {format_count(len(group.session.samples_ns), 'case')} of {run.recorded_at} added")
    output.show_rejected(run)
    return 0


def _diff(options: argparse.Namespace) -> int:
    if not 0.0 < options.margin < 1.0:
        raise BaselineError(f"--margin={options.margin:g}: expected a ratio between 0 and 1, such as 0.05")
    run = read_run(options.run_path)
    profile = find_profile(run.device)
    changes = [change for group, entry in _stored(options, run) for change in _changes(profile, group, entry)]
    if options.json:
        output.print_changes(changes, options.margin)
    else:
        output.show_changes(changes, options.margin)
        output.show_rejected(run)
    return int(any(change.is_beyond(options.margin) for change in changes))


def _approve(options: argparse.Namespace) -> int:
    reason, run = checked_reason(options.reason), read_run(options.run_path)
    require_reference(run)
    profile, approved_at = find_profile(run.device), _now()
    decided = []
    for group, entry in _stored(options, run):
        changes = _changes(profile, group, entry)
        approved = approve(entry, group.session, changes, reason=reason, approved_at=approved_at)
        text = approval_text(approved, changes, reason=reason, approved_at=approved_at, recorded_at=run.recorded_at)
        decided.append((_file_of(options, run, group).with_entry(approved), text, len(changes)))
    for stored, text, n_cases in decided:
        write_baselines(stored)
        append_approval(approvals_path(stored.path), text)
        print(f"{stored.path}: {format_count(n_cases, 'case')} approved; review {approvals_path(stored.path)}")
    output.show_rejected(run)
    return 0


def _show(options: argparse.Namespace) -> int:
    stored = _named_file(options)
    entries = _selected(stored, options)
    weights = find_profile(options.device).sentinel_weight_ratio
    if options.json:
        output.print_entries(options.device, options.name, entries, weights)
    else:
        output.show_entries(entries, weights)
    return 0


def _anchor(options: argparse.Namespace) -> int:
    reason, stored = checked_reason(options.reason), _named_file(options)
    for entry in _selected(stored, options):
        stored = stored.with_entry(entry.anchored(recorded_at=_now(), reason=reason))
    write_baselines(stored)
    print(f"{stored.path}: anchored at the present reference")
    return 0


def _prune(options: argparse.Namespace) -> int:
    if options.keep < 1:
        raise BaselineError(f"--keep={options.keep}: expected an integer of 1 or more")
    stored = _named_file(options)
    before = sum(len(entry.sessions) for entry in stored.entries)
    for entry in _selected(stored, options):
        stored = stored.with_entry(entry.pruned(options.keep))
    write_baselines(stored)
    print(f"{stored.path}: {sum(len(entry.sessions) for entry in stored.entries)} of {before} sessions kept")
    return 0


def _file_of(options: argparse.Namespace, run: RecordedRun, group: RecordedGroup) -> BaselineFile:
    return read_baselines(baseline_path(options.baseline_dir, run.device, group.name))


def _stored(options: argparse.Namespace, run: RecordedRun) -> list[tuple[RecordedGroup, BaselineEntry]]:
    """Pair each group of a run with what is stored for it; a group without is told, a run without refused."""
    found, lacking = [], []
    for group in run.groups:
        stored = _file_of(options, run, group)
        entry = stored.find(group.fingerprint)
        if entry is None:
            differences = "; ".join(stored.nearest_differences(group.fingerprint)) or "no entry"
            lacking.append(f"{stored.path}: nothing comparable is stored ({differences})")
        else:
            found.append((group, entry))
    if not found:
        raise BaselineError(f"{'; '.join(lacking) or run.path}; add the run with 'perfsuite baseline record'")
    for line in lacking:
        output.warn(f"{line}; its cases are left out")
    return found


def _changes(profile: Profile, group: RecordedGroup, entry: BaselineEntry) -> tuple[CaseChange, ...]:
    return case_changes(
        entry.without_session(group.session.recorded_at),
        group.session,
        weights=profile.sentinel_weight_ratio,
        default_spread_ratio=profile.session_spread_ratio,
    )


def _named_file(options: argparse.Namespace) -> BaselineFile:
    path = baseline_path(options.baseline_dir, options.device, options.name)
    stored = read_baselines(path)
    if not stored.entries:
        raise BaselineError(f"{path}: holds no entry; record one with --baseline=record or 'perfsuite baseline record'")
    return stored


def _selected(stored: BaselineFile, options: argparse.Namespace) -> tuple[BaselineEntry, ...]:
    """Return the entries that every --where fits."""
    wanted = [text.partition("=")[::2] for text in options.where]
    fitting = tuple(
        entry for entry in stored.entries if all(entry.fingerprint.get(field) == value for field, value in wanted)
    )
    if not fitting:
        raise BaselineError(f"{stored.path}: no entry has {', '.join(options.where)}; see 'perfsuite baseline show'")
    return fitting


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
