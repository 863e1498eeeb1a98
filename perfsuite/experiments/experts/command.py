"""``perfsuite experts``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Answer, Part, check_picture, draw, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.run_options import check_least
from perfsuite.errors import PerfsuiteError

if TYPE_CHECKING:
    from perfsuite.experiments.experts.view import ExpertReport

_ABOUT = """
Reads a recording with router choices. With operators in it as well, it shows how time and page faults depend on the
reuse distance.
"""

_EXAMPLES = {
    "perfsuite experts recording --cache=8 --plot=hits.png": "hits of a cache of 8 experts a layer",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "experts",
        about=_ABOUT,
        examples=_EXAMPLES,
        see=(
            "docs/experts.md",
            "perfsuite trace",
        ),
    )
    parser.add_argument("recording", type=Path, metavar="RUN", help="folder of 'perfsuite trace', or its file")
    parser.add_argument("--cache", type=int, metavar="N", help="show the hits of a cache of N experts a layer")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture, PNG or SVG")
    add_json(parser)
    parser.set_defaults(run=_experts)


def _experts(options: argparse.Namespace) -> int:
    check_least(options, "cache")
    check_picture(options.plot)
    from perfsuite.experiments.experts.view import expert_chart, expert_report, plain_experts
    from perfsuite.trace.recording import read_recording  # NumPy and the readers

    trace = read_recording(options.recording)
    report = expert_report(trace, name=options.recording.stem, n_cached=options.cache)
    if not report.layers:
        todo = "record them with --trace experts, of a model that has experts"
        raise PerfsuiteError(f"{options.recording}: holds no choices of experts; {todo}")
    if options.plot is not None:
        draw(expert_chart(report), options.plot)
    give(Answer(parts=lambda: _parts(report), plain=lambda: plain_experts(report)), options)
    return 0


def _parts(report: ExpertReport) -> Iterator[Part]:
    from perfsuite.experiments.experts.view import cache_table, expert_lines, fault_table, layer_table

    yield from expert_lines(report)
    yield from ("", layer_table(report.layers))
    yield from ("", cache_table(report.sizes))
    if report.faults.bins:
        yield from ("", fault_table(report.faults))
