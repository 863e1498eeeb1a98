"""``perfsuite held-out``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from perfsuite.cli.answer import Answer, Sheet, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.timing.engine_times import COVERAGE_RATIO, EngineTimes
from perfsuite.experiments.held_out.measurement import (
    HELD_OUT,
    HeldOutRow,
    HeldOutSummary,
    anchor_of,
    measure_held_out,
    summarize,
)
from perfsuite.measure.board.protocol import Board, board_name
from perfsuite.measure.ceiling_store import find_calibration
from perfsuite.units import format_change, format_ns
from perfsuite.workload.weights import resolve

_ABOUT = """
A reference model runs between any two workloads. The last column corrects the error for its drift. Takes four minutes;
let nothing else run.
"""

_EXAMPLES = {"perfsuite held-out --workload=llama-3.2-1b-q4_0:128": "one workload"}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands, "held-out", about=_ABOUT, examples=_EXAMPLES, see=("docs/forecasting.md", "perfsuite calibrate")
    )
    subject = add_subject(parser, "device", "threads")
    text = "model and prompt length, such as llama-3.2-1b-q4_0:128; repeatable (default: a list)"
    subject.add_argument("--workload", action="append", metavar="NAME:PROMPT", help=text)
    add_answer(parser)
    parser.set_defaults(run=_held_out)


def _held_out(options: argparse.Namespace) -> int:
    profile = find_profile(options.device)
    check_least(options, "threads")
    workloads = tuple(_workload(text) for text in options.workload) if options.workload else HELD_OUT
    for name, _ in workloads:
        resolve(name, cache_dir=user_cache() / "models")
    with taken_device(profile, "held-out", options) as taken:
        rows = _measured(options, profile, taken.board, workloads)
    give(_answer(rows), options)
    return 0


def _measured(
    options: argparse.Namespace, profile: Profile, board: Board, workloads: Sequence[tuple[str, int]]
) -> tuple[HeldOutRow, ...]:
    """Compare with the calibration of the device as it is now: with its governor."""
    facts = board.facts()
    engine, n_threads = facts.engine, options.threads or facts.default_threads
    kept_by = board_name(board).kept_by
    calibration = find_calibration(facts.fingerprint, engine.build_id, n_threads, user_cache(), board=kept_by)
    if calibration is None:
        raise PerfsuiteError(
            f"--device={options.device}: no calibration with {n_threads} threads is stored; run 'perfsuite calibrate "
            f"--device={options.device}'"
        )
    with progress("held-out", options) as told:
        return measure_held_out(
            EngineTimes(calibration),
            workloads,
            board=board,
            engine=engine,
            profile=profile,
            n_threads=n_threads,
            models_dir=user_cache() / "models",
            anchor=anchor_of(calibration, models_dir=user_cache() / "models"),
            progress=told.step,
        )


def _workload(text: str) -> tuple[str, int]:
    name, _, length = text.rpartition(":")
    if not name or not length.isdecimal() or int(length) < 1:
        raise PerfsuiteError(f"--workload={text}: expected NAME:PROMPT, such as llama-3.2-1b-q4_0:128")
    return name, int(length)


def _answer(rows: Sequence[HeldOutRow]) -> Answer:
    summaries = summarize(rows)
    derived = ("error_ratio", "error_without_drift_ratio", "is_inside")
    figures = [asdict(row) | {name: getattr(row, name) for name in derived} for row in rows]
    return Answer(
        parts=lambda: (_sheet(rows), *map(_sentence, summaries)),
        plain=lambda: {"rows": figures, "summaries": [asdict(each) for each in summaries]},
    )


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
