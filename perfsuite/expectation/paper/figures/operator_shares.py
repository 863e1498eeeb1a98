"""Figure 3: operations by operator, over prompts and variants."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.expectation.paper.figures.wording import percent, variants_by
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.table_row import PROMPTS, TERA, llama2_7b
from perfsuite.expectation.paper.template import OperatorKey
from perfsuite.records.chart import BarLayer, BarPanel, Numbers, StackedBars
from perfsuite.workload.variant import Variant, variant_names

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
