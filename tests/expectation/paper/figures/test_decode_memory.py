"""Figure 7."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.decode_tables import table_9
from perfsuite.expectation.paper.figures import figure_7
from perfsuite.workload.variant import variant_names


def test_the_ends_of_a_line_are_table_9() -> None:
    """The first and the 2000th step of each variant after each prompt."""
    table = {(row.inputs, row.metric): row.value for row in table_9() if row.metric in {"first_gib", "last_gib"}}
    for panel in figure_7().panels:
        prompt = int(panel.title.split()[2])
        for line in panel.lines:
            for variant in line.label.split(", "):
                inputs = (("prompt", prompt), ("variant", variant))
                ends = [table[inputs, metric] for metric in ("first_gib", "last_gib")]
                assert [line.y[0], line.y[-1]] == pytest.approx(ends, rel=1e-12)


def test_every_variant_has_a_line() -> None:
    """In each panel each variant is told once; the two of 16 bits share one."""
    for panel in figure_7().panels:
        labels = [line.label for line in panel.lines]
        assert labels[0] == "bf16-bf16, fp16-fp16"
        assert sorted(", ".join(labels).split(", ")) == sorted(variant_names())
        assert all(line.x == tuple(range(1, 2001)) for line in panel.lines)


def test_a_token_costs_the_same_wherever_it_is() -> None:
    """Lines are straight, and as steep after every prompt."""
    panels = figure_7().panels
    for lines in zip(*(panel.lines for panel in panels), strict=True):
        slopes = [(line.y[-1] - line.y[0]) / 1999 for line in lines]
        assert slopes == pytest.approx([slopes[0]] * len(panels), rel=1e-9)
        middle = lines[0].y[1000]
        assert middle == pytest.approx(lines[0].y[0] + 1000 * slopes[0], rel=1e-12)


def test_the_growths_are_told() -> None:
    """The title tells who grows most and who least."""
    chart = figure_7()
    growths = {line.label: line.y[-1] / line.y[0] - 1.0 for line in chart.panels[1].lines}
    most, least = max(growths, key=growths.__getitem__), min(growths, key=growths.__getitem__)
    assert (
        f"{100 * growths[most]:.0f} % more with {most}, {100 * growths[least]:.0f} % more with {least}" in chart.title
    )
