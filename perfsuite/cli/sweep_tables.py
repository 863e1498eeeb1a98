"""What ``perfsuite sweep`` prints for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Column, Table

from perfsuite.cli.commands import show
from perfsuite.records.shape_sweep import Jump, ShapeSweep, SweepPoint, TileSteps
from perfsuite.report.shape_sweep_findings import quantile_name, sweep_finding, sweep_remarks
from perfsuite.units import format_change, format_count, format_ns

#: The highest jumps that are told, and the best and worst sizes.
_MOST_JUMPS = 16
_MOST_EXTREMES = 3


def show_sweep(sweep: ShapeSweep) -> None:
    """Print the steps, how well efficiency follows the tile, and the best and worst sizes."""
    where = f" by {sweep.subject} on {sweep.device}" if sweep.device else ""
    print(f"{sweep.title}{where}")
    if sweep.jumps:
        print(f"\nsteps, found from the times alone{_kept_text(sweep.jumps)}")
        show(_steps(sweep))
    if sweep.n_rounds:
        print(f"\nsizes by efficiency: useful FLOP/s over the best of {_best_of(sweep)}; {_rounds_text(sweep)}")
        show(_extremes(sweep))
    print()
    for line in _figures(sweep):
        print(line)
    for remark in sweep_remarks(sweep):
        print(remark)
    print(sweep_finding(sweep))


def _kept_text(jumps: Sequence[Jump]) -> str:
    return f"; the {_MOST_JUMPS} highest of {len(jumps)}" if len(jumps) > _MOST_JUMPS else ""


def _steps(sweep: ShapeSweep) -> Table:
    highest = sorted(sweep.jumps, key=lambda jump: -abs(jump.height_ns))[:_MOST_JUMPS]
    table = Table(f"behind {sweep.swept}", Column("height", justify="right"), Column("", justify="right"), "")
    table.box, table.pad_edge = None, False
    for jump in sorted(highest, key=lambda jump: jump.size):
        cells = (format_ns(jump.height_ns), format_change(1.0 + jump.height_ratio))
        table.add_row(str(jump.size), *cells, _place_text(jump, sweep.tile_steps))
    return table


def _place_text(jump: Jump, steps: TileSteps | None) -> str:
    if steps is None:
        return ""
    is_found = any(jump.size <= each < jump.next_size for each in steps.found)
    return f"a multiple of {steps.step}" if is_found and jump.height_ns > 0.0 else f"no multiple of {steps.step}"


def _extremes(sweep: ShapeSweep) -> Table:
    ranked = sorted(sweep.measured, key=lambda point: -(point.efficiency_ratio or 0.0))
    n_each = min(_MOST_EXTREMES, len(ranked) // 2)
    numbers = [Column(name, justify="right") for name in (sweep.swept, "time", "95 % interval", "efficiency", "model")]
    table = Table("", *numbers, box=None, pad_edge=False)
    for name, points in (("best", ranked[:n_each]), ("worst", ranked[len(ranked) - n_each :])):
        for point in points:
            table.add_row(name, *_cells(point))
    return table


def _cells(point: SweepPoint) -> tuple[str, ...]:
    interval = f"{format_ns(point.lower_ns)} to {format_ns(point.upper_ns)}"
    ratios = (point.efficiency_ratio, point.expected_efficiency_ratio)
    return (str(point.size), format_ns(point.time_ns), interval, *map(_ratio_text, ratios))


def _figures(sweep: ShapeSweep) -> Iterator[str]:
    if sweep.rank_correlation is not None:
        yield f"rank correlation with the model: {sweep.rank_correlation:.3f} of efficiencies{_times_text(sweep)}"
    means = {"measured": sweep.mean_efficiency_ratio, "model": sweep.expected_mean_efficiency_ratio}
    told = ", ".join(f"{_ratio_text(ratio)} {name}" for name, ratio in means.items() if ratio is not None)
    if told:
        yield f"mean efficiency: {told}"


def _best_of(sweep: ShapeSweep) -> str:
    has_whole = any(point.expected_efficiency_ratio == 1.0 for point in sweep.measured)
    return "its whole tiles" if has_whole else "all sizes"


def _rounds_text(sweep: ShapeSweep) -> str:
    return f"{quantile_name(sweep)} of {format_count(sweep.n_rounds, 'round')}"


def _times_text(sweep: ShapeSweep) -> str:
    """Say that times agree for anything that grows."""
    ratio = sweep.time_rank_correlation
    return "" if ratio is None else f"; {ratio:.3f} of times, where a straight line comes near 1 as well"


def _ratio_text(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"
