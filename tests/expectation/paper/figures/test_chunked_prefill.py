"""Figure 6."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.figures import figure_6
from perfsuite.expectation.paper.figures.chunked_prefill import CHUNKS
from perfsuite.expectation.paper.figures.wording import long_prompt


def test_chunks_reach_from_64_tokens_to_the_whole_prompt() -> None:
    """Powers of two, and at the whole prompt every ratio is 1."""
    assert CHUNKS == (64, 128, 256, 512, 1024, 2048, 4096)
    for panel in figure_6().panels:
        assert [line.y[-1] for line in panel.lines] == [1.0, 1.0, 1.0]


def test_dispatches_grow_as_the_number_of_chunks() -> None:
    """64 chunks of 64 tokens take 64 times the dispatches."""
    for panel in figure_6().panels:
        dispatches = panel.lines[0]
        assert dispatches.label == "dispatches"
        assert dispatches.y == tuple(4096 / chunk for chunk in CHUNKS)


def test_operations_hardly_change() -> None:
    """Chunks leave out the scores of later tokens, and repeat the dequantisation of the weights."""
    for panel in figure_6().panels:
        operations = panel.lines[2]
        assert all(0.9 < ratio < 1.0 for ratio in operations.y[:-1])


def test_traffic_grows_as_chunks_shrink() -> None:
    """Weights are read once a chunk: with a fused attention, which spills no scores, every halving costs more."""
    unfused, fused = (panel.lines[1] for panel in figure_6().panels)
    assert list(fused.y) == sorted(fused.y, reverse=True)
    assert unfused.y[0] > 2.0
    read = [long_prompt("bf16-int4-kv4", chunk).parameter_bytes for chunk in (1024, 2048, 4096)]
    assert read[0] - read[1] == 2 * (read[1] - read[2]) > 0


def test_the_ratios_of_chunks_are_told() -> None:
    """The title tells the ratios at the smallest chunk."""
    chart = figure_6()
    least, most = sorted(panel.lines[1].y[0] for panel in chart.panels)
    assert f"64 times the dispatches and {least:.1f} to {most:.1f} times the traffic" in chart.title


def test_a_chunk_as_long_as_the_prompt_is_the_prompt() -> None:
    """The unchunked cost is the same, asked for either way."""
    assert long_prompt("bf16-int4", 4096) == long_prompt("bf16-int4")
    assert long_prompt("bf16-int4").flops == pytest.approx(63.05e12, rel=1e-4)
