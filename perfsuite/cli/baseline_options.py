"""What ``perfsuite baseline`` can do, with the options of each."""

from __future__ import annotations

from pathlib import Path

from perfsuite.cli.command_help import Commands, add_action
from perfsuite.device.profile import DEFAULT_MARGIN_RATIO


def add_actions(actions: Commands) -> None:
    """Add all of them; what each does is for the caller to set."""
    _add_run_actions(actions)
    _add_store_actions(actions)
    for action in actions.choices.values():
        text = "folder of the baselines (default: baselines)"
        action.add_argument("--baseline-dir", type=Path, default=Path("baselines"), metavar="DIR", help=text)


def _add_run_actions(actions: Commands) -> None:
    record = add_action(
        actions,
        "record",
        summary="add the samples of a run as a session",
        about="Later runs are compared with all sessions of their fingerprint, the spread between them included.",
        examples={"perfsuite baseline record perf-run": "after a quiet run"},
        writes="the files of the run's groups in --baseline-dir",
    )
    diff = add_action(
        actions,
        "diff",
        summary="compare a run with what is stored",
        examples={"perfsuite baseline diff perf-run --json": "for a program"},
        exits={1: "a case is slower than stored by more than the margin"},
    )
    diff.add_argument("--margin", type=float, default=DEFAULT_MARGIN_RATIO, metavar="RATIO", help="default 0.05")
    diff.add_argument("--json", action="store_true", help="print JSON")
    accept = add_action(
        actions,
        "approve",
        summary="make a run the new reference",
        about="Older sessions no longer count; the anchor, from which creep is measured, stays where it is.",
        examples={"perfsuite baseline approve perf-run --reason 'the new kernel pads rows'": "what changed, and why"},
        writes="the files of the run's groups in --baseline-dir, and a text beside each to review",
    )
    accept.add_argument("--reason", required=True, metavar="TEXT", help="what changed and why that is right")
    for action in (record, diff, accept):
        action.add_argument("run_path", type=Path, metavar="RUN", help="the folder or the run.json of a run")


def _add_store_actions(actions: Commands) -> None:
    show = add_action(
        actions,
        "show",
        summary="list sessions and cases with their spreads",
        examples={"perfsuite baseline show host kernels --where=n_cores=2": "of one fingerprint"},
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    anchor = add_action(
        actions,
        "anchor",
        summary="pin the anchor to the present reference",
        examples={"perfsuite baseline anchor host kernels --reason 'a new driver'": "creep is measured from here on"},
        writes="the file of these baselines",
    )
    anchor.add_argument("--reason", required=True, metavar="TEXT", help="why creep is measured from here on")
    prune = add_action(
        actions,
        "prune",
        summary="keep the newest sessions only",
        examples={"perfsuite baseline prune host kernels --keep=5": "five of each case"},
        writes="the file of these baselines",
    )
    prune.add_argument("--keep", type=int, required=True, metavar="N", help="sessions to keep of each case")
    for action in (show, anchor, prune):
        action.add_argument("device", metavar="DEVICE", help="device profile, such as host")
        action.add_argument("name", metavar="MODEL", help="name of the file: a model, 'kernels' or 'own'")
        text = "entries of this fingerprint only"
        action.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help=text)
        text = "entries of this board only: its identity, or the beginning of it"
        action.add_argument("--board", metavar="ID", help=text)
