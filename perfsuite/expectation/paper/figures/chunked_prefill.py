"""Figure 6: what a prompt costs in chunks, against the same prompt at once."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from perfsuite.expectation.operators.matmul import dequantize_weights, linear, lora_update
from perfsuite.expectation.operators.number_format import find_format
from perfsuite.expectation.operators.tiling import tile_efficiency
from perfsuite.expectation.paper.decode_tables import N_GENERATED, RANKS
from perfsuite.expectation.paper.figures.wording import N_PROMPT, VARIANTS, long_prompt, percent, variants_by
from perfsuite.expectation.paper.passes import decode_pass
from perfsuite.expectation.paper.rotary import RopeReach
from perfsuite.expectation.paper.table_row import GIB, GIGA, PROMPTS, llama2_7b
from perfsuite.records.chart import Axis, Line, LineRole, Numbers, Scale, XYChart, XYPanel
from perfsuite.records.op_cost import OpCost
from perfsuite.workload.variant import Variant

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
