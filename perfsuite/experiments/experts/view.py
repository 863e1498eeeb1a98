"""How experts are reused, as tables and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Column, Table

from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import Axis, Line, LineRole, XYChart, XYPanel
from perfsuite.records.codec import plain_fields
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.trace.experts.cache import CacheHits, cache_hits, hits_by_size
from perfsuite.trace.experts.faults import FaultRelation, fault_relation
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.units import format_count, format_ns


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
    """Return what a trace says of experts, with a cache of so many a layer; without choices there are no layers."""
    layers = expert_reuse(trace.experts, trace.n_experts)
    return ExpertReport(
        name=name,
        layers=layers,
        sizes=hits_by_size(layers),
        asked=cache_hits(layers, n_cached) if layers and n_cached is not None else None,
        faults=fault_relation(trace),
    )


def expert_lines(report: ExpertReport) -> Iterator[str]:
    """Say what was recorded, and how the cache that was asked for does."""
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


def layer_table(layers: Sequence[LayerReuse]) -> Table:
    """Show each layer's density and reuse."""
    table = _table("layer", "activations", "experts used", "a step", "mean distance", "stack distance", "busiest")
    for each in layers:
        busiest = max(each.uses(), key=lambda use: use.n_activations)
        table.add_row(
            *(
                str(each.layer),
                str(len(each.activations)),
                f"{each.run_density_ratio:.1%}",
                f"{each.density_ratio:.1%}",
            ),
            *map(_decimal, (each.mean_distance, each.mean_stack_distance)),
            f"{busiest.expert} ({busiest.n_activations})",
        )
    return table


def cache_table(sizes: Sequence[CacheHits]) -> Table:
    """Show the hits of caches whose size doubles, and of all experts."""
    table = _table("experts cached", "hits (LRU)", "hits (optimum)")
    for each in sizes:
        if each.n_cached & (each.n_cached - 1) == 0 or each is sizes[-1]:
            table.add_row(str(each.n_cached), f"{each.lru_hit_ratio:.1%}", f"{each.optimum_hit_ratio:.1%}")
    return table


def fault_table(faults: FaultRelation) -> Table:
    """Show time and faults by distance."""
    table = _table("mean distance", "n", "mean time", "major faults")
    for each in faults.bins:
        first, last = each.least_distance, each.most_distance
        where = "first use" if first is None or last is None else f"{first:.1f} to {last:.1f}"
        table.add_row(where, str(each.n), format_ns(each.mean_time_ns), _decimal(each.mean_major_faults))
    return table


def expert_chart(report: ExpertReport) -> XYChart:
    """Return the hit rate over the size of the cache, and time over reuse distance where that was measured.

    Raises PerfsuiteError where there are no experts.
    """
    if not report.sizes:
        raise PerfsuiteError(f"{report.name}: no choices of experts to draw")
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
    return XYPanel(
        x_axis=Axis(label="experts cached in each layer", least=0.0),
        y_axis=Axis(label="hits (%)", least=0.0, most=100.0),
        lines=(
            Line(label="least recent use", x=x, y=tuple(100.0 * each.lru_hit_ratio for each in sizes)),
            Line(
                label="optimum", x=x, y=tuple(100.0 * each.optimum_hit_ratio for each in sizes), role=LineRole.REFERENCE
            ),
        ),
    )


def _time_panels(faults: FaultRelation) -> Iterator[XYPanel]:
    bins = [each for each in faults.bins if each.least_distance is not None and each.most_distance is not None]
    if len(bins) > 1:
        middle = tuple(((each.least_distance or 0.0) + (each.most_distance or 0.0)) / 2.0 for each in bins)
        yield XYPanel(
            x_axis=Axis(label="mean reuse distance (steps)", least=0.0),
            y_axis=Axis(label="products with experts of a layer (µs)", least=0.0),
            lines=(Line(label="mean time", x=middle, y=tuple(each.mean_time_ns / 1e3 for each in bins)),),
        )


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _table(*names: str) -> Table:
    return Table(*(Column(name, justify="right") for name in names), box=None, pad_edge=False)


#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

_HITS = ("n_cached", "n_accesses", "lru_hit_ratio", "optimum_hit_ratio")


def plain_experts(report: ExpertReport) -> dict[str, Any]:
    """Return a run's experts as JSON values."""
    return {
        "schema": SCHEMA,
        "name": report.name,
        "layers": [_layer(each) for each in report.layers],
        "caches": [plain_fields(each, *_HITS) for each in report.sizes],
        "cache": report.asked and plain_fields(report.asked, *_HITS),
        "faults": _faults(report.faults),
    }


def _layer(layer: LayerReuse) -> dict[str, Any]:
    counts = ("layer", "n_experts", "n_used", "n_iterations")
    reuse = ("density_ratio", "run_density_ratio", "mean_distance", "mean_stack_distance")
    return {
        **plain_fields(layer, *counts, *reuse),
        "n_activations": len(layer.activations),
        "experts": [plain_fields(use, "expert", "n_activations", "mean_distance") for use in layer.uses()],
    }


def _faults(faults: FaultRelation) -> dict[str, Any]:
    correlations = plain_fields(faults, "distance_to_time", "distance_to_faults", "faults_to_time")
    of_bin = ("least_distance", "most_distance", "n", "mean_time_ns", "mean_major_faults")
    return {
        "n_evaluations": len(faults.evaluations),
        "n_major_faults": faults.n_major_faults,
        **{name: found and plain_fields(found, "rho", "p") for name, found in correlations.items()},
        "bins": [plain_fields(each, *of_bin) for each in faults.bins],
    }
