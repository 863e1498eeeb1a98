"""The options of ``perfsuite certify``, and what its help says."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.run_options import add_answer, add_subject, effort_group

_DEFAULT_RUNS = 20

_ABOUT = """
Runs in pairs are made of a build against itself, which must not be told as changed, and of a build that was slowed
down on purpose, which must be: so the rates of false alarms and of regressions found are measured on this device, with
bounds, beside those of the rules of other tools on the same runs.

A run takes 90 s and the defaults make 20 of each kind. It may be broken off: what was measured is kept, and the next
call goes on from there. It measures the verdicts, not the engine.
"""

_EXAMPLES = {
    "perfsuite certify --runs=20": "false alarms alone: half an hour",
    "perfsuite certify --runs=20 --inject=0.05 --inject-operator=ffn_up=0.2": "power as well: an hour and a half",
    "perfsuite certify --report-only --json": "what is known until now",
}


def add_options(commands: Commands) -> argparse.ArgumentParser:
    """Add the parser of the subcommand; what it does is for the caller to set."""
    parser = add_command(
        commands,
        "certify",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="each run as it ends and the summary, into the cache of the user or to --state",
        see=("docs/comparing.md", "docs/results.md"),
    )
    subject = add_subject(parser, "device", "model", "scenario")
    subject.add_argument("--threads", type=int, metavar="N", help="threads of the engine (default: usable cores)")
    _add_effort(effort_group(parser))
    answer = add_answer(parser)
    answer.add_argument("--state", type=Path, metavar="FILE", help="where the runs are kept (default: in the cache)")
    answer.add_argument("--report-only", action="store_true", help="run nothing, tell what is kept")
    return parser


def _add_effort(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--runs", type=int, default=_DEFAULT_RUNS, metavar="N", help="runs of each kind (default 20)")
    text = "also slow both phases down by this share, such as 0.05; may be repeated"
    group.add_argument("--inject", type=float, action="append", default=[], metavar="RATIO", help=text)
    text = "also slow one operator down, such as ffn_up=0.2; may be repeated"
    group.add_argument("--inject-operator", action="append", default=[], metavar="ROLE=RATIO", help=text)
    group.add_argument("--load", action="store_true", help="also switch on a background load half way")
    group.add_argument("--no-same", action="store_true", help="no further runs of a side against itself")
