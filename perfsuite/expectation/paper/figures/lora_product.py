"""Figure 9: what an inline adapter adds to one matrix product, over prompts and ranks."""

from __future__ import annotations

from collections.abc import Callable

from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.matmul import dequantize_weights, linear, lora_update
from perfsuite.expectation.operators.number_format import find_format
from perfsuite.expectation.paper.decode_tables import RANKS
from perfsuite.expectation.paper.figures.wording import percent
from perfsuite.expectation.paper.table_row import GIGA, PROMPTS
from perfsuite.records.chart import Axis, Line, LineChart, LinePanel, Scale

_WIDTH = 4096
_WEIGHTS = find_format("int4")
#: From one token, as in decode, to the longest of the paper's prompts.
_ROWS = tuple(1 << exponent for exponent in range(PROMPTS[-1].bit_length()))
_MERGED = "merged or none"
_PROMPT_AXIS = Axis(label="prompt", unit="tokens", scale=Scale.LOG2)


def figure_9() -> LineChart:
    """Operations and bytes of a (m, 4096) x (4096, 4096) product with int4 weights and an inline adapter.

    An inline adapter costs (2r + 2)kn operations a call, whatever m; merged, none. *Source*: LIFE, Fig. 9 and Table 12.
    """
    bare = tuple(linear(m, _WIDTH, _WIDTH, weights=_WEIGHTS) + dequantize_weights(_WIDTH, _WIDTH) for m in _ROWS)
    adapted = {f"rank {rank}": tuple(cost + lora_update(_WIDTH, _WIDTH, rank) for cost in bare) for rank in RANKS}
    ratios = _against(bare, adapted, lambda cost: cost.flops)
    return LineChart(
        title=(
            f"An inline adapter of rank {RANKS[0]} to {RANKS[-1]} takes {ratios[0].y[0]:.0f} to {ratios[-1].y[0]:.0f} "
            f"times the operations for one token, at most {percent(ratios[-1].y[-1] - 1.0, 1)} more for {_ROWS[-1]}"
        ),
        note=f"One call of a product with {_WIDTH} x {_WIDTH} int4 weights and bf16 adapters. LIFE, Fig. 9",
        n_columns=3,
        panels=(
            LinePanel(
                title="operations",
                x_axis=_PROMPT_AXIS,
                y_axis=Axis(label="operations", unit="GOPs", scale=Scale.LOG10),
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


def _ratio_panel(title: str, lines: tuple[Line, ...], scale: Scale) -> LinePanel:
    ones = _over_prompts(_MERGED, [1.0] * len(_ROWS))
    y_axis = Axis(label="inline / merged", scale=scale)
    return LinePanel(title=title, x_axis=_PROMPT_AXIS, y_axis=y_axis, lines=(ones, *lines))


def _over_prompts(label: str, y: list[float]) -> Line:
    return Line(label=label, x=_ROWS, y=tuple(y))
