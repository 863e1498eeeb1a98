"""``perfsuite sweep``: an operation at each size of a range, against what its tile makes of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import check_picture, draw, give
from perfsuite.cli.command_help import Commands, add_command, add_quiet
from perfsuite.cli.progress import progress, remarks
from perfsuite.cli.run_options import answer_group, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_local_profile
from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.command_shape_options import (
    add_device_options,
    add_size_options,
    add_subject_options,
    check_counts,
    check_outputs,
    check_shape_bytes,
    opened_meters,
)
from perfsuite.experiments.shapes.command_sweep_cases import SweepRequest, sweep_request
from perfsuite.experiments.shapes.command_sweep_tables import sweep_answer
from perfsuite.experiments.shapes.sweep_expected import expected_sweep
from perfsuite.experiments.shapes.sweep_record import ShapeSweep, write_sweep
from perfsuite.experiments.shapes.sweep_sizes import DEFAULTS_TOLD
from perfsuite.workload.shapes.operation import Operation

_DEFAULT_ROUNDS = 15
_STANDARD_OUT = "-"

_ABOUT = f"""
An operation is measured at each size of a range, in rounds of drawn orders, and compared with padding to whole tiles:
the steps are found from the times alone and held against the multiples of the tile, and the rank correlation (Spearman)
is that of measured and expected efficiency. C[b, m, n] = sum over k of A[b, m, k] B[b, n, k]; B are the weights or
keys.

{DEFAULTS_TOLD}

It judges no regression: 'pytest --device=host --perf-shapes=gemv' hunts for shapes that break what should hold.
"""

_EXAMPLES = {
    "perfsuite sweep bmm --n=1:512 --m=1 --k=128 --tile=64 --plot=sweep.png": "the steps of a tile of 64, drawn",
    "perfsuite sweep gemv --n=8:2048:8 --subject=ggml-cpu --type=q8_0 --csv=sweep.csv": "ggml's own operator",
    "perfsuite sweep gemm --n=1:512 --expected-only --json": "what the model expects, without measuring",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "sweep",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="the files of --json, --csv and --plot, and nothing without them",
        exits={1: "a size is wrong, or could not be measured"},
        see=("docs/sweeps.md", "perfsuite policy --help"),
    )
    parser.add_argument("operation", choices=[each.value for each in Operation], help="what is computed")
    add_device_options(parser)
    add_subject_options(parser)
    add_size_options(parser)
    effort = effort_group(parser)
    text = f"samples a size (default {_DEFAULT_ROUNDS})"
    effort.add_argument("--rounds", type=int, default=_DEFAULT_ROUNDS, metavar="N", help=text)
    effort.add_argument("--seed", type=int, default=0, metavar="N", help="draws the orders of the rounds (default 0)")
    effort.add_argument("--no-verify", action="store_true", help="do not compare the outputs with NumPy's")
    effort.add_argument("--expected-only", action="store_true", help="measure nothing, tell the model alone")
    answer = answer_group(parser)
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw the sweep as PNG or SVG")
    text = "write JSON; - or no file: print it alone"
    answer.add_argument("--json", nargs="?", const=_STANDARD_OUT, metavar="FILE", help=text)
    answer.add_argument("--csv", type=Path, metavar="FILE", help="write a row a size")
    add_quiet(answer)
    parser.set_defaults(run=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    request = _checked(options)
    sweep = expected_sweep(request.setting(n_compute_units=1)) if options.expected_only else _measured(options, request)
    _write(sweep, options)
    options.json = options.json == _STANDARD_OUT
    give(sweep_answer(sweep), options)
    return 1 if any(point.is_correct is False or point.missing is not None for point in sweep.points) else 0


def _checked(options: argparse.Namespace) -> SweepRequest:
    """Refuse what would end minutes of measuring in an error."""
    check_counts(options, "threads", "rounds")
    find_local_profile(options.device)
    check_picture(options.plot)
    check_outputs({"--plot": options.plot, "--csv": options.csv, "--json": _json_path(options)})
    request = sweep_request(options)
    if options.expected_only and request.tiling is None:
        raise ShapeError(f"--expected-only: {options.subject} names no tile, and so has no model; leave it out")
    setting = request.setting(n_compute_units=1)
    if not options.expected_only:
        check_shape_bytes((case.shape for case in setting.cases), verifies=not options.no_verify)
    return request


def _measured(options: argparse.Namespace, request: SweepRequest) -> ShapeSweep:
    from perfsuite.experiments.shapes.sweep import measure_sweep
    from perfsuite.experiments.shapes.sweep_analysis import analysed_sweep

    with (
        taken_device(find_local_profile(options.device), "sweep", options),
        opened_meters(options, request.subject) as meters,
        progress("sweep", options) as told,
    ):
        meter = meters.resident()
        setting = request.setting(meter.description.n_compute_units)
        check_shape_bytes((case.shape for case in setting.cases), verifies=not options.no_verify)
        swept = measure_sweep(
            meter,
            setting.cases,
            n_rounds=options.rounds,
            seed=options.seed,
            verifies=not options.no_verify,
            told=told.step,
        )
        return analysed_sweep(setting, swept, meter.description, n_rounds=options.rounds)


def _write(sweep: ShapeSweep, options: argparse.Namespace) -> None:
    if options.plot is not None:
        from perfsuite.experiments.shapes.sweep_chart import shape_sweep_chart

        draw(shape_sweep_chart(sweep), options.plot)
        remarks("sweep", options).remark(f"{options.plot}: drawn")
    if options.csv is not None:
        from perfsuite.experiments.shapes.sweep_csv import write_sweep_csv

        write_sweep_csv(sweep, options.csv)
    if (path := _json_path(options)) is not None:
        write_sweep(sweep, path)


def _json_path(options: argparse.Namespace) -> Path | None:
    return None if options.json in (None, _STANDARD_OUT) else Path(options.json)
