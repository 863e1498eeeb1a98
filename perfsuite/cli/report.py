"""``perfsuite report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.report.page.page_run import read_page_run
from perfsuite.report.verdict_words import verdict_sentence
from perfsuite.report.visible import terminal_text


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "report",
        about="""
        Every run writes its own report.html. This command writes it again, or shows other runs beside the first. The
        verdict is that of the first.
        """,
        examples={"perfsuite report tonight last-night -o both.html": "tonight beside last night"},
        see=("docs/run-format.md", "perfsuite export"),
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder or run.json of a run")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="file to write (default: report.html beside the first run)"
    )
    add_json(parser)
    parser.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> int:
    from perfsuite.report.page.render import PAGE_NAME, write_page  # brings Jinja2

    runs = [read_page_run(named) for named in options.runs]
    path = options.output or runs[0].path.parent / PAGE_NAME
    written = write_page(runs, path)
    give(
        Answer(
            parts=lambda: [f"{terminal_text(str(written))}: {verdict_sentence(runs[0].run, named=terminal_text)}"],
            plain=lambda: {"file": str(written), "verdict": verdict_sentence(runs[0].run, named=str)},
        ),
        options,
    )
    return 0
