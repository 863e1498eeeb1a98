"""``perfsuite calibrate``: measure single operators, so that forecasts know this device and this engine."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from rich.table import Table

from perfsuite.cli.command_help import add_command
from perfsuite.cli.commands import show
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_device, add_threads, effort_group, subject_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.address import ACCEPTED, asked_reach
from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.calibration_plan import N_ROUNDS, CalibrationPlan, standard_plan
from perfsuite.expectation.timing.efficiency import Efficiency, efficiency
from perfsuite.expectation.timing.engine_times import EngineTimes
from perfsuite.expectation.timing.grid import STANDARD_TYPES, typical_shapes
from perfsuite.measure.board.naming import board_name
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.calibrate import CalibrationRun, calibrate
from perfsuite.measure.calibration_store import store_calibration
from perfsuite.measure.ceiling_probe import best_of_board, measured_ceilings
from perfsuite.units import format_change, format_ns
from perfsuite.workload.ggml_types import GGML_TYPES

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands

_ABOUT = """
Single ggml operators of the installed llama.cpp are measured, each alone, and what forecasts need of them is stored.
Forecasts and the cases of 'pytest --device' use it from then on, as long as device, build and number of threads are
the same; with another build or after a change of the machine, calibrate again. A board is measured over the link, and
its calibration is kept here, for this very board.

It takes about three minutes on two cores. Let nothing else run: what disturbs it is in every later forecast.
"""

_EXAMPLES = {
    "perfsuite calibrate": "this machine, with as many threads as it has physical cores",
    "perfsuite calibrate --device=rubikpi": "a board, over the link of its profile",
    "perfsuite calibrate --device=host --threads=1 --type=q8_0": "for runs with one thread, of one type of weights",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "calibrate",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the calibration, in the cache of the user (the command names the file)",
        see=("docs/forecasting.md", "perfsuite held-out --help"),
    )
    subject = subject_group(parser)
    add_device(subject)
    text = f"reach the device in this way instead of its profile's: {ACCEPTED.removeprefix('accepted are ')}"
    subject.add_argument("--address", metavar="local|ssh:HOST|adb", help=text)
    add_threads(subject)
    types = ", ".join(STANDARD_TYPES)
    subject.add_argument("--type", action="append", metavar="TYPE", help=f"ggml type of weights (default: {types})")
    effort_group(parser).add_argument(
        "--rounds", type=int, default=N_ROUNDS, metavar="N", help=f"rounds over all operators (default {N_ROUNDS})"
    )
    add_answer(parser)
    parser.set_defaults(run=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    profile, types = find_profile(options.device), _types(options)
    _check(options)
    reach = asked_reach("--address", options.address, profile.reach)
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    plan = standard_plan(types, cache_dir / "models", n_rounds=options.rounds)
    with taken_device(profile, "calibrate", options, reach=reach) as taken:
        run = _run(options, profile, plan, taken.board)
        with progress("calibrate", options) as told:
            told.step("ceilings")
            measured = measured_ceilings(run.board, run.n_threads)
            calibration = calibrate(run, told.step)
            taken.refuse_untrusted()
            ceilings = best_of_board(run.board, measured, cache_dir)
            kept_by = board_name(run.board).kept_by
            path = store_calibration(calibration, run.engine.build_id, cache_dir, board=kept_by)
            told.remark(f"stored in {path}")
    _tell(calibration, ceilings, as_json=options.json)
    return 0


def _check(options: argparse.Namespace) -> None:
    for name in ("rounds", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PerfsuiteError(f"--{name}={value}: expected 1 or more")


def _run(options: argparse.Namespace, profile: Profile, plan: CalibrationPlan, board: Board) -> CalibrationRun:
    facts = board.facts()
    n_threads = options.threads or facts.default_threads
    return CalibrationRun(board=board, engine=facts.engine, profile=profile, n_threads=n_threads, plan=plan)


def _types(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(_weight_type(name) for name in options.type or STANDARD_TYPES)


def _weight_type(name: str) -> str:
    kind = GGML_TYPES.get(name.upper())
    if kind is None or not kind.is_weight:
        accepted = ", ".join(each.name.lower() for each in GGML_TYPES.values() if each.is_weight)
        raise PerfsuiteError(f"--type={name}: no type of weights; accepted are {accepted}")
    return kind.name.lower()


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
