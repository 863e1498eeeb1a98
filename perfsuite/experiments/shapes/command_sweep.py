"""``perfsuite sweep``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from perfsuite.cli.answer import Answer, Part, Sheet, check_picture, draw, figure, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.progress import progress, remarks
from perfsuite.cli.run_options import add_answer, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.command_shape_options import (
    add_device_options,
    add_size_options,
    add_subject_options,
    check_counts,
    check_shape_bytes,
    chosen_tiling,
    opened_meters,
    size_texts,
)
from perfsuite.experiments.shapes.sweep_findings import quantile_name, sweep_finding, sweep_remarks
from perfsuite.experiments.shapes.sweep_record import (
    Jump,
    ShapeSweep,
    SweepSetting,
    TileSteps,
    expected_sweep,
    to_plain,
    write_sweep,
)
from perfsuite.experiments.shapes.sweep_sizes import DEFAULTS_TOLD, all_sizes, size_option, size_range, swept_dimension
from perfsuite.units import format_change, format_count, format_ns
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape, block_values
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject


def sweep_setting(options: argparse.Namespace, *, n_compute_units: int) -> SweepSetting:
    """Return what options ask for, on so many compute units; `ShapeError` where they contradict the operation."""
    operation, tiling = Operation(options.operation), chosen_tiling(options)
    texts, type, subject = size_texts(options, operation), options.type, Subject(options.subject)
    asked = {name: size_range(size_option(name), text) for name, text in texts.items()}
    swept, tile = swept_dimension(operation, texts), None if tiling is None else tiling.tile
    sizes = all_sizes(operation, asked, swept, type=type, tile=tile, n_compute_units=n_compute_units)
    inner, block = operation.inner_dimension, block_values(type)
    if wrong := [size for size in sizes[inner] if size % block]:
        raise ShapeError(
            f"{size_option(inner)}: {type} stores rows in blocks of {block}, and {wrong[0]} is not a multiple of that; "
            f"expected such as {block} or {block}:{16 * block}:{block}"
        )
    first = OperationShape.of_sizes(operation, type, {name: each[0] for name, each in sizes.items()})
    shapes = (first.with_sizes(**{swept: size}) for size in sizes[swept])
    cases = tuple(ShapeCase(subject=subject, shape=shape, tiling=tiling) for shape in shapes)
    return SweepSetting(cases=cases, swept=swept)


#: The highest jumps that are told, and the best and worst sizes.
_MOST_JUMPS = 16
_MOST_EXTREMES = 3


def sweep_answer(sweep: ShapeSweep) -> Answer:
    """Return the steps, how well efficiency follows the tile, and the best and worst sizes; as JSON every size."""
    return Answer(parts=lambda: _parts(sweep), plain=lambda: to_plain(sweep))


def _parts(sweep: ShapeSweep) -> Iterator[Part]:
    where = f" by {sweep.subject} on {sweep.device}" if sweep.device else ""
    yield f"{sweep.title}{where}"
    if sweep.jumps:
        kept = f"; the {_MOST_JUMPS} highest of {len(sweep.jumps)}" if len(sweep.jumps) > _MOST_JUMPS else ""
        yield f"\nsteps, found from the times alone{kept}"
        yield _steps(sweep)
    if sweep.n_rounds:
        has_whole = any(point.expected_efficiency_ratio == 1.0 for point in sweep.measured)
        best = "its whole tiles" if has_whole else "all sizes"
        rounds = f"{quantile_name(sweep)} of {format_count(sweep.n_rounds, 'round')}"
        yield f"\nsizes by efficiency: useful FLOP/s over the best of {best}; {rounds}"
        yield _extremes(sweep)
    yield ""
    yield from _figures(sweep)
    yield from sweep_remarks(sweep)
    yield sweep_finding(sweep)


def _steps(sweep: ShapeSweep) -> Sheet:
    highest = sorted(sweep.jumps, key=lambda jump: -abs(jump.height_ns))[:_MOST_JUMPS]
    rows = [
        (
            *(jump.size, format_ns(jump.height_ns), format_change(1.0 + jump.height_ratio)),
            _place_text(jump, sweep.tile_steps),
        )
        for jump in sorted(highest, key=lambda jump: jump.size)
    ]
    return Sheet((f"behind {sweep.swept}", ">height", ">", ""), rows)


def _place_text(jump: Jump, steps: TileSteps | None) -> str:
    if steps is None:
        return ""
    is_found = any(jump.size <= each < jump.next_size for each in steps.found)
    return f"a multiple of {steps.step}" if is_found and jump.height_ns > 0.0 else f"no multiple of {steps.step}"


def _extremes(sweep: ShapeSweep) -> Sheet:
    ranked = sorted(sweep.measured, key=lambda point: -(point.efficiency_ratio or 0.0))
    n_each = min(_MOST_EXTREMES, len(ranked) // 2)
    named = [
        *(("best", each) for each in ranked[:n_each]),
        *(("worst", each) for each in ranked[len(ranked) - n_each :]),
    ]
    rows = [
        (
            *(name, point.size, format_ns(point.time_ns)),
            f"{format_ns(point.lower_ns)} to {format_ns(point.upper_ns)}",
            *(figure("{:.3f}", ratio) for ratio in (point.efficiency_ratio, point.expected_efficiency_ratio)),
        )
        for name, point in named
    ]
    return Sheet(("", f">{sweep.swept}", ">time", ">95 % interval", ">efficiency", ">model"), rows)


def _figures(sweep: ShapeSweep) -> Iterator[str]:
    if sweep.rank_correlation is not None:
        ratio = sweep.time_rank_correlation  # times agree for anything that grows
        times = "" if ratio is None else f"; {ratio:.3f} of times, where a straight line comes near 1 as well"
        yield f"rank correlation with the model: {sweep.rank_correlation:.3f} of efficiencies{times}"
    means = {"measured": sweep.mean_efficiency_ratio, "model": sweep.expected_mean_efficiency_ratio}
    told = ", ".join(f"{ratio:.3f} {name}" for name, ratio in means.items() if ratio is not None)
    if told:
        yield f"mean efficiency: {told}"


_DEFAULT_ROUNDS = 15

_ABOUT = f"""
Finds steps in the times, and compares them with padding to whole tiles (Spearman's rank correlation). C[b, m, n] = sum
over k of A[b, m, k] B[b, n, k]; B are weights or keys.

{DEFAULTS_TOLD}
"""

_EXAMPLES = {
    "perfsuite sweep bmm --n=1:512 --m=1 --k=128 --tile=64 --plot=sweep.svg": "the steps of a tile of 64",
    "perfsuite sweep gemv --n=8:2048:8 --subject=ggml-cpu --type=q8_0 --csv=sweep.csv": "ggml's own operator",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "sweep",
        about=_ABOUT,
        examples=_EXAMPLES,
        exits={1: "a size is wrong, or could not be measured"},
        see=("docs/shapes.md", "perfsuite policy"),
    )
    parser.add_argument("operation", choices=[each.value for each in Operation], help="what to compute")
    add_device_options(parser)
    add_subject_options(parser)
    add_size_options(parser)
    effort = effort_group(parser)
    text = f"samples of each size (default {_DEFAULT_ROUNDS})"
    effort.add_argument("--rounds", type=int, default=_DEFAULT_ROUNDS, metavar="N", help=text)
    effort.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the order (default 0)")
    effort.add_argument("--no-verify", action="store_true", help="do not compare outputs with NumPy")
    effort.add_argument("--expected-only", action="store_true", help="measure nothing, show the model")
    answer = add_answer(parser)
    answer.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg)")
    answer.add_argument("-o", "--output", type=Path, metavar="FILE", help="write JSON into this file")
    answer.add_argument("--csv", type=Path, metavar="FILE", help="write one row for each size")
    parser.set_defaults(run=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    setting = _checked(options)
    sweep = expected_sweep(setting) if options.expected_only else _measured(options)
    _write(sweep, options)
    give(sweep_answer(sweep), options)
    return 1 if any(point.is_correct is False or point.missing is not None for point in sweep.points) else 0


def _checked(options: argparse.Namespace) -> SweepSetting:
    check_counts(options, "threads", "rounds")
    find_profile(options.device)
    check_picture(options.plot)
    setting = sweep_setting(options, n_compute_units=1)
    if options.expected_only and setting.step is None:
        raise ShapeError(f"--expected-only: {options.subject} names no tile, and so has no model; leave it out")
    if not options.expected_only:
        check_shape_bytes((case.shape for case in setting.cases), verifies=not options.no_verify)
    return setting


def _measured(options: argparse.Namespace) -> ShapeSweep:
    from perfsuite.experiments.shapes.sweep import measure_sweep
    from perfsuite.experiments.shapes.sweep_analysis import analysed_sweep

    with (
        taken_device(find_profile(options.device), "sweep", options) as taken,
        opened_meters(options, Subject(options.subject), taken.board) as meters,
        progress("sweep", options) as told,
    ):
        meter = meters.resident()
        setting = sweep_setting(options, n_compute_units=meter.description.n_compute_units)
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
        from perfsuite.experiments.shapes.sweep_findings import shape_sweep_chart

        draw(shape_sweep_chart(sweep), options.plot)
        remarks("sweep", options).remark(f"{options.plot}: drawn")
    if options.csv is not None:
        from perfsuite.experiments.shapes.sweep_record import write_sweep_csv

        write_sweep_csv(sweep, options.csv)
    if options.output is not None:
        write_sweep(sweep, options.output)
