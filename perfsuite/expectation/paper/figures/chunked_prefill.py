"""Figure 6: what a prompt costs in chunks, against the same prompt at once."""

from __future__ import annotations

from perfsuite.expectation.paper.figures.wording import N_PROMPT, VARIANTS, long_prompt, percent
from perfsuite.records.chart import Axis, Line, LineChart, LinePanel, Scale

#: Chunks of 64 tokens to the whole prompt.
CHUNKS = tuple(1 << exponent for exponent in range(6, N_PROMPT.bit_length()))

_CHUNK_AXIS = Axis(label="chunk", unit="tokens", scale=Scale.LOG2)
_RATIO_AXIS = Axis(label="in chunks / at once", scale=Scale.LOG2)


def figure_6() -> LineChart:
    """Ratios of dispatches, bytes and operations, over chunks of 64 to 4096 tokens.

    A chunk attends to those before it and to itself, not to those behind it: operations fall below 1. *Source*: LIFE,
    Fig. 6.
    """
    panels = tuple(_chunk_panel(variant) for variant in VARIANTS)
    traffic = [panel.lines[1].y[0] for panel in panels]
    saved = max(1.0 - least for panel in panels for least in panel.lines[2].y)
    return LineChart(
        title=(
            f"Chunks of {CHUNKS[0]} tokens take {panels[0].lines[0].y[0]:.0f} times the dispatches and "
            f"{min(traffic):.1f} to {max(traffic):.1f} times the traffic, and save at most {percent(saved)} of the "
            "operations"
        ),
        note=f"Llama2-7B, prefill of {N_PROMPT} tokens under the paper's conventions. LIFE, Fig. 6",
        n_columns=len(VARIANTS),
        panels=panels,
    )


def _chunk_panel(variant: str) -> LinePanel:
    whole = long_prompt(variant)
    pieces = [long_prompt(variant, chunk) for chunk in CHUNKS]
    return LinePanel(
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
