"""The options of ``perfsuite trace view``, and what its help says."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from perfsuite.cli.command_help import Commands, add_action, word_parser
from perfsuite.cli.run_options import add_answer

#: What shows a view, and returns the exit code.
View: TypeAlias = Callable[[argparse.Namespace], int]

_TOP = 10
_RUN_HELP = "a folder that 'perfsuite trace' made, or a trace's file"


def view_parser(shown_by: Mapping[str, View]) -> argparse.ArgumentParser:
    """Return the parser; each view, by its name, is shown by what is given for it."""
    parser = word_parser(
        "perfsuite trace view",
        summary="look at what was recorded",
        about="A recording is shown as a graph, as a timeline or in figures. Nothing is run, and nothing is judged.",
        examples={
            "perfsuite trace view graph recording --output=graph.svg": "operators, and what waits for what",
            "perfsuite trace view timeline recording --output=timeline.pftrace": "for ui.perfetto.dev",
            "perfsuite trace view statistics recording --json": "across tokens, operators, threads, experts",
        },
        writes="the file of --output, and nothing without it",
        see=("docs/trace-views.md",),
    )
    views = parser.add_subparsers(required=True, metavar="graph|timeline|statistics")
    shows = "operators in the order of execution, and what waits for what"
    _add_graph(_view(views, "graph", shown_by["graph"], shows, n_runs="+"))
    timeline = _view(views, "timeline", shown_by["timeline"], "everything on one clock", n_runs=1)
    text = "write it there: .json for Chrome's format, .pftrace for Perfetto's"
    timeline.add_argument("--output", type=Path, metavar="FILE", help=text)
    shows = "across tokens, operators, threads, experts"
    statistics = _view(views, "statistics", shown_by["statistics"], shows, n_runs=1)
    text = "the same work on a device: where is it faster?"
    statistics.add_argument("--against", type=Path, metavar="RUN", help=text)
    statistics.add_argument("--output", type=Path, metavar="FILE", help="draw time over size there, as PNG or SVG")
    return parser


def _view(views: Commands, name: str, view: View, shows: str, *, n_runs: int | str) -> argparse.ArgumentParser:
    parser = add_action(
        views,
        name,
        summary=f"show {shows}",
        examples={f"perfsuite trace view {name} recording --top=5": "a folder that 'perfsuite trace' made"},
        writes="the file of --output, and nothing without it",
    )
    parser.add_argument("runs", type=Path, nargs=n_runs, metavar="RUN", help=_RUN_HELP)
    add_answer(parser)
    parser.add_argument("--top", type=int, default=_TOP, metavar="N", help=f"rows of a table (default {_TOP})")
    parser.set_defaults(view=view)
    return parser


def _add_graph(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graph", metavar="NAME|N", help="decode, prefill or a number (default: the commonest decode)")
    parser.add_argument("--metric", default="time", metavar="NAME", help="of colours: time, bandwidth, or a counter")
    text = "layers shown in full, such as 0,1,5, or all (default: 0,1); others are folded"
    parser.add_argument("--layers", metavar="LIST", help=text)
    parser.add_argument("--output", type=Path, metavar="FILE", help="draw it there: .dot, .svg or .png")
