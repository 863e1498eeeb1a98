"""``perfsuite experts`` (watch): show how the experts of an architecture are reused."""

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
A recording with the choices of routers is read: one of 'perfsuite trace --trace experts', or of 'perfsuite trace
--model NAME --recorder experts'. Told are the reuse of experts in each layer and the hits of caches of every size;
where operators were recorded too (--trace experts,counters --memory-limit BYTES), also how the time of the experts'
products and their major faults go with the reuse distance.

Nothing is run. An architecture without experts has nothing to tell.
"""

_EXAMPLES = {
    "perfsuite experts recording": "what a folder of 'perfsuite trace' holds",
    "perfsuite experts recording --cache=8 --plot=hits.png --json": "the hits of a cache of 8 experts a layer, drawn",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "experts",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the picture of --plot, and nothing else",
        see=("docs/experts.md", "perfsuite trace --help"),
    )
    parser.add_argument("recording", type=Path, metavar="RUN", help="a folder that 'perfsuite trace' made, or its file")
    parser.add_argument("--cache", type=int, metavar="N", help="tell the hits of a cache of N experts in each layer")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw hits over the cache's size as PNG or SVG")
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
