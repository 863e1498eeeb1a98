"""``perfsuite history``."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command, add_json, add_option
from perfsuite.cli.kept_folders import FOLDER, kept_folder
from perfsuite.errors import require
from perfsuite.records.history_place import history_place

#: Runs of each case that change points are looked for in.
_LAST_RUNS = 90
#: Of an answer to a SELECT: rows, and seconds that it may take.
_MOST_ROWS, _LIMIT_S = 100_000, 60.0

_CHOICE = (
    ("--device NAME", "only runs on this device"),
    ("--board ID", "only runs on this board: identity, its first letters, or host name"),
)
_SOURCES = (
    ("--last N", f"newest runs to look at (default {_LAST_RUNS})", int, _LAST_RUNS),
    ("--repo DIR", "git repository of the measured sources (default: the current folder's)", Path, Path()),
)

#: By action: what it does, and its options beside the history and the form of the answer.
_ACTIONS = {
    "runs": ("list the runs, newest first", (("--last N", "only the newest N runs", int), *_CHOICE)),
    "cases": (
        "list the cases with their newest times",
        (("pattern [PATTERN]", "part of a case id, or all of it with * and ?"), *_CHOICE),
    ),
    "trend": (
        "show one case over all runs",
        (
            ("case_id CASE", "case id"),
            ("--last N", "only the newest N runs of each device and board", int),
            ("--plot FILE", "draw a picture (.svg)", Path),
            *_CHOICE,
        ),
    ),
    "changes": (
        "list where cases changed and stayed changed",
        (("case_id [CASE]", "case id (default: all)"), *_CHOICE, *_SOURCES),
    ),
    "page": (
        "write one HTML page of all cases over their runs",
        (
            ("pattern [PATTERN]", "part of a case id, or a pattern with * and ? (default: all)"),
            ("-o --output FILE", "default: history.html in the current folder", Path, Path("history.html")),
            *_CHOICE,
            *_SOURCES,
        ),
    ),
    "add": ("add older runs", (("runs RUN...", "run.json, its folder, or a folder of these", Path),)),
    "compact": ("merge all files into one that is sorted by case", ()),
    "sql": (
        "answer a SELECT over the view 'history'",
        (
            ("query SELECT", "one SELECT; docs/history.md lists the columns"),
            ("--rows N", f"most rows to fetch (default {_MOST_ROWS:,}, at most 100,000,000)", int, _MOST_ROWS),
            ("--limit-s S", f"longest time for the query, s (default {_LIMIT_S:g}, at most 86,400)", float, _LIMIT_S),
        ),
    ),
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its own subcommands."""
    parser = add_command(
        commands,
        "history",
        about="""
        Every run with --device adds its cases to a folder of Parquet files. Change points are advice: they affect no
        outcome. A change is reported four nights after it at the earliest.
        """,
        examples={
            "perfsuite history trend phase/smollm2-135m-q8_0/siso/decode --plot decode.svg": "one case over all runs",
            "perfsuite history page -o history.html": "all of it as one page, for a browser",
        },
        writes="files of the history ('add', 'compact'), and the page of 'page'",
        see=("docs/history.md", "perfsuite baseline"),
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    for name, (summary, options) in _ACTIONS.items():
        about = "Runs that are there already are skipped." if name == "add" else ""
        action = add_command(actions, name, summary=summary, about=about, options=options)
        if name in ("runs", "cases", "trend", "sql"):
            formats = action.add_mutually_exclusive_group()
            add_json(formats)
            add_option(formats, "--csv", "print CSV")
        else:
            add_json(action)
        text = f"folder or s3://BUCKET/PREFIX (default {FOLDER}/history, here or in a folder above)"
        add_option(action, "--history DIR", text)
        action.set_defaults(run=partial(_run, name))


def _run(name: str, options: argparse.Namespace) -> int:
    """Run an action, whose module is imported only now, on the history that is named or found."""
    place = None if options.history is None else history_place(options.history, "--history=")
    require("duckdb", "perfsuite history")
    options.history = place or kept_folder("history")
    module = "history_changes" if name in ("changes", "page") else "history_actions"
    action = getattr(import_module(f"perfsuite.cli.{module}"), f"answer_{name}")
    return int(import_module("perfsuite.cli.history_actions").answered(action, options))
