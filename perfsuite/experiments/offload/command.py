"""``perfsuite offload``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, check_picture, draw, fields_of, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.opencl_run import engine_run, named_weights, opencl_backend
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_shared, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.offload.sweep import OffloadPoint, OffloadSweep, Speed, measure_offload
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.records.chart import Axis, Line, XYChart, XYPanel
from perfsuite.records.events import Phase
from perfsuite.trace.placement import PROCESSOR_BACKEND, Placement, in_runs
from perfsuite.units import format_count

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

#: Splits that are told one by one; of more only their number.
_MOST_SPLITS = 4


def _plain(sweep: OffloadSweep, workload: LlamaWorkload, backend: OpenClBackend) -> dict[str, Any]:
    speeds = ("median_tokens_per_s", "least_tokens_per_s", "most_tokens_per_s", "samples_tokens_per_s")
    return {
        "schema": SCHEMA,
        "workload": workload.prefix,
        "engine": sweep.engine_version,
        "device": backend.fingerprint,
        "flash_attn": workload.settings.flash_attn,
        "n_gpu_layers_all": workload.weights.architecture.n_layers + 1,
        "points": [
            {
                "n_gpu_layers": each.n_gpu_layers,
                "speeds": [{"phase": phase, **fields_of(speed, *speeds)} for phase, speed in each.speeds.items()],
                "n_disturbed": each.n_disturbed,
                "placements": [_plain_placement(placed) for placed in each.placements],
            }
            for each in sweep.points
        ],
    }


def _plain_placement(placed: Placement) -> dict[str, Any]:
    return {
        **fields_of(placed, "phase", "splits"),
        "backends": [asdict(each) for each in placed.shares],
        "on_processor": [asdict(each) for each in placed.on_processor],
    }


def _parts(sweep: OffloadSweep, workload: LlamaWorkload, backend: OpenClBackend) -> Iterator[Part]:
    yield f"{workload.prefix} on {backend.device}; {sweep.engine_version}"
    if backend.compatibility_layer:
        yield "The device is a processor, which the backend takes through the suite's compatibility layer."
    yield "\nspeed by layers on the device: median of processes, slowest and fastest"
    rows = [
        (point.n_gpu_layers, *(_speed_text(point.speeds.get(phase)) for phase in sweep.phases), _processes_text(point))
        for point in sweep.points
    ]
    yield Sheet(("layers", *(f">{phase.value}" for phase in sweep.phases), "processes"), rows)
    if any(point.n_disturbed for point in sweep.points):
        yield "Left out are processes that had competition for the processors."
    for phase in sweep.phases:
        yield from _placement_parts(sweep.points, phase)
    yield from _refusal_parts(sweep.points)
    yield f"\n{_finding(sweep)}"


def _speed_text(speed: Speed | None) -> str:
    if speed is None:
        return "-"
    least, most = speed.least_tokens_per_s, speed.most_tokens_per_s
    return f"{speed.median_tokens_per_s:.4g}/s ({least:.4g} to {most:.4g})"


def _processes_text(point: OffloadPoint) -> str:
    n_kept = max((len(speed.samples_tokens_per_s) for speed in point.speeds.values()), default=0)
    return f"{n_kept}, {point.n_disturbed} left out" if point.n_disturbed else str(n_kept)


def _placement_parts(points: Sequence[OffloadPoint], phase: Phase) -> Iterator[Part]:
    rows = [
        (
            *(point.n_gpu_layers, len(each.splits), _order_text(each)),
            ", ".join(f"{share.backend} {share.n_operators}" for share in each.shares),
        )
        for point in points
        for each in point.placements
        if each.phase is phase
    ]
    if rows:
        yield f"\n{phase.value}: splits of a call, and operators by backend"
        yield Sheet(("layers", ">splits", "in order", "operators"), rows)


def _order_text(placed: Placement) -> str:
    if len(placed.splits) <= _MOST_SPLITS:
        return in_runs(placed.splits)
    return ", ".join(format_count(share.n_splits, "split") + f" on {share.backend}" for share in placed.shares)


def _refusal_parts(points: Sequence[OffloadPoint]) -> Iterator[Part]:
    """Tell the operators that the device refuses where most layers are on it: there nothing else keeps them back."""
    fullest = max(points, key=lambda point: point.n_gpu_layers)
    kept = [(placed.phase, each) for placed in fullest.placements for each in placed.on_processor]
    refused = [
        (phase.value, each.op, each.role, each.source_type, _shape(each.ne), each.n_nodes, ", ".join(each.refused_by))
        for phase, each in kept
        if each.refused_by
    ]
    layers = format_count(fullest.n_gpu_layers, "layer")
    if refused:
        yield f"\nrefused by the device, with {layers} on it"
        yield Sheet(("phase", "operator", "role", "type", "shape", ">nodes", "refused by"), refused)
    else:
        yield f"\nWith {layers} on the device it refuses none of the operators that are left on the processor."
    if others := dict.fromkeys(each.role for _, each in kept if not each.refused_by):
        yield f"Not refused, and on the processor for the place of their weights or inputs: {', '.join(others)}"


def _shape(ne: Sequence[int]) -> str:
    n_kept = max((place for place, n in enumerate(ne, 1) if n != 1), default=1)
    return " x ".join(map(str, ne[:n_kept]))


_X_AXIS = Axis(label="layers on the device")


def _chart(sweep: OffloadSweep, *, name: str, device: str) -> XYChart:
    points = sorted(sweep.points, key=lambda point: point.n_gpu_layers)
    return XYChart(
        title=_finding(sweep),
        note=f"{name} on {device}; median of fresh processes that take turns, and down to the slowest of them",
        n_columns=2,
        panels=(
            *(_speed_panel(points, phase) for phase in sweep.phases),
            _placement_panel(points, "splits of a call", lambda placed: len(placed.splits)),
            _placement_panel(
                points,
                "operators on the processor",
                lambda placed: sum(each.n_operators for each in placed.shares if each.backend == PROCESSOR_BACKEND),
            ),
        ),
    )


def _finding(sweep: OffloadSweep) -> str:
    told = []
    for phase in sweep.phases:
        point, speed = sweep.fastest(phase)
        where = f"{format_count(point.n_gpu_layers, 'layer')} on the device"
        told.append(f"{phase.value} is fastest with {where} ({speed.median_tokens_per_s:.4g} tokens/s)")
    return "; ".join(told)


def _speed_panel(points: list[OffloadPoint], phase: Phase) -> XYPanel:
    ran = [(point, point.speeds[phase]) for point in points if phase in point.speeds]
    line = Line(
        label=phase.value,
        x=tuple(float(point.n_gpu_layers) for point, _ in ran),
        y=tuple(speed.median_tokens_per_s for _, speed in ran),
        low_y=tuple(speed.least_tokens_per_s for _, speed in ran),
    )
    axis = Axis(label="speed (tokens/s)", least=0.0)
    return XYPanel(title=phase.value, x_axis=_X_AXIS, y_axis=axis, lines=(line,))


def _placement_panel(points: list[OffloadPoint], title: str, count: Callable[[Placement], int]) -> XYPanel:
    phases = [each.phase for each in points[0].placements]
    lines = tuple(
        Line(
            label=phase.value,
            x=tuple(float(point.n_gpu_layers) for point in points),
            y=tuple(float(count(each)) for point in points for each in point.placements if each.phase is phase),
        )
        for phase in phases
    )
    return XYPanel(title=title, x_axis=_X_AXIS, y_axis=Axis(label="number", least=0.0), lines=lines)


_DEFAULT_ROUNDS = 3


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "offload",
        about="""
        Also shows how llama.cpp splits its graph, and which operators the device refuses. 'make perf-opencl' builds the
        backend.
        """,
        examples={"perfsuite offload --gpu-layers=0,8,16,24,all --rounds=5 --plot=offload.svg": "a curve"},
        see=("docs/kernels.md",),
    )
    subject = add_subject(parser, "device", "model", "scenario=p16-g8", "threads")
    text = "backend of llama.cpp (default opencl)"
    subject.add_argument("--backend", choices=("opencl",), default="opencl", help=text)
    add_shared(subject, "opencl-platform", "flash-attn")
    effort = effort_group(parser)
    text = "numbers of layers, with the output layer, or all; by commas (default 0,all)"
    effort.add_argument("--gpu-layers", default="0,all", metavar="LIST", help=text)
    text = f"processes for each number (default {_DEFAULT_ROUNDS})"
    effort.add_argument("--rounds", type=int, default=_DEFAULT_ROUNDS, metavar="N", help=text)
    add_answer(parser).add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg)")
    parser.set_defaults(run=_offload)


def _offload(options: argparse.Namespace) -> int:
    check_least(options, "threads", "rounds")
    check_picture(options.plot)
    layers = _gpu_layers(options.gpu_layers, named_weights(options).architecture.n_layers + 1)
    profile, n_rounds = find_profile(options.device), options.rounds
    with taken_device(profile, "offload", options) as taken, progress("offload", options) as told:
        backend = opencl_backend(options, taken.board)
        run = engine_run(options, taken.board, backend)
        sweep = measure_offload(
            run.plan, backend, profile, taken.board, layers=layers, n_rounds=n_rounds, announce=told.step
        )
        if options.plot is not None:
            draw(_chart(sweep, name=run.workload.prefix, device=str(backend.device)), options.plot)
            told.remark(f"{options.plot}: drawn")
    parts, plain = (lambda: _parts(sweep, run.workload, backend)), (lambda: _plain(sweep, run.workload, backend))
    give(Answer(parts=parts, plain=plain), options)
    return 0


def _gpu_layers(text: str, n_all: int) -> tuple[int, ...]:
    """Return the numbers of layers that a list by commas names, each once and in its order; ``all`` is `n_all`.

    Raises `PerfsuiteError`: a part is no number of layers that the model has.
    """
    numbers = []
    for part in text.split(","):
        number = n_all if part.strip() == "all" else int(part) if re.fullmatch(r"\s*[0-9]{1,6}\s*", part) else -1
        if not 0 <= number <= n_all:
            raise PerfsuiteError(f"--gpu-layers={text}: '{part.strip()}' is not a number of 0 to {n_all} or 'all'")
        numbers.append(number)
    return tuple(dict.fromkeys(numbers))
