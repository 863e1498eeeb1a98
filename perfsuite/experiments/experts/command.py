"""``perfsuite experts``: how experts are reused, as tables and a picture."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, check_picture, draw, fields_of, figure, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.run_options import check_least
from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import Axis, Line, LineRole, XYChart, XYPanel
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.trace.experts.cache import CacheHits, hits_by_size
from perfsuite.trace.experts.faults import FaultRelation, fault_relation
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.trace.recording import read_recording
from perfsuite.units import format_count, format_ns

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "experts",
        about="""
        Reads a recording with router choices. With operators in it as well, it shows how time and page faults depend on
        the reuse distance.
        """,
        examples={"perfsuite experts recording --cache=8 --plot=hits.svg": "hits of a cache of 8 experts a layer"},
        see=("docs/experts.md", "perfsuite trace"),
    )
    parser.add_argument("recording", type=Path, metavar="RUN", help="folder of 'perfsuite trace', or its file")
    parser.add_argument("--cache", type=int, metavar="N", help="show the hits of a cache of N experts a layer")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture (.svg)")
    add_json(parser)
    parser.set_defaults(run=_experts)


def _experts(options: argparse.Namespace) -> int:
    check_least(options, "cache")
    check_picture(options.plot)
    trace = read_recording(options.recording)
    report = expert_report(trace, name=options.recording.stem, n_cached=options.cache)
    if not report.layers:
        todo = "record them with --trace experts, of a model that has experts"
        raise PerfsuiteError(f"{options.recording}: holds no choices of experts; {todo}")
    if options.plot is not None:
        draw(expert_chart(report), options.plot)
    give(Answer(parts=lambda: _parts(report), plain=lambda: _plain(report)), options)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertReport:
    """What is known of a run's experts."""

    name: str
    layers: tuple[LayerReuse, ...]
    #: Of every size of a layer's cache, from 1 on.
    sizes: tuple[CacheHits, ...]
    #: Of the size that was asked for; None where none was.
    asked: CacheHits | None
    faults: FaultRelation


def expert_report(trace: EngineTrace, *, name: str, n_cached: int | None) -> ExpertReport:
    """Return what a trace says of experts, with a cache of so many a layer; without choices there are no layers.

    A cache with room for more than all experts hits as one that has room for all.
    """
    layers = expert_reuse(trace.experts, trace.n_experts)
    sizes, asked = hits_by_size(layers), None
    if sizes and n_cached is not None:
        asked = replace(sizes[min(n_cached, len(sizes)) - 1], n_cached=n_cached)
    return ExpertReport(name=name, layers=layers, sizes=sizes, asked=asked, faults=fault_relation(trace))


def _parts(report: ExpertReport) -> Iterator[Part]:
    yield from _lines(report)
    yield from ("", _layer_sheet(report.layers))
    yield from ("", _cache_sheet(report.sizes))
    if report.faults.bins:
        yield from ("", _fault_sheet(report.faults))


def _lines(report: ExpertReport) -> Iterator[str]:
    n_iterations = max((each.n_iterations for each in report.layers), default=0)
    yield f"{format_count(len(report.layers), 'layer')} of {report.layers[0].n_experts} experts, {n_iterations} steps"
    if (asked := report.asked) is not None:
        hits = f"{asked.lru_hit_ratio:.1%} by least recent use, {asked.optimum_hit_ratio:.1%} at best"
        yield f"a cache of {asked.n_cached} experts a layer hits {hits}"
    faults = report.faults
    if faults.n_major_faults is not None:
        yield f"{format_count(faults.n_major_faults, 'major fault')} within products with experts of single tokens"
    pairs = (
        ("reuse distance and time", faults.distance_to_time),
        ("reuse distance and major faults", faults.distance_to_faults),
        ("major faults and time", faults.faults_to_time),
    )
    for what, found in pairs:
        if found is not None:
            yield f"{what}: rank correlation {found.rho:+.2f} (p {found.p:.2g})"


def _layer_sheet(layers: Sequence[LayerReuse]) -> Sheet:
    rows = []
    for each in layers:
        busiest = max(each.uses(), key=lambda use: use.n_activations)
        distances = (figure("{:.1f}", value) for value in (each.mean_distance, each.mean_stack_distance))
        densities = (f"{ratio:.1%}" for ratio in (each.run_density_ratio, each.density_ratio))
        name = f"{busiest.expert} ({busiest.n_activations})"
        rows.append((each.layer, len(each.activations), *densities, *distances, name))
    names = (">layer", ">activations", ">experts used", ">a step", ">mean distance", ">stack distance", ">busiest")
    return Sheet(names, rows)


def _cache_sheet(sizes: Sequence[CacheHits]) -> Sheet:
    """Show the hits of caches whose size doubles, and of all experts."""
    shown = [each for each in sizes if each.n_cached & (each.n_cached - 1) == 0 or each is sizes[-1]]
    rows = [(each.n_cached, f"{each.lru_hit_ratio:.1%}", f"{each.optimum_hit_ratio:.1%}") for each in shown]
    return Sheet((">experts cached", ">hits (LRU)", ">hits (optimum)"), rows)


def _fault_sheet(faults: FaultRelation) -> Sheet:
    rows = []
    for each in faults.bins:
        first, last = each.least_distance, each.most_distance
        where = "first use" if first is None or last is None else f"{first:.1f} to {last:.1f}"
        rows.append((where, each.n, format_ns(each.mean_time_ns), figure("{:.1f}", each.mean_major_faults)))
    return Sheet((">mean distance", ">n", ">mean time", ">major faults"), rows)


def expert_chart(report: ExpertReport) -> XYChart:
    """Return the hit rate over the size of the cache, and time over reuse distance where that was measured."""
    half = report.sizes[len(report.sizes) // 2]
    panels = (_cache_panel(report.sizes), *_time_panels(report.faults))
    return XYChart(
        title=f"{report.name}: a cache of {half.n_cached} experts a layer hits {half.lru_hit_ratio:.0%}",
        note="Simulated from the routers' choices; the optimum knows the future",
        n_columns=len(panels),
        panels=panels,
    )


def _cache_panel(sizes: Sequence[CacheHits]) -> XYPanel:
    x = tuple(float(each.n_cached) for each in sizes)
    lru, optimum = (
        tuple(100.0 * getattr(each, name) for each in sizes) for name in ("lru_hit_ratio", "optimum_hit_ratio")
    )
    return XYPanel(
        x_axis=Axis(label="experts cached in each layer", least=0.0),
        y_axis=Axis(label="hits (%)", least=0.0, most=100.0),
        lines=(
            Line(label="least recent use", x=x, y=lru),
            Line(label="optimum", x=x, y=optimum, role=LineRole.REFERENCE),
        ),
    )


def _time_panels(faults: FaultRelation) -> Iterator[XYPanel]:
    ends = [(each.least_distance, each.most_distance, each.mean_time_ns / 1e3) for each in faults.bins]
    points = [((first + last) / 2.0, time) for first, last, time in ends if first is not None and last is not None]
    if len(points) > 1:
        x, y = zip(*points, strict=True)
        yield XYPanel(
            x_axis=Axis(label="mean reuse distance (steps)", least=0.0),
            y_axis=Axis(label="products with experts of a layer (µs)", least=0.0),
            lines=(Line(label="mean time", x=x, y=y),),
        )


_HITS = ("n_cached", "n_accesses", "lru_hit_ratio", "optimum_hit_ratio")


def _plain(report: ExpertReport) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "name": report.name,
        "layers": [_layer_plain(each) for each in report.layers],
        "caches": [fields_of(each, *_HITS) for each in report.sizes],
        "cache": report.asked and fields_of(report.asked, *_HITS),
        "faults": _faults_plain(report.faults),
    }


def _layer_plain(layer: LayerReuse) -> dict[str, Any]:
    counts = ("layer", "n_experts", "n_used", "n_iterations")
    reuse = ("density_ratio", "run_density_ratio", "mean_distance", "mean_stack_distance")
    return {
        **fields_of(layer, *counts, *reuse),
        "n_activations": len(layer.activations),
        "experts": [fields_of(use, "expert", "n_activations", "mean_distance") for use in layer.uses()],
    }


def _faults_plain(faults: FaultRelation) -> dict[str, Any]:
    correlations = fields_of(faults, "distance_to_time", "distance_to_faults", "faults_to_time")
    of_bin = ("least_distance", "most_distance", "n", "mean_time_ns", "mean_major_faults")
    return {
        "n_evaluations": len(faults.evaluations),
        "n_major_faults": faults.n_major_faults,
        **{name: found and fields_of(found, "rho", "p") for name, found in correlations.items()},
        "bins": [fields_of(each, *of_bin) for each in faults.bins],
    }
