"""``perfsuite report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.report.page.page_run import read_page_run
from perfsuite.report.page.render import PAGE_NAME, write_page
from perfsuite.report.verdict_words import verdict_sentence
from perfsuite.report.visible import terminal_text


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    add_command(
        commands,
        "report",
        about="""
        Every run writes its own report.html. This command writes it again, or shows other runs beside the first. The
        verdict is that of the first.
        """,
        examples={"perfsuite report tonight last-night -o both.html": "tonight beside last night"},
        see=("docs/run-format.md", "perfsuite export"),
        options=[
            ("runs RUN...", "folder or run.json of a run", Path),
            ("-o --output FILE", "file to write (default: report.html beside the first run)", Path),
        ],
        run=_report,
    )


def _report(options: argparse.Namespace) -> int:
    runs = [read_page_run(named) for named in options.runs]
    written, run = write_page(runs, options.output or runs[0].path.parent / PAGE_NAME), runs[0].run
    line = f"{terminal_text(str(written))}: {verdict_sentence(run, named=terminal_text)}"
    plain = {"file": str(written), "verdict": verdict_sentence(run, named=str)}
    return give(Answer(parts=[line], plain=plain), options)
