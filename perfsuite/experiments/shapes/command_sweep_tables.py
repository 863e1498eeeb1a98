"""What ``perfsuite sweep`` prints for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.cli.answer import Answer, Part, Sheet, figure
from perfsuite.experiments.shapes.sweep_findings import quantile_name, sweep_finding, sweep_remarks
from perfsuite.experiments.shapes.sweep_record import Jump, ShapeSweep, TileSteps, to_plain
from perfsuite.units import format_change, format_count, format_ns

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
        yield f"\nsteps, found from the times alone{_kept_text(sweep.jumps)}"
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


def _kept_text(jumps: Sequence[Jump]) -> str:
    return f"; the {_MOST_JUMPS} highest of {len(jumps)}" if len(jumps) > _MOST_JUMPS else ""


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
