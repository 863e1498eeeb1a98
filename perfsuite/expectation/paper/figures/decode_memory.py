"""Figure 7: what a decode step moves, over the tokens of a generation."""

from __future__ import annotations

from perfsuite.expectation.paper.decode_tables import N_GENERATED
from perfsuite.expectation.paper.figures.wording import percent, variants_by
from perfsuite.expectation.paper.passes import decode_pass
from perfsuite.expectation.paper.rotary import RopeReach
from perfsuite.expectation.paper.table_row import GIB, llama2_7b
from perfsuite.records.chart import Axis, Line, LineChart, LinePanel, Numbers
from perfsuite.workload.variant import Variant

#: A short, a middling and a long prompt before the generation.
_PROMPTS = (128, 2048, 16384)

_TOKEN_AXIS = Axis(label="token of the answer")
_TRAFFIC_AXIS = Axis(label="traffic of the step", unit="GiB", least=0.0)
_ANSWER = tuple(float(token) for token in range(1, N_GENERATED + 1))


def figure_7() -> LineChart:
    """GiB of each of 2000 steps by variant, after three prompts, with RoPE for the token alone as in Table 9.

    Variants that move the same share a line. *Source*: LIFE, Fig. 7.
    """
    panels = tuple(_traffic_panel(prompt) for prompt in _PROMPTS)
    growths = {line.label: line.y[-1] / line.y[0] - 1.0 for line in panels[1].lines}
    least, most = (chosen(growths, key=growths.__getitem__) for chosen in (min, max))
    return LineChart(
        title=(
            f"{N_GENERATED} tokens behind a prompt of {_PROMPTS[1]}, a step moves {percent(growths[most])} more with "
            f"{most}, {percent(growths[least])} more with {least}"
        ),
        note="Llama2-7B, decode under the paper's conventions; read and written. LIFE, Fig. 7 and Table 9",
        n_columns=len(panels),
        panels=panels,
    )


def _traffic_panel(prompt: int) -> LinePanel:
    lines = variants_by(lambda variant: _gib(variant, prompt))
    return LinePanel(
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
