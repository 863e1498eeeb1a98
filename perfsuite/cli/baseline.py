"""``perfsuite baseline``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.baseline_output import changes_answer, entries_answer, written_answer
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, Profile, find_profile
from perfsuite.errors import BaselineError
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from perfsuite.records.run_file import run_path
from perfsuite.verdict.baseline import BaselineFile, baseline_path, changing, read_baselines, write_baselines
from perfsuite.verdict.changes import (
    CaseChange,
    approval_text,
    approvals_path,
    approve,
    case_changes,
    checked_reason,
    with_approval,
)
from perfsuite.verdict.drift import fitted_weights
from perfsuite.verdict.entry import BaselineEntry, entry_with
from perfsuite.verdict.match import absence_text, settings_text
from perfsuite.verdict.recorded_run import RecordedGroup, RecordedRun, read_run, require_reference


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
    _add_run_actions(actions)
    _add_store_actions(actions)
    for name, run in _RUNS.items():
        text = "folder of the baselines (default baselines)"
        actions.choices[name].set_defaults(run=run)
        add_json(actions.choices[name])
        actions.choices[name].add_argument(
            "--baseline-dir", type=Path, default=Path("baselines"), metavar="DIR", help=text
        )


def _add_run_actions(actions: Commands) -> None:
    record = add_command(
        actions,
        "record",
        summary="add a run as a session",
        about="Later runs are compared with all sessions of their fingerprint.",
    )
    diff = add_command(
        actions,
        "diff",
        summary="compare a run with the baselines",
        examples={"perfsuite baseline diff perf-run --json": "as JSON"},
        exits={1: "a case is slower by more than the margin", 10: "nothing could be compared"},
    )
    diff.add_argument(
        "--margin",
        type=float,
        default=DEFAULT_MARGIN_RATIO,
        metavar="RATIO",
        help="slowdown that passes, a ratio (default 0.05)",
    )
    accept = add_command(
        actions,
        "approve",
        summary="make a run the new reference",
        about="Older sessions then count for nothing. Slow creep is still measured from the same anchor.",
        writes="the baselines, and a text for reviewers beside each",
    )
    accept.add_argument("--reason", required=True, metavar="TEXT", help="why the change is right")
    for action in (record, diff, accept):
        action.add_argument("run_path", type=Path, metavar="RUN", help="folder or run.json of a run")


def _add_store_actions(actions: Commands) -> None:
    add_command(
        actions,
        "show",
        summary="list sessions and cases with their spreads",
        examples={"perfsuite baseline show host kernels --where=n_cores=2": "of one fingerprint"},
    )
    anchor = add_command(
        actions,
        "anchor",
        summary="measure slow creep from the present reference on",
        examples={"perfsuite baseline anchor host kernels --reason 'a new driver'": "after a new driver"},
    )
    anchor.add_argument("--reason", required=True, metavar="TEXT", help="why creep is measured from here")
    prune = add_command(
        actions,
        "prune",
        summary="keep the newest sessions only",
        examples={"perfsuite baseline prune host kernels --keep=5": "five of each case"},
    )
    prune.add_argument("--keep", type=int, required=True, metavar="N", help="sessions to keep of each case")
    for action in (actions.choices["show"], anchor, prune):
        action.add_argument("device", metavar="DEVICE", help="device profile")
        action.add_argument("name", metavar="MODEL", help="a model, 'kernels' or 'own'")
        text = "only entries with this value in the fingerprint; repeatable"
        action.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help=text)
        text = "only this board: its identity, or the first letters of it"
        action.add_argument("--board", metavar="ID", help=text)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _record(options: argparse.Namespace) -> int:
    run = read_run(run_path(options.run_path))
    require_reference(run)
    with changing(options.baseline_dir / run.device):
        changed = list(_recorded(options, run))
        write_baselines(*(stored for stored, _ in changed))
    written = [(stored.path, len(group.session.samples_ns)) for stored, group in changed]
    give(written_answer(written, lambda _, cases: f"{cases} of {run.recorded_at} added", run), options)
    return 0


def _recorded(options: argparse.Namespace, run: RecordedRun) -> Iterator[tuple[BaselineFile, RecordedGroup]]:
    """Yield the files with the run in them, except those that hold it: a record that was cut off is completed."""
    files = [
        (read_baselines(baseline_path(options.baseline_dir, run.device, group.name)), group) for group in run.groups
    ]
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
    give(changes_answer(changes, options.margin, run), options)
    if all(change.change is None for change in changes):
        return NOTHING_JUDGED_EXIT
    return int(any(change.is_beyond(options.margin) for change in changes))


def _approve(options: argparse.Namespace) -> int:
    reason, run = checked_reason(options.reason), read_run(run_path(options.run_path))
    require_reference(run)
    with changing(options.baseline_dir / run.device):
        approved = _approved(options, run, reason)
        paths = {approvals_path(stored.path): text for stored, text, _ in approved}
        texts = {path: with_approval(path, text, run.recorded_at) for path, text in paths.items()}
        write_baselines(*(stored for stored, _, _ in approved), texts=texts)
    written = [(stored.path, n_cases) for stored, _, n_cases in approved]
    give(written_answer(written, lambda path, cases: f"{cases} approved; review {approvals_path(path)}", run), options)
    return 0


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
        decided.append(
            (
                read_baselines(baseline_path(options.baseline_dir, run.device, group.name)).with_entry(approved),
                text,
                len(changes),
            )
        )
    if not decided:
        raise BaselineError(done)
    return decided


def _show(options: argparse.Namespace) -> int:
    stored = _named_file(options)
    entries = _selected(stored, options)
    weights = find_profile(options.device).sentinel_weight_ratio
    give(entries_answer(options.device, options.name, entries, weights), options)
    return 0


def _anchor(options: argparse.Namespace) -> int:
    reason = checked_reason(options.reason)
    with changing(_named_file(options).path.parent):
        stored = _named_file(options)
        for entry in _selected(stored, options):
            if not entry.references_ns():
                raise BaselineError(f"{stored.path}: holds no samples to measure creep from; record a run")
            stored = stored.with_entry(entry.anchored(recorded_at=_now(), reason=reason))
        write_baselines(stored)
    told = f"{stored.path}: anchored at the present reference"
    give(Answer(parts=lambda: [told], plain=lambda: {"file": str(stored.path), "reason": reason}), options)
    return 0


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
    told, plain = f"{stored.path}: {kept} of {before} sessions kept", {"n_before": before, "n_kept": kept}
    give(Answer(parts=lambda: [told], plain=lambda: {"file": str(stored.path), **plain}), options)
    return 0


def _stored(options: argparse.Namespace, run: RecordedRun) -> list[tuple[RecordedGroup, tuple[BaselineEntry, ...]]]:
    """Pair each group of a run with what is stored for it; a group without is reported, a run without refused."""
    found, lacking = [], []
    for group in run.groups:
        stored = read_baselines(baseline_path(options.baseline_dir, run.device, group.name))
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


_RUNS = {"record": _record, "diff": _diff, "approve": _approve, "show": _show, "anchor": _anchor, "prune": _prune}
