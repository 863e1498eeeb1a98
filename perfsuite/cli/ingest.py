"""``perfsuite ingest``."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command, add_json, add_pytest_options
from perfsuite.cli.pytest_run import run_pytest
from perfsuite.records.job import read_job


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "ingest",
        about="""
        The planned run is judged as a run over a link would be. Missing results are INVALID. Altered results, or those
        of another plan, are refused.
        """,
        examples={
            "perfsuite ingest job": "results in job/results",
            "perfsuite ingest job -- --baseline=record": "make it the device's reference",
        },
        writes="the files of a run, and baselines if asked",
        exits={
            1: "a case fails, or something could not be measured",
            4: "the results or an option are refused",
            10: "nothing could be judged",
            11: "a case looks slower, not proven, or there were fewer than five pairs",
        },
        see=("docs/how-to/measure-on-a-farm.md", "perfsuite bundle"),
        options=[
            ("folder FOLDER", "folder of 'perfsuite bundle --plan'", Path),
            ("--results FOLDER", "folder of the results (default: results/ in it)", Path),
        ],
    )
    add_pytest_options(parser)
    add_json(parser, text="print the run's run.json; pytest's own words go to standard error")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    job = read_job(options.folder)
    results = [] if options.results is None else [f"--perf-results={options.results}"]
    return run_pytest([*job.pytest_arguments, f"--perf-ingest={options.folder}", *results], options)[0]
