"""``perfsuite history``."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.kept_folders import FOLDER, kept_folder
from perfsuite.errors import require
from perfsuite.records.history_place import history_place

_ABOUT = """
Every run with --device adds its cases to a folder of Parquet files. Change points are advice: they affect no outcome. A
change is reported four nights after it at the earliest.
"""

_EXAMPLES = {
    "perfsuite history trend phase/smollm2-135m-q8_0/siso/decode --plot decode.svg": "one case over all runs",
    "perfsuite history page -o history.html": "all of it as one page, for a browser",
}

#: Runs of each case that change points are looked for in.
_LAST_RUNS = 90
#: Of an answer to a SELECT: rows, and seconds that it may take.
_MOST_ROWS, _LIMIT_S = 100_000, 60.0


_OUTPUT = "default: history.html in the current folder"


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its own subcommands."""
    parser = add_command(
        commands,
        "history",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="files of the history ('add', 'compact'), and the page of 'page'",
        see=("docs/history.md", "perfsuite baseline"),
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_listings(actions)
    _add_changes(actions)
    _add_page(actions)
    _add_upkeep(actions)
    for action in actions.choices.values():
        text = f"folder or s3://BUCKET/PREFIX (default {FOLDER}/history, here or in a folder above)"
        action.add_argument("--history", metavar="DIR", help=text)


def _add_listings(actions: Commands) -> None:
    runs = add_command(actions, "runs", summary="list the runs, newest first")
    runs.add_argument("--last", type=int, metavar="N", help="only the newest N runs")
    runs.set_defaults(run=partial(_run, "history_listings", "list_runs"))
    cases = add_command(actions, "cases", summary="list the cases with their newest times")
    cases.add_argument("pattern", nargs="?", metavar="PATTERN", help="part of a case id, or all of it with * and ?")
    cases.set_defaults(run=partial(_run, "history_listings", "list_cases"))
    trend = add_command(actions, "trend", summary="show one case over all runs")
    trend.add_argument("case_id", metavar="CASE", help="case id")
    trend.add_argument("--last", type=int, metavar="N", help="only the newest N runs of each device and board")
    trend.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg)")
    trend.set_defaults(run=partial(_run, "history_listings", "tell_trend"))
    for action in (runs, cases, trend):
        _add_choice(action)
        _add_formats(action)


def _add_choice(action: argparse.ArgumentParser) -> None:
    action.add_argument("--device", metavar="NAME", help="only runs on this device")
    text = "only runs on this board: identity, its first letters, or host name"
    action.add_argument("--board", metavar="ID", help=text)


def _add_formats(action: argparse.ArgumentParser) -> None:
    formats = action.add_mutually_exclusive_group()
    add_json(formats)
    formats.add_argument("--csv", action="store_true", help="print CSV")


def _add_changes(actions: Commands) -> None:
    changes = add_command(actions, "changes", summary="list where cases changed and stayed changed")
    changes.add_argument("case_id", nargs="?", metavar="CASE", help="case id (default: all)")
    _add_choice(changes)
    _add_sources(changes)
    add_json(changes)
    changes.set_defaults(run=partial(_run, "history_changes", "list_changes"))


def _add_sources(action: argparse.ArgumentParser) -> None:
    text = f"newest runs to look at (default {_LAST_RUNS})"
    action.add_argument("--last", type=int, default=_LAST_RUNS, metavar="N", help=text)
    text = "git repository of the measured sources (default: the current folder's)"
    action.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help=text)


def _add_page(actions: Commands) -> None:
    page = add_command(actions, "page", summary="write one HTML page of all cases over their runs")
    text = "part of a case id, or a pattern with * and ? (default: all)"
    page.add_argument("pattern", nargs="?", metavar="PATTERN", help=text)
    page.add_argument("-o", "--output", type=Path, default=Path("history.html"), metavar="FILE", help=_OUTPUT)
    _add_choice(page)
    _add_sources(page)
    add_json(page)
    page.set_defaults(run=partial(_run, "history_page", "write_page"))


def _add_upkeep(actions: Commands) -> None:
    add = add_command(actions, "add", summary="add older runs", about="Runs that are there already are skipped.")
    add.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run.json, its folder, or a folder of these")
    add.set_defaults(run=partial(_run, "history_upkeep", "add_runs"))
    compact = add_command(actions, "compact", summary="merge all files into one that is sorted by case")
    for action in (add, compact):
        add_json(action)
    compact.set_defaults(run=partial(_run, "history_upkeep", "merge_files"))
    sql = add_command(actions, "sql", summary="answer a SELECT over the view 'history'")
    sql.add_argument("query", metavar="SELECT", help="one SELECT; docs/history.md lists the columns")
    text = f"most rows to fetch (default {_MOST_ROWS:,}, at most 100,000,000)"
    sql.add_argument("--rows", type=int, default=_MOST_ROWS, metavar="N", help=text)
    text = f"longest time for the query, s (default {_LIMIT_S:g}, at most 86,400)"
    sql.add_argument("--limit-s", type=float, default=_LIMIT_S, metavar="S", help=text)
    _add_formats(sql)
    sql.set_defaults(run=partial(_run, "history_listings", "answer_sql"))


def _run(module: str, name: str, options: argparse.Namespace) -> int:
    """Run a subcommand, whose module is imported only now, on the history that is named or found."""
    named = options.history
    place = None if named is None else history_place(named, "--history=")
    require("duckdb", "perfsuite history")
    options.history = place or kept_folder("history")
    action = getattr(import_module(f"perfsuite.cli.{module}"), name)
    return int(import_module("perfsuite.cli.history_texts").answered(action, options))
