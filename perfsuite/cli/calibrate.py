"""``perfsuite calibrate``: measure single operators, so that forecasts know this device and this engine."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.profile import find_profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.efficiency import Efficiency, efficiency
from perfsuite.expectation.timing.engine_times import EngineTimes
from perfsuite.expectation.timing.grid import STANDARD_TYPES, typical_shapes
from perfsuite.measure.calibrate import N_ROUNDS, CalibrationRun, calibrate
from perfsuite.measure.calibration_store import store_calibration
from perfsuite.measure.ceiling_store import best_ceilings
from perfsuite.measure.launch import environment_engine, run_worker
from perfsuite.measure.plan import ProbePlan
from perfsuite.units import format_change, format_ns
from perfsuite.workload.ggml_types import GGML_TYPES

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands

_PROBE_BUDGET_MS = 2500


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "calibrate",
        help="measure single operators, so that forecasts know this device",
        description="Measure single ggml operators of the installed llama.cpp and store what forecasts need. It takes "
        "about three minutes; let nothing else run. Forecasts and the cases of --device use it from then on.",
    )
    parser.add_argument("--device", default="host", help="device profile (default host)")
    parser.add_argument("--threads", type=int, help="threads of the engine (default: physical cores)")
    parser.add_argument("--rounds", type=int, default=N_ROUNDS, help=f"rounds over all operators (default {N_ROUNDS})")
    types = ", ".join(STANDARD_TYPES)
    parser.add_argument("--type", action="append", metavar="TYPE", help=f"ggml type of weights (default: {types})")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    run = _run(options)
    started_s = time.monotonic()

    def progress(text: str) -> None:
        print(f"calibrate: {time.monotonic() - started_s:.0f} s, {text}", file=sys.stderr, flush=True)

    progress("ceilings")
    ceilings = _ceilings(run)
    calibration = calibrate(run, progress)
    path = store_calibration(calibration, run.engine.build_id, run.cache_dir)
    print(f"calibrate: {time.monotonic() - started_s:.0f} s, stored in {path}", file=sys.stderr)
    _tell(calibration, ceilings, as_json=options.json)
    return 0


def _run(options: argparse.Namespace) -> CalibrationRun:
    profile = find_profile(options.device)
    for name in ("rounds", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PerfsuiteError(f"--{name}={value}: expected 1 or more")
    return CalibrationRun(
        engine=environment_engine(),
        profile=profile,
        n_threads=options.threads or default_threads(),
        cache_dir=Path(platformdirs.user_cache_dir("perfsuite")),
        types=tuple(_weight_type(name) for name in options.type or STANDARD_TYPES),
        n_rounds=options.rounds,
    )


def _weight_type(name: str) -> str:
    kind = GGML_TYPES.get(name.upper())
    if kind is None or not kind.is_weight:
        accepted = ", ".join(each.name.lower() for each in GGML_TYPES.values() if each.is_weight)
        raise PerfsuiteError(f"--type={name}: no type of weights; accepted are {accepted}")
    return kind.name.lower()


def _ceilings(run: CalibrationRun) -> Ceilings:
    plan = ProbePlan(cache_dir=str(run.cache_dir), n_threads=run.n_threads, budget_ms=_PROBE_BUDGET_MS)
    measured = Ceilings.from_plain(run_worker(plan)["ceilings"])
    return best_ceilings(measured, host_fingerprint(), run.cache_dir)


def _tell(calibration: Calibration, ceilings: Ceilings, *, as_json: bool) -> None:
    times = EngineTimes(calibration)
    found = [
        efficiency(shape, times.operators, ceilings)
        for shape in typical_shapes(point.shape for point in calibration.points)
    ]
    if as_json:
        factors = {phase: asdict(replace(factor, kinds=dict(factor.kinds))) for phase, factor in times.factors.items()}
        print(json.dumps({"operators": [asdict(each) for each in found], "phases": factors}, indent=1))
        return
    show(_operator_table(found))
    for phase, factor in times.factors.items():
        print(
            f"{phase}: operators within the engine take {format_change(factor.overall.ratio)} against alone; with a "
            f"factor for each kind ± {factor.spread_ratio * 100:.1f} % from one architecture to the next, "
            f"± {factor.process_spread_ratio * 100:.1f} % from one process to the next"
        )


def _operator_table(found: list[Efficiency]) -> Table:
    table = Table(
        *("operator", "type", "shape", "rows", "time", "GFLOP/s", "of peak", "GB/s", "of memory", "±"),
        box=None,
        pad_edge=False,
    )
    for each in found:
        shape = each.shape
        sizes = [size for size in (shape.n_inner, shape.n_outer, shape.n_heads, shape.n_experts) if size]
        table.add_row(
            shape.op,
            shape.type,
            " x ".join(map(str, sizes)),
            str(shape.n_tokens),
            format_ns(each.time_ns),
            f"{each.flops_per_s / 1e9:.0f}",
            f"{each.compute_ratio:.0%}",
            f"{each.bytes_per_s / 1e9:.1f}",
            f"{each.memory_ratio:.0%}",
            f"{each.spread_ratio:.0%}",
        )
    return table
