"""``perfsuite held-out``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from perfsuite.cli.answer import Answer, Sheet, fields_of, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.timing.engine_times import COVERAGE_RATIO, EngineTimes
from perfsuite.experiments.held_out.measurement import (
    HELD_OUT,
    HeldOutRow,
    HeldOutSummary,
    anchor_of,
    measure_held_out,
    summarize,
    workload_of,
)
from perfsuite.measure.ceiling_store import board_calibration
from perfsuite.units import format_change, format_ns
from perfsuite.workload.weights import resolve


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "held-out",
        about="""
        A reference model runs between any two workloads. The last column corrects the error for its drift. Takes four
        minutes; let nothing else run.
        """,
        examples={"perfsuite held-out --workload=llama-3.2-1b-q4_0:128": "one workload"},
        see=("docs/forecasting.md", "perfsuite calibrate"),
    )
    subject = add_subject(parser, "device", "threads")
    text = "model and prompt length, such as llama-3.2-1b-q4_0:128; repeatable (default: a list)"
    subject.add_argument("--workload", action="append", metavar="NAME:PROMPT", help=text)
    add_answer(parser)
    parser.set_defaults(run=_held_out)


def _held_out(options: argparse.Namespace) -> int:
    profile = find_profile(options.device)
    check_least(options, "threads")
    workloads = tuple(map(workload_of, options.workload)) if options.workload else HELD_OUT
    models_dir = user_cache() / "models"
    for name, _ in workloads:
        resolve(name, cache_dir=models_dir)
    with taken_device(profile, "held-out", options) as taken:
        n_threads = options.threads or taken.board.facts().default_threads
        calibration = board_calibration(taken.board, n_threads, user_cache())
        if calibration is None:
            raise PerfsuiteError(
                f"--device={options.device}: no calibration with {n_threads} threads is stored; run 'perfsuite "
                f"calibrate --device={options.device}'"
            )
        with progress("held-out", options) as told:
            rows = measure_held_out(
                EngineTimes(calibration),
                workloads,
                board=taken.board,
                profile=profile,
                n_threads=n_threads,
                models_dir=models_dir,
                anchor=anchor_of(calibration, models_dir=models_dir),
                progress=told.step,
            )
    summaries, derived = summarize(rows), ("error_ratio", "error_without_drift_ratio", "is_inside")
    figures = [asdict(row) | fields_of(row, *derived) for row in rows]
    plain = {"rows": figures, "summaries": [asdict(each) for each in summaries]}
    give(Answer(parts=lambda: (_sheet(rows), *map(_sentence, summaries)), plain=lambda: plain), options)
    return 0


def _sheet(rows: Sequence[HeldOutRow]) -> Sheet:
    return Sheet(
        ("weights", "prompt", "latency", "forecast", "interval", "measured", "error", "inside", "drift", "without"),
        [
            (
                *(row.weights, row.n_prompt, row.latency.upper(), format_ns(row.expected_ns)),
                *(f"{format_ns(row.lower_ns)} to {format_ns(row.upper_ns)}", format_ns(row.measured_ns)),
                *(format_change(1.0 + row.error_ratio), "yes" if row.is_inside else "no"),
                *(format_change(row.drift_ratio), format_change(1.0 + row.error_without_drift_ratio)),
            )
            for row in rows
        ],
    )


def _sentence(summary: HeldOutSummary) -> str:
    return (
        f"{summary.latency.upper()}: mean absolute error {summary.mean_absolute_error_ratio:.1%} over "
        f"{summary.n_rows} workloads (bias {format_change(1.0 + summary.bias_ratio)}, worst "
        f"{format_change(1.0 + summary.worst_error_ratio)}); {summary.inside_ratio:.0%} inside the interval that is "
        f"meant to hold {COVERAGE_RATIO:.0%}; without the drift {summary.mean_error_without_drift_ratio:.1%}"
    )
