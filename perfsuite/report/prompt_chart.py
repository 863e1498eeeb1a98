"""The picture of the lengths of prompts: the whole and a subset of it, as shares of the same bins."""

from __future__ import annotations

from collections.abc import Mapping

from perfsuite.records.chart import Axis, Line, LineRole, Scale, XYChart, XYPanel
from perfsuite.workload.prompt_subset import BINS_PER_OCTAVE, Subset, histogram

_X_AXIS = Axis(label="length of a prompt (tokens)", scale=Scale.LOG2)
_Y_AXIS = Axis(label="share of the prompts (%)", least=0.0)


def prompt_chart(lengths: tuple[int, ...], subset: Subset, *, name: str) -> XYChart:
    """Return both histograms as outlines, over the bins between the shortest and the longest prompt."""
    whole = histogram(lengths)
    kept = histogram([lengths[at] for at in subset.indices])
    bins = range(min(whole), max(whole) + 1)
    panel = XYPanel(
        x_axis=_X_AXIS,
        y_axis=_Y_AXIS,
        lines=(
            _outline(f"{len(subset.indices)} that were chosen", kept, bins, LineRole.CURVE),
            _outline(f"all {len(lengths)}", whole, bins, LineRole.REFERENCE),
        ),
    )
    sizes = f"{len(subset.indices)} of {len(lengths)} prompts"
    return XYChart(
        title=f"{sizes} of {name} diverge from the whole by {subset.kl_nats:.4f} nats in their lengths",
        note=f"Kullback-Leibler divergence of the subset from the whole; {BINS_PER_OCTAVE} bins an octave",
        panels=(panel,),
    )


def _outline(label: str, counts: Mapping[int, int], bins: range, role: LineRole) -> Line:
    n_prompts = sum(counts.values())
    edges = [(2.0 ** (each / BINS_PER_OCTAVE), 2.0 ** ((each + 1) / BINS_PER_OCTAVE)) for each in bins]
    tops = [100.0 * counts.get(each, 0) / n_prompts for each in bins]
    return Line(
        label=label,
        x=(edges[0][0], *(edge for pair in edges for edge in pair), edges[-1][1]),
        y=(0.0, *(top for top in tops for _ in range(2)), 0.0),
        role=role,
    )
