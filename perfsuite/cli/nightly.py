"""``perfsuite nightly``."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import give
from perfsuite.cli.command_help import Commands, add_command, add_json, add_quiet
from perfsuite.cli.kept_folders import FOLDER
from perfsuite.nightly.plan_file import read_plan

_ABOUT = """
Each cell of the plan is one run. Boards are measured in parallel. Broken cells are tried once more at the end. --resume
needs the same plan, commit and version.
"""

_EXAMPLES = {
    "perfsuite nightly plan.toml --dry-run": "check the plan",
    "perfsuite nightly plan.toml -o nights": "measure; results are in nights/latest",
}

_EXITS = {
    1: "a case of a cell fails",
    2: "a cell could not be measured, or a mistake",
    10: "in a cell nothing could be judged",
    11: "in a cell something looks slower, not proven, or there were fewer than five pairs",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "nightly",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="a folder for the night, with night.json, summary.md, junit.xml and one folder for each cell",
        exits=_EXITS,
        see=("docs/how-to/run-it-nightly.md", "perfsuite history"),
    )
    text = "TOML file, as docs/how-to/run-it-nightly.md describes"
    parser.add_argument("plan", type=Path, metavar="PLAN", help=text)
    text = "only this board of the plan; repeatable"
    parser.add_argument("--board", action="append", metavar="NAME", help=text)
    parser.add_argument("--dry-run", action="store_true", help="check the plan and list its cells")
    parser.add_argument("--resume", action="store_true", help="continue the last night")
    default = Path(FOLDER) / "nightly"
    text = f"folder of the nights (default {default})"
    parser.add_argument("-o", "--output", type=Path, default=default, metavar="FOLDER", help=text)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=_nightly, makes_folder=True)


def _nightly(options: argparse.Namespace) -> int:
    plan = read_plan(options.plan)
    if options.board is not None:
        plan = plan.of_boards(options.board)
    from perfsuite.cli.nightly_answer import conduct_night, exit_code, night_answer, plan_answer

    if options.dry_run:
        give(plan_answer(plan), options)
        return 0
    night, ends = conduct_night(plan, options)
    give(night_answer(plan, night, ends), options)
    return exit_code(plan, ends)
