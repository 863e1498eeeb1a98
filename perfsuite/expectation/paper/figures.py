"""The paper's pictures as plain series: each figure a pure function that returns a chart."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from statistics import fmean
from typing import TypeVar

import numpy as np

from perfsuite.expectation.operators.tiling import tile_efficiency
from perfsuite.expectation.paper.operators import dequantize_weights, find_format, linear, lora_update
from perfsuite.expectation.paper.passes import OperatorKey, RopeReach, decode_pass, prefill_pass
from perfsuite.expectation.paper.tables import GIB, GIGA, N_GENERATED, PROMPTS, RANKS, TERA, llama2_7b
from perfsuite.expectation.requests.analytic import forecast_grid
from perfsuite.records.chart import (
    Axis,
    BarLayer,
    BarPanel,
    HeatMap,
    HeatPanel,
    Line,
    LineRole,
    Numbers,
    Scale,
    StackedBars,
    XYChart,
    XYPanel,
)
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.variant import Variant, find_variant, variant_names

#: *Source*: LIFE, Fig. 4 and 6.
N_PROMPT = 4096
VARIANTS = ("bf16-int4", "bf16-int4-kv4")


def long_prompt(variant: str, chunk: int | None = None) -> OpCost:
    """Cost the prompt, at once or in chunks."""
    return prefill_pass(llama2_7b(), find_variant(variant), N_PROMPT, chunk=chunk).total


Shown = TypeVar("Shown", bound=Hashable)


def variants_by(shown: Callable[[Variant], Shown]) -> tuple[tuple[str, Shown], ...]:
    """Group LIFE's variants by what is shown of them: their names, joined, with that."""
    names: dict[Shown, list[str]] = {}
    for name in variant_names():
        names.setdefault(shown(find_variant(name)), []).append(name)
    return tuple((", ".join(group), value) for value, group in names.items())


def percent(ratio: float, digits: int = 0) -> str:
    """Write a ratio as a percentage."""
    return f"{100.0 * ratio:.{digits}f} %"


_OTHER = "all other"
#: A kind of operator that has no greater part in any bar is shown with the others.
_LEAST_SHARE_RATIO = 0.005

#: Operations of a kind of operator, over the prompts.
_Kinds = tuple[tuple[str, Numbers], ...]


def figure_3() -> StackedBars:
    """Operations of Llama2-7B's prefill; a bar adds up to the operations of the pass.

    Variants with the same operations share a panel. *Source*: LIFE, Fig. 3.
    """
    variants = variants_by(_operations)
    told = _told(variants)
    panels = tuple(BarPanel(title=names, layers=_layers(kinds, told)) for names, kinds in variants)
    shortest, longest = (_share(panels[0], OperatorKey.GEMM.value, place) for place in (0, -1))
    return StackedBars(
        title=(
            f"Attention takes over: with {variant_names()[0]}, products with weights are {percent(shortest, 1)} of the "
            f"operations at {PROMPTS[0]} tokens, {percent(longest, 1)} at {PROMPTS[-1]}"
        ),
        note=f"Llama2-7B, prefill under the paper's conventions; above the bars all operations, in TOPs; all "
        f"other: under {percent(_LEAST_SHARE_RATIO, 1)} each. LIFE, Fig. 3",
        n_columns=2,
        x_label="prompt (tokens)",
        height_label="operations",
        categories=tuple(map(str, PROMPTS)),
        panels=panels,
    )


def _operations(variant: Variant) -> _Kinds:
    passes = [prefill_pass(llama2_7b(), variant, prompt).by_operator for prompt in PROMPTS]
    return tuple((kind, tuple(cost[kind].flops / TERA for cost in passes)) for kind in passes[0])


def _told(variants: Sequence[tuple[str, _Kinds]]) -> tuple[str, ...]:
    """Name the kinds of operators with a part to be seen in any bar, in order of use."""
    largest: dict[str, float] = {}
    for _, kinds in variants:
        totals = [sum(heights) for heights in zip(*(heights for _, heights in kinds), strict=True)]
        for kind, heights in kinds:
            shares = (height / total for height, total in zip(heights, totals, strict=True))
            largest[kind] = max(largest.get(kind, 0.0), *shares)
    return tuple(kind.value for kind in OperatorKey if largest.get(kind.value, 0.0) >= _LEAST_SHARE_RATIO)


def _layers(kinds: _Kinds, told: tuple[str, ...]) -> tuple[BarLayer, ...]:
    by_kind = dict(kinds)
    layers = [BarLayer(label=kind, heights=by_kind.get(kind, (0.0,) * len(PROMPTS))) for kind in told]
    rest = [heights for kind, heights in kinds if kind not in told]
    return (*layers, BarLayer(label=_OTHER, heights=tuple(map(sum, zip(*rest, strict=True)))))


def _share(panel: BarPanel, label: str, place: int) -> float:
    heights = next(layer.heights for layer in panel.layers if layer.label == label)
    return heights[place] / panel.totals[place]


def balance_line(slope: float, x: Numbers, y: Numbers) -> Line | None:
    """Draw y = slope x across the grid, from where it enters to where it leaves; None where it misses the grid.

    Both times are inversely proportional to a coordinate each, so they are equal along a line through the origin.
    """
    first, last = max(x[0], y[0] / slope), min(x[-1], y[-1] / slope)
    if first >= last:
        return None
    return Line(label="t_c = t_m", x=(first, last), y=(slope * first, slope * last))


#: Peaks in 1e12 operations/s, bandwidths in 1e9 bytes/s, and the efficiencies of compute and memory in percent.
_TOPS = tuple(float(tops) for tops in range(10, 101, 10))
_GB_PER_S = tuple(float(gigabytes) for gigabytes in range(10, 101, 10))
_EFFICIENCIES_PCT = ((100, 100), (50, 80))


def figure_4() -> HeatMap:
    """t_c/t_m of the prefill over 10 to 100 TOPS and 10 to 100 GB/s, without dispatches.

    *Source*: LIFE, Fig. 4.
    """
    panels = tuple(_bound_panel(variant, *efficiencies) for efficiencies in _EFFICIENCIES_PCT for variant in VARIANTS)
    bounds = [_compute_bound_ratio(panel) for panel in panels]
    return HeatMap(
        title=(
            f"Compute bounds {percent(bounds[0])} of the devices with {VARIANTS[0]}, {percent(bounds[1])} with "
            f"{VARIANTS[1]}; at the lower efficiencies {percent(bounds[2])} and {percent(bounds[3])}"
        ),
        note=f"Llama2-7B, prefill of {N_PROMPT} tokens under the paper's conventions; line: t_c = t_m. LIFE, Fig. 4",
        n_columns=len(VARIANTS),
        x_axis=Axis(label="bandwidth (GB/s)"),
        y_axis=Axis(label="peak (TOPS)"),
        colour_axis=Axis(label="t_c / t_m, above 1 compute bounds"),
        panels=panels,
    )


def _bound_panel(variant: str, compute_pct: int, memory_pct: int) -> HeatPanel:
    cost = long_prompt(variant)
    times = forecast_grid(
        cost,
        peak_flops_per_s=TERA * np.array(_TOPS)[:, np.newaxis],
        bandwidth_bytes_per_s=GIGA * np.array(_GB_PER_S),
        compute_efficiency_ratio=compute_pct / 100.0,
        memory_efficiency_ratio=memory_pct / 100.0,
    )
    slope = cost.flops / compute_pct / TERA / (cost.moved_bytes / memory_pct / GIGA)
    return HeatPanel(
        title=f"{variant}: {compute_pct} % of TOPS, {memory_pct} % of bandwidth",
        x=_GB_PER_S,
        y=_TOPS,
        values=tuple(tuple(map(float, row)) for row in times.ratio),
        boundary=balance_line(slope, _GB_PER_S, _TOPS),
    )


def _compute_bound_ratio(panel: HeatPanel) -> float:
    values = [value for row in panel.values for value in row]
    return sum(value > 1.0 for value in values) / len(values)


#: The device; the paper's caption has the two numbers the other way round.
_AT_TOPS = 30
_AT_GB_PER_S = 50
_GRID_PCT = tuple(float(percent) for percent in range(10, 101, 10))


def figure_5() -> HeatMap:
    """TTFT = max(t_c, t_m) over 10 to 100 % of 30 TOPS and of 50 GB/s, without dispatches.

    *Source*: LIFE, Fig. 5, on the prompt of Fig. 4.
    """
    panels = tuple(_ttft_panel(variant) for variant in VARIANTS)
    slowest, fastest = ([panel.values[place][place] for panel in panels] for place in (0, -1))
    return HeatMap(
        title=(
            f"The first token takes {fastest[0]:.1f} to {slowest[0]:.0f} s with {VARIANTS[0]}, {fastest[1]:.1f} to "
            f"{slowest[1]:.0f} s with {VARIANTS[1]}, by how much of the device is reached"
        ),
        note=f"Llama2-7B, prefill of {N_PROMPT} tokens under the paper's conventions, {_AT_TOPS} TOPS and "
        f"{_AT_GB_PER_S} GB/s; above the line compute bounds, below it memory. LIFE, Fig. 5",
        n_columns=len(VARIANTS),
        x_axis=Axis(label="compute efficiency (%)"),
        y_axis=Axis(label="memory efficiency (%)"),
        colour_axis=Axis(label="time to first token (s)"),
        panels=panels,
    )


def _ttft_panel(variant: str) -> HeatPanel:
    cost = long_prompt(variant)
    efficiencies = np.array(_GRID_PCT) / 100.0
    times = forecast_grid(
        cost,
        peak_flops_per_s=_AT_TOPS * TERA,
        bandwidth_bytes_per_s=_AT_GB_PER_S * GIGA,
        compute_efficiency_ratio=efficiencies,
        memory_efficiency_ratio=efficiencies[:, np.newaxis],
    )
    slope = cost.moved_bytes / (_AT_GB_PER_S * GIGA) / (cost.flops / (_AT_TOPS * TERA))
    return HeatPanel(
        title=variant,
        x=_GRID_PCT,
        y=_GRID_PCT,
        values=tuple(tuple(map(float, row)) for row in times.longer_s),
        boundary=balance_line(slope, _GRID_PCT, _GRID_PCT),
    )


_WIDTH = 4096
_WEIGHTS = find_format("int4")
#: From one token, as in decode, to the longest of the paper's prompts.
_ROWS = tuple(1 << exponent for exponent in range(PROMPTS[-1].bit_length()))
_MERGED = "merged or none"
_PROMPT_AXIS = Axis(label="prompt (tokens)", scale=Scale.LOG2)


def figure_9() -> XYChart:
    """Operations and bytes of a (m, 4096) x (4096, 4096) product with int4 weights and an inline adapter.

    An inline adapter costs (2r + 2)kn operations a call, whatever m; merged, none. *Source*: LIFE, Fig. 9 and Table 12.
    """
    bare = tuple(linear(m, _WIDTH, _WIDTH, weights=_WEIGHTS) + dequantize_weights(_WIDTH, _WIDTH) for m in _ROWS)
    adapted = {f"rank {rank}": tuple(cost + lora_update(_WIDTH, _WIDTH, rank) for cost in bare) for rank in RANKS}
    ratios = _against(bare, adapted, lambda cost: cost.flops)
    return XYChart(
        title=(
            f"An inline adapter of rank {RANKS[0]} to {RANKS[-1]} takes {ratios[0].y[0]:.0f} to {ratios[-1].y[0]:.0f} "
            f"times the operations for one token, at most {percent(ratios[-1].y[-1] - 1.0, 1)} more for {_ROWS[-1]}"
        ),
        note=f"One call of a product with {_WIDTH} x {_WIDTH} int4 weights and bf16 adapters. LIFE, Fig. 9",
        n_columns=3,
        panels=(
            XYPanel(
                title="operations",
                x_axis=_PROMPT_AXIS,
                y_axis=Axis(label="operations (GOPs)", scale=Scale.LOG10),
                lines=(
                    _over_prompts(_MERGED, [cost.flops / GIGA for cost in bare]),
                    *(_over_prompts(rank, [cost.flops / GIGA for cost in costs]) for rank, costs in adapted.items()),
                ),
            ),
            _ratio_panel("operations against merged", ratios, Scale.LOG10),
            _ratio_panel("bytes against merged", _against(bare, adapted, lambda cost: cost.moved_bytes), Scale.LINEAR),
        ),
    )


def _against(
    bare: tuple[OpCost, ...], adapted: dict[str, tuple[OpCost, ...]], counted: Callable[[OpCost], int]
) -> tuple[Line, ...]:
    return tuple(
        _over_prompts(rank, [counted(cost) / counted(alone) for cost, alone in zip(costs, bare, strict=True)])
        for rank, costs in adapted.items()
    )


def _ratio_panel(title: str, lines: tuple[Line, ...], scale: Scale) -> XYPanel:
    ones = _over_prompts(_MERGED, [1.0] * len(_ROWS))
    y_axis = Axis(label="inline / merged", scale=scale)
    return XYPanel(title=title, x_axis=_PROMPT_AXIS, y_axis=y_axis, lines=(ones, *lines))


def _over_prompts(label: str, y: list[float]) -> Line:
    return Line(label=label, x=_ROWS, y=tuple(y))


_TILES = (64, 128, 256)
_LENGTHS = tuple(range(1, 4097))

_CONTEXT_AXIS = Axis(label="context (tokens)", least=0.0, most=float(_LENGTHS[-1]))
_SHARE_AXIS = Axis(label="useful share", least=0.0, most=1.05)


def figure_8() -> XYChart:
    """L / (ceil(L/t) t) over contexts of 1 to 4096 tokens, for tiles of 64, 128 and 256, each with its mean.

    *Source*: LIFE, Fig. 8.
    """
    efficiencies = {tile: tuple(tile_efficiency(length, tile) for length in _LENGTHS) for tile in _TILES}
    means = {tile: fmean(of_tile) for tile, of_tile in efficiencies.items()}
    losses = ", ".join(f"{percent(1.0 - mean, 1)} at {tile}" for tile, mean in means.items())
    return XYChart(
        title=f"Padding to a tile wastes less the longer the context; on average over 1 to {_LENGTHS[-1]}: {losses}",
        note="Batched products of decode, whose growing dimension L is padded to the tile t: L / (ceil(L/t) t). "
        "LIFE, Fig. 8",
        panels=tuple(
            XYPanel(
                title=f"tile {tile}, mean {means[tile]:.3f}",
                x_axis=_CONTEXT_AXIS,
                y_axis=_SHARE_AXIS,
                lines=(
                    Line(label="useful share of the product", x=_LENGTHS, y=efficiencies[tile]),
                    Line(label="mean", x=_LENGTHS[:: len(_LENGTHS) - 1], y=(means[tile],) * 2, role=LineRole.REFERENCE),
                ),
            )
            for tile in _TILES
        ),
    )


#: A short, a middling and a long prompt before the generation.
_PROMPTS = (128, 2048, 16384)

_TOKEN_AXIS = Axis(label="token of the answer")
_TRAFFIC_AXIS = Axis(label="traffic of the step (GiB)", least=0.0)
_ANSWER = tuple(float(token) for token in range(1, N_GENERATED + 1))


def figure_7() -> XYChart:
    """GiB of each of 2000 steps by variant, after three prompts, with RoPE for the token alone as in Table 9.

    Variants that move the same share a line. *Source*: LIFE, Fig. 7.
    """
    panels = tuple(_traffic_panel(prompt) for prompt in _PROMPTS)
    growths = {line.label: line.y[-1] / line.y[0] - 1.0 for line in panels[1].lines}
    least, most = (chosen(growths, key=growths.__getitem__) for chosen in (min, max))
    return XYChart(
        title=(
            f"{N_GENERATED} tokens behind a prompt of {_PROMPTS[1]}, a step moves {percent(growths[most])} more with "
            f"{most}, {percent(growths[least])} more with {least}"
        ),
        note="Llama2-7B, decode under the paper's conventions; read and written. LIFE, Fig. 7 and Table 9",
        n_columns=len(panels),
        panels=panels,
    )


def _traffic_panel(prompt: int) -> XYPanel:
    lines = variants_by(lambda variant: _gib(variant, prompt))
    return XYPanel(
        title=f"prompt of {prompt} tokens",
        x_axis=_TOKEN_AXIS,
        y_axis=_TRAFFIC_AXIS,
        lines=tuple(Line(label=names, x=_ANSWER, y=gib) for names, gib in lines),
    )


def _gib(variant: Variant, prompt: int) -> Numbers:
    """Return the GiB of every step; each is affine in the positions before it, so that two give all of them exactly."""
    first, second = (
        decode_pass(llama2_7b(), variant, prompt + step, rope=RopeReach.PER_TOKEN).total.moved_bytes for step in (0, 1)
    )
    return tuple((first + step * (second - first)) / GIB for step in range(N_GENERATED))


#: Chunks of 64 tokens to the whole prompt.
CHUNKS = tuple(1 << exponent for exponent in range(6, N_PROMPT.bit_length()))

_CHUNK_AXIS = Axis(label="chunk (tokens)", scale=Scale.LOG2)
_RATIO_AXIS = Axis(label="in chunks / at once", scale=Scale.LOG2)


def figure_6() -> XYChart:
    """Ratios of dispatches, bytes and operations, over chunks of 64 to 4096 tokens.

    A chunk attends to those before it and to itself, not to those behind it: operations fall below 1. *Source*: LIFE,
    Fig. 6.
    """
    panels = tuple(_chunk_panel(variant) for variant in VARIANTS)
    traffic = [panel.lines[1].y[0] for panel in panels]
    saved = max(1.0 - least for panel in panels for least in panel.lines[2].y)
    return XYChart(
        title=(
            f"Chunks of {CHUNKS[0]} tokens take {panels[0].lines[0].y[0]:.0f} times the dispatches and "
            f"{min(traffic):.1f} to {max(traffic):.1f} times the traffic, and save at most {percent(saved)} of the "
            "operations"
        ),
        note=f"Llama2-7B, prefill of {N_PROMPT} tokens under the paper's conventions. LIFE, Fig. 6",
        n_columns=len(VARIANTS),
        panels=panels,
    )


def _chunk_panel(variant: str) -> XYPanel:
    whole = long_prompt(variant)
    pieces = [long_prompt(variant, chunk) for chunk in CHUNKS]
    return XYPanel(
        title=variant,
        x_axis=_CHUNK_AXIS,
        y_axis=_RATIO_AXIS,
        lines=(
            _ratio_line("dispatches", [cost.n_dispatches for cost in pieces], whole.n_dispatches),
            _ratio_line("bytes read and written", [cost.moved_bytes for cost in pieces], whole.moved_bytes),
            _ratio_line("operations", [cost.flops for cost in pieces], whole.flops),
        ),
    )


def _ratio_line(label: str, counts: list[int], whole: int) -> Line:
    return Line(label=label, x=CHUNKS, y=tuple(count / whole for count in counts))
