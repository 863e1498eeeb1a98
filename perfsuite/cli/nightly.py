"""``perfsuite nightly`` (measure): run a matrix of boards, models and scenarios, and merge what comes of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import give
from perfsuite.cli.command_help import Commands, add_command, add_json, add_quiet
from perfsuite.cli.kept_folders import FOLDER
from perfsuite.nightly.plan_file import read_plan

_ABOUT = """
Each cell of a plan is one run of pytest, with a folder, a log and a JUnit report of its own. Boards are measured side
by side, the cells of a board one after the other; what broke, because a link was lost or a board was busy, is tried
again once at the end. The answer is one table, a summary in Markdown, one JUnit report and one exit code.

The night's state is kept after each cell. A night that was broken off goes on with --resume, which measures no finished
cell again. It refuses a night that is complete, and a plan, a commit or a version of the suite that is not the one the
night began with. Ctrl-C lets the cells that are running keep what they measured.
"""

_EXAMPLES = {
    "perfsuite nightly plan.toml --dry-run": "check the plan, tell its cells",
    "perfsuite nightly plan.toml -o nights": "a night; what it says lies in nights/latest",
    "perfsuite nightly plan.toml -o nights --board attic": "the cells of one board, such as a job's of a matrix",
    "perfsuite nightly plan.toml -o nights --resume": "go on with the night that was broken off last",
}

_EXITS = {
    0: "all cells were measured, and none fails",
    1: "a cell has a case that fails, whatever became of the others",
    2: "a cell could not be measured, none that was fails; or a mistake in what was asked for: one line says what",
    10: "all cells were measured and none fails, and in one of them nothing could be judged",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "nightly",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="a folder for the night below --output, with night.json, summary.md, junit.xml and BOARD/CELL/",
        exits=_EXITS,
        see=("docs/how-to/run-it-nightly.md", "perfsuite history"),
    )
    text = "a TOML file; docs/how-to/run-it-nightly.md describes it"
    parser.add_argument("plan", type=Path, metavar="PLAN", help=text)
    text = "only this board of the plan, by its name there; may be given several times"
    parser.add_argument("--board", action="append", metavar="NAME", help=text)
    parser.add_argument("--dry-run", action="store_true", help="check the plan, tell what would be run")
    parser.add_argument("--resume", action="store_true", help="go on with the last night in the folder")
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
    if options.dry_run:
        from perfsuite.cli.nightly_tables import plan_answer

        give(plan_answer(plan), options)
        return 0
    from perfsuite.cli.nightly_answer import conduct_night, exit_code, night_answer

    night, ends = conduct_night(plan, options)
    give(night_answer(plan, night, ends), options)
    return exit_code(plan, ends)
