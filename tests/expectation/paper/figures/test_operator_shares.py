"""Figure 3."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.figures import figure_3
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.tables import PROMPTS, llama2_7b
from perfsuite.workload.variant import find_variant


def test_a_bar_adds_up_to_its_pass() -> None:
    chart = figure_3()
    assert chart.categories == tuple(str(prompt) for prompt in PROMPTS)
    for panel in chart.panels:
        variant = find_variant(panel.title.split(", ")[0])
        for prompt, total in zip(PROMPTS, panel.totals, strict=True):
            assert total == pytest.approx(prefill_pass(llama2_7b(), variant, prompt).total.flops / 1e12, rel=1e-12)


def test_products_with_weights_are_two_operations_a_weight_and_token() -> None:
    """32 layers of 4 h^2 + 3 h I weights and the output matrix, times twice the prompt; the title tells their share."""
    weights = 32 * (4 * 4096**2 + 3 * 4096 * 11008) + 4096 * 32000
    panel = figure_3().panels[0]
    gemm = panel.layers[0]
    assert gemm.heights == pytest.approx([2 * weights * prompt / 1e12 for prompt in PROMPTS], rel=1e-12)
    shares = [100.0 * gemm.heights[place] / panel.totals[place] for place in (0, -1)]
    assert f"{shares[0]:.1f} % of the operations at 32 tokens, {shares[1]:.1f} % at 65536" in figure_3().title
