"""``perfsuite held-out``: how wrong the forecast is on workloads that its calibration never ran."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.timing.engine_times import COVERAGE_RATIO, EngineTimes
from perfsuite.measure.calibration_store import find_calibration
from perfsuite.measure.launch import environment_engine
from perfsuite.units import format_change, format_ns
from perfsuite.verdict.held_out import HELD_OUT, HeldOutRow, HeldOutSummary, measure_held_out, summarize

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "held-out",
        help="compare forecasts with measurements that the calibration never saw",
        description="Forecast the time to first token and per output token of workloads that no calibration ran, "
        "measure them, and tell the errors. TTFT is the evaluation of the prompt, TPOT that of one token. It takes "
        "about five minutes; let nothing else run.",
    )
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--threads", type=int, help="threads of the engine (default: physical cores)")
    parser.add_argument(
        "--workload",
        action="append",
        metavar="NAME:PROMPT",
        help="weights and prompt length, such as llama-3.2-1b-q4_0:128 (default: the standard list)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_held_out)


def _held_out(options: argparse.Namespace) -> int:
    profile = find_profile(options.device)
    if options.threads is not None and options.threads < 1:
        raise PerfsuiteError(f"--threads={options.threads}: expected 1 or more")
    workloads = tuple(_workload(text) for text in options.workload) if options.workload else HELD_OUT
    engine = environment_engine()
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    n_threads = options.threads or default_threads()
    calibration = find_calibration(host_fingerprint(), engine.build_id, n_threads, cache_dir)
    if calibration is None:
        raise PerfsuiteError(
            f"--device={options.device}: no calibration with {n_threads} threads is stored; run 'perfsuite calibrate'"
        )
    started_s = time.monotonic()
    rows = measure_held_out(
        EngineTimes(calibration),
        workloads,
        engine=engine,
        profile=profile,
        n_threads=n_threads,
        cache_dir=cache_dir,
        progress=lambda text: print(
            f"held-out: {time.monotonic() - started_s:.0f} s, {text}", file=sys.stderr, flush=True
        ),
    )
    _tell(rows, as_json=options.json)
    return 0


def _workload(text: str) -> tuple[str, int]:
    name, _, length = text.rpartition(":")
    if not name or not length.isdecimal() or int(length) < 1:
        raise PerfsuiteError(f"--workload={text}: expected NAME:PROMPT, such as llama-3.2-1b-q4_0:128")
    return name, int(length)


def _tell(rows: Sequence[HeldOutRow], *, as_json: bool) -> None:
    summaries = summarize(rows)
    if as_json:
        plain = [{**asdict(row), "error_ratio": row.error_ratio, "is_inside": row.is_inside} for row in rows]
        print(json.dumps({"rows": plain, "summaries": [asdict(each) for each in summaries]}, indent=1))
        return
    table = Table(
        *("weights", "prompt", "latency", "forecast", "interval", "measured", "error", "inside"),
        box=None,
        pad_edge=False,
    )
    for row in rows:
        table.add_row(
            row.weights,
            str(row.n_prompt),
            row.latency.upper(),
            format_ns(row.expected_ns),
            f"{format_ns(row.lower_ns)} to {format_ns(row.upper_ns)}",
            format_ns(row.measured_ns),
            format_change(1.0 + row.error_ratio),
            "yes" if row.is_inside else "no",
        )
    show(table)
    for summary in summaries:
        print(_sentence(summary))


def _sentence(summary: HeldOutSummary) -> str:
    return (
        f"{summary.latency.upper()}: mean absolute error {summary.mean_absolute_error_ratio:.1%} over "
        f"{summary.n_rows} workloads (bias {format_change(1.0 + summary.bias_ratio)}, worst "
        f"{format_change(1.0 + summary.worst_error_ratio)}); {summary.inside_ratio:.0%} inside the interval that is "
        f"meant to hold {COVERAGE_RATIO:.0%}"
    )
