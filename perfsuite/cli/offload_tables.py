"""What ``perfsuite offload`` prints for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.cli.commands import show
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.records.events import Phase
from perfsuite.report.offload_chart import offload_finding
from perfsuite.trace.offload import SPEED_PHASES, OffloadPoint, OffloadSweep, Speed
from perfsuite.trace.placement import Placement, ProcessorOperator, in_runs
from perfsuite.units import format_count

#: Splits that are told one by one; of more only their number.
_MOST_SPLITS = 4


def show_sweep(sweep: OffloadSweep, workload: LlamaWorkload, backend: OpenClBackend) -> None:
    """Print speed by layers, where the operators of a call run, what is refused, and what it comes to."""
    print(f"{workload.prefix} on {backend.device}; {sweep.engine_version}")
    if backend.compatibility_layer:
        print("The device is a processor, which the backend takes through the suite's compatibility layer.")
    print("\nspeed by layers on the device: median of processes, slowest and fastest")
    show(_speeds(sweep.points))
    if any(point.n_disturbed for point in sweep.points):
        print("Left out are processes that had competition for the processors.")
    for phase in SPEED_PHASES:
        _show_placements(sweep.points, phase)
    _show_refusals(sweep.points)
    print(f"\n{offload_finding(sweep)}")


def _speeds(points: Sequence[OffloadPoint]) -> Table:
    columns = [Column(phase.value, justify="right", no_wrap=True) for phase in SPEED_PHASES]
    table = Table("layers", *columns, "processes", box=None, pad_edge=False)
    for point in points:
        speeds = (point.speed(phase) for phase in SPEED_PHASES)
        table.add_row(str(point.n_gpu_layers), *map(_speed_text, speeds), _processes_text(point))
    return table


def _speed_text(speed: Speed | None) -> str:
    if speed is None:
        return "-"
    least, most = speed.least_tokens_per_s, speed.most_tokens_per_s
    return f"{speed.median_tokens_per_s:.4g}/s ({least:.4g} to {most:.4g})"


def _processes_text(point: OffloadPoint) -> str:
    n_kept = max((len(speed.samples_tokens_per_s) for speed in point.speeds), default=0)
    return f"{n_kept}, {point.n_disturbed} left out" if point.n_disturbed else str(n_kept)


def _show_placements(points: Sequence[OffloadPoint], phase: Phase) -> None:
    placed = [(point, each) for point in points for each in point.placements if each.phase is phase]
    if not placed:
        return
    print(f"\n{phase.value}: splits of a call, and operators by backend")
    table = Table("layers", Column("splits", justify="right"), "in order", "operators", box=None)
    table.pad_edge = False
    for point, each in placed:
        operators = ", ".join(f"{share.backend} {share.n_operators}" for share in each.shares)
        table.add_row(str(point.n_gpu_layers), str(len(each.splits)), _order_text(each), escape(operators))
    show(table)


def _order_text(placed: Placement) -> str:
    if len(placed.splits) <= _MOST_SPLITS:
        return escape(in_runs(placed.splits))
    counts = (format_count(share.n_splits, "split") + f" on {share.backend}" for share in placed.shares)
    return escape(", ".join(counts))


def _show_refusals(points: Sequence[OffloadPoint]) -> None:
    """Show the operators that the device refuses where most layers are on it: there nothing else keeps them back."""
    fullest = max(points, key=lambda point: point.n_gpu_layers)
    refused = [(placed.phase, each) for placed in fullest.placements for each in placed.on_processor if each.refused_by]
    others = [each for placed in fullest.placements for each in placed.on_processor if not each.refused_by]
    layers = format_count(fullest.n_gpu_layers, "layer")
    if refused:
        print(f"\nrefused by the device, with {layers} on it")
        show(_refusals(refused))
    else:
        print(f"\nWith {layers} on the device it refuses none of the operators that are left on the processor.")
    if others:
        roles = ", ".join(dict.fromkeys(each.role for each in others))
        print(f"Not refused, and on the processor for the place of their weights or inputs: {roles}")


def _refusals(refused: Sequence[tuple[Phase, ProcessorOperator]]) -> Table:
    number = Column("nodes", justify="right")
    table = Table("phase", "operator", "role", "type", "shape", number, "refused by", box=None, pad_edge=False)
    for phase, each in refused:
        shape = " x ".join(str(n) for n in _without_ones(each.ne))
        cells = (each.op, each.role, each.source_type, shape)
        table.add_row(phase.value, *map(escape, cells), str(each.n_nodes), escape(", ".join(each.refused_by)))
    return table


def _without_ones(ne: Sequence[int]) -> Sequence[int]:
    n_kept = max((place for place, n in enumerate(ne, 1) if n != 1), default=1)
    return ne[:n_kept]
