"""``perfsuite history`` (look): show how cases moved over all runs, and where they changed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_action, add_command
from perfsuite.cli.kept_folders import FOLDER, kept_folder
from perfsuite.records.history_place import history_place

_ABOUT = """
Each run with --device adds its cases to the history, a folder of Parquet files (--history DIR). Where none is named,
.perfsuite/history is looked for in the current folder, then in those above it, up to the one that has .git. These
commands list and draw what is there; docs/history.md has the columns, for DuckDB, Spark, Trino and ClickHouse.

Change points are advice: they change no outcome and no exit code. A change is told four nights after it at the
earliest.
"""

_EXAMPLES = {
    "perfsuite history runs": "what is there",
    "perfsuite history cases decode": "cases whose id contains 'decode'",
    "perfsuite history trend phase/smollm2-135m-q8_0/siso/decode --plot decode.svg": "one case over all runs",
    "perfsuite history changes --repo ../llama.cpp": "where levels changed, and the commits in between",
    "perfsuite history page -o history.html": "all of it as one page, for a browser",
    "perfsuite history add .perfsuite/runs": "take in runs from before there was a history",
    "perfsuite history sql 'SELECT device, count(*) FROM history GROUP BY device'": "a question of your own",
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
        writes="the history's folder (add, compact), the picture that --plot names, and the page that --output names",
        see=("docs/history.md", "perfsuite baseline"),
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_listings(actions)
    _add_changes(actions)
    _add_page(actions)
    _add_upkeep(actions)
    for action in actions.choices.values():
        text = f"folder or s3://BUCKET/PREFIX of the history (default: {FOLDER}/history, here or nearest above)"
        action.add_argument("--history", metavar="DIR", help=text)


def _add_listings(actions: Commands) -> None:
    runs = add_action(actions, "runs", summary="list the runs, the newest first")
    runs.add_argument("--last", type=int, metavar="N", help="the newest N only")
    runs.set_defaults(run=partial(_run, "history_listings", "list_runs"))
    cases = add_action(actions, "cases", summary="list the cases, with their newest times")
    cases.add_argument("pattern", nargs="?", metavar="PATTERN", help="part of an id, or with * and ? all of it")
    cases.set_defaults(run=partial(_run, "history_listings", "list_cases"))
    trend = add_action(
        actions, "trend", summary="show one case over all runs", writes="the picture of --plot, and nothing without it"
    )
    trend.add_argument("case_id", metavar="CASE", help="a case's id; see 'perfsuite history cases'")
    trend.add_argument("--last", type=int, metavar="N", help="the newest N runs of each device and board only")
    trend.add_argument("--plot", type=Path, metavar="FILE", help="draw it as PNG or SVG")
    trend.set_defaults(run=partial(_run, "history_listings", "tell_trend"))
    for action in (runs, cases, trend):
        _add_choice(action)
        _add_formats(action)


def _add_choice(action: argparse.ArgumentParser) -> None:
    action.add_argument("--device", metavar="NAME", help="runs on this device only")
    text = "runs on this board only: its identity, the beginning of it, or its host name"
    action.add_argument("--board", metavar="ID", help=text)


def _add_formats(action: argparse.ArgumentParser) -> None:
    formats = action.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="print JSON")
    formats.add_argument("--csv", action="store_true", help="print CSV")


def _add_changes(actions: Commands) -> None:
    changes = add_action(actions, "changes", summary="tell where cases changed and stayed changed, as advice")
    changes.add_argument("case_id", nargs="?", metavar="CASE", help="this case only")
    _add_choice(changes)
    _add_sources(changes)
    changes.add_argument("--json", action="store_true", help="print JSON")
    changes.set_defaults(run=partial(_run, "history_changes", "list_changes"))


def _add_sources(action: argparse.ArgumentParser) -> None:
    text = f"the newest N runs of each case, device and board (default {_LAST_RUNS})"
    action.add_argument("--last", type=int, default=_LAST_RUNS, metavar="N", help=text)
    text = "git repository of the sources under test (default: that of the current folder)"
    action.add_argument("--repo", type=Path, default=Path(), metavar="DIR", help=text)


def _add_page(actions: Commands) -> None:
    page = add_action(
        actions,
        "page",
        summary="show the cases over their runs as one HTML page",
        writes="the page that --output names",
    )
    text = "cases whose id contains this, or with * and ? is this (default: all)"
    page.add_argument("pattern", nargs="?", metavar="PATTERN", help=text)
    page.add_argument("-o", "--output", type=Path, default=Path("history.html"), metavar="FILE", help=_OUTPUT)
    _add_choice(page)
    _add_sources(page)
    page.set_defaults(run=partial(_run, "history_page", "write_page"))


def _add_upkeep(actions: Commands) -> None:
    add = add_action(
        actions,
        "add",
        summary="add older runs; those that are there already are left alone",
        writes="files of the history's folder",
    )
    add.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run.json, its folder, or a folder of these")
    add.set_defaults(run=partial(_run, "history_upkeep", "add_runs"))
    compact = add_action(
        actions,
        "compact",
        summary="merge all files into one that is sorted by case",
        writes="one file in the history's folder, in the place of those there",
    )
    compact.set_defaults(run=partial(_run, "history_upkeep", "merge_files"))
    sql = add_action(actions, "sql", summary="answer a SELECT over the view 'history'")
    sql.add_argument("query", metavar="SELECT", help="one SELECT; its columns are in docs/history.md")
    text = f"the most rows that are fetched (default {_MOST_ROWS:,})"
    sql.add_argument("--rows", type=int, default=_MOST_ROWS, metavar="N", help=text)
    text = f"seconds that the query may take (default {_LIMIT_S:g})"
    sql.add_argument("--limit-s", type=float, default=_LIMIT_S, metavar="S", help=text)
    _add_formats(sql)
    sql.set_defaults(run=partial(_run, "history_listings", "answer_query"))


def _run(module: str, name: str, options: argparse.Namespace) -> int:
    """Run a subcommand, whose module is imported only now, on the history that is named or found."""
    named = options.history
    options.history = kept_folder("history") if named is None else history_place(named, "--history=")
    import_module("perfsuite.cli.history_texts").check_texts(options)
    run: Callable[[argparse.Namespace], int] = getattr(import_module(f"perfsuite.cli.{module}"), name)
    return run(options)
