"""``perfsuite ingest`` (measure): judge what came back of a device that only runs what is uploaded."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command, add_json, take_behind_dashes
from perfsuite.cli.pytest_run import run_pytest

_ABOUT = """
The folder is one that 'perfsuite bundle --plan' wrote; what its run.sh has left on the device is in results/ in it, or
in the folder that --results names. It is judged by the very run that was planned, with the same cases, verdicts, files,
report and exit codes as a run over a link. What did not come back is invalid, and the reason says so; what was altered,
answers another plan, or is of several devices is refused.

Options of pytest that ask nothing more of the device may follow behind '--', such as --baseline=record.
"""

_EXAMPLES = {
    "perfsuite ingest job": "with what came back in job/results",
    "perfsuite ingest job --results Downloads/results": "where the farm's files were unpacked",
    "perfsuite ingest job -- --baseline=record": "make it the device's reference",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "ingest",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="what a run of pytest does: .perfsuite/runs/, and baselines where they are asked for",
        exits={
            0: "no case fails",
            1: "a case fails, or something could not be measured",
            4: "what came back, or an option, is refused",
            10: "nothing could be judged",
        },
        see=("docs/how-to/measure-on-a-farm.md", "perfsuite bundle"),
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="that 'perfsuite bundle --plan' wrote")
    text = "where what came back lies (default: results/ in it)"
    parser.add_argument("--results", type=Path, metavar="FOLDER", help=text)
    parser.add_argument("pytest_options", nargs="*", metavar="OPTION", help="behind '--': further options of pytest")
    take_behind_dashes(parser, "pytest_options")
    add_json(parser, text="print the run's run.json; pytest's own words go to standard error")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from perfsuite.records.job import read_job

    job = read_job(options.folder)
    results = [] if options.results is None else [f"--perf-results={options.results}"]
    return run_pytest([*job.pytest_arguments, f"--perf-ingest={options.folder}", *results], options)
