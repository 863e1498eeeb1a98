"""LIFE's figures."""

from __future__ import annotations

from statistics import fmean

import pytest

from perfsuite.expectation.paper.figures import (
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    long_prompt,
)
from perfsuite.expectation.paper.passes import prefill_pass
from perfsuite.expectation.paper.tables import PROMPTS, llama2_7b, table_9
from perfsuite.records.chart import LineRole
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


@pytest.mark.parametrize("place", [0, 1])
def test_a_cell_is_the_longer_of_two_times(place: int) -> None:
    """Compute efficiency runs along x, memory efficiency along y, on 30 TOPS and 50 GB/s; on the line both meet."""
    panel = figure_5().panels[place]
    cost = prefill_pass(llama2_7b(), find_variant(panel.title), 4096).total
    for memory_pct, row in zip(panel.y, panel.values, strict=True):
        for compute_pct, value in zip(panel.x, row, strict=True):
            compute_s = cost.flops / (compute_pct / 100 * 30e12)
            memory_s = cost.moved_bytes / (memory_pct / 100 * 50e9)
            assert value == pytest.approx(max(compute_s, memory_s))
    assert panel.boundary is not None
    slope = panel.boundary.y[-1] / panel.boundary.x[-1]
    assert cost.flops / (0.5 * 30e12) == pytest.approx(cost.moved_bytes / (slope * 0.5 * 50e9))


@pytest.mark.parametrize(
    ("place", "variant", "compute_ratio", "memory_ratio"),
    [(0, "bf16-int4", 1.0, 1.0), (3, "bf16-int4-kv4", 0.5, 0.8)],
)
def test_a_cell_is_the_ratio_of_two_times(place: int, variant: str, compute_ratio: float, memory_ratio: float) -> None:
    """At 20 TOPS and 70 GB/s: operations over compute, over bytes over bandwidth."""
    cost = prefill_pass(llama2_7b(), find_variant(variant), 4096).total
    compute_s = cost.flops / (compute_ratio * 20e12)
    memory_s = (cost.read_bytes + cost.written_bytes) / (memory_ratio * 70e9)
    assert figure_4().panels[place].values[1][6] == pytest.approx(compute_s / memory_s)


def test_the_ratio_is_linear_in_bandwidth_and_inverse_in_peak() -> None:
    """Every cell times TOPS over GB/s is the same number, at 50 % of compute and 80 % of memory 1.6 times as large."""
    for panel in figure_4().panels:
        constants = [
            value * tops / gigabytes
            for tops, row in zip(panel.y, panel.values, strict=True)
            for gigabytes, value in zip(panel.x, row, strict=True)
        ]
        assert constants == pytest.approx([constants[0]] * 100)
    full, _, lower, _ = figure_4().panels
    assert lower.values[0][0] / full.values[0][0] == pytest.approx(1.6)


def test_the_line_parts_what_compute_bounds_from_the_rest() -> None:
    """The title tells how much that is."""
    shares = []
    for panel in figure_4().panels:
        assert panel.boundary is not None
        slope = panel.boundary.y[0] / panel.boundary.x[0]
        for tops, row in zip(panel.y, panel.values, strict=True):
            assert [value > 1.0 for value in row] == [tops < slope * gigabytes for gigabytes in panel.x]
        shares.append(sum(value > 1.0 for row in panel.values for value in row))
    assert [f"{share} %" in figure_4().title for share in shares] == [True] * 4
    assert shares[0] < shares[2] < shares[1] < shares[3]


RANKS = (8, 16, 32, 64, 128, 256)


def test_an_adapter_costs_the_same_at_every_prompt() -> None:
    """(2r + 2)kn operations more than the bare product, as in Table 12, whose own are 2mkn + 2kn; in 1e9."""
    merged, *adapted = figure_9().panels[0].lines
    assert merged.x == tuple(2**power for power in range(17))
    assert merged.y == pytest.approx([(2 * m + 2) * 4096 * 4096 / 1e9 for m in merged.x])
    assert [line.label for line in adapted] == [f"rank {rank}" for rank in RANKS]
    for rank, line in zip(RANKS, adapted, strict=True):
        update = (2 * rank + 2) * 4096 * 4096 / 1e9
        assert [y - bare for y, bare in zip(line.y, merged.y, strict=True)] == pytest.approx([update] * len(line.y))


def test_operations_against_merged_fall_to_one() -> None:
    """(2m + 2r + 4) / (2m + 2) at every prompt and rank."""
    merged, *adapted = figure_9().panels[1].lines
    assert set(merged.y) == {1.0}
    assert "takes 6 to 130 times the operations for one token, at most 0.4 % more for 65536" in figure_9().title
    for rank, line in zip(RANKS, adapted, strict=True):
        assert line.y == pytest.approx([(2 * m + 2 * rank + 4) / (2 * m + 2) for m in line.x])


def test_the_mean_at_tile_64_is_the_papers() -> None:
    """0.964 over contexts of 1 to 4096, stated, and drawn as a line of its own."""
    panel = figure_8().panels[0]
    saw, mean = panel.lines
    assert panel.title == "tile 64, mean 0.964"
    assert saw.x == tuple(range(1, 4097))
    assert fmean(saw.y) == pytest.approx(0.964, abs=5e-4)
    assert mean.role is LineRole.REFERENCE
    assert mean.x == (1, 4096)
    assert mean.y == pytest.approx([fmean(saw.y)] * 2)


def test_teeth_end_at_whole_tiles() -> None:
    """All of the work is of use at multiples of the tile and nowhere else; right behind the first, half of it is.

    A larger tile wastes more, as the title tells of each.
    """
    for panel, tile in zip(figure_8().panels, (64, 128, 256), strict=True):
        saw = panel.lines[0]
        assert [x for x, y in zip(saw.x, saw.y, strict=True) if y == 1.0] == list(range(tile, 4097, tile))
        assert saw.y[tile] == (tile + 1) / (2 * tile)
        assert f"{100 * (1 - fmean(saw.y)):.1f} %" in figure_8().title
    means = [panel.lines[1].y[0] for panel in figure_8().panels]
    assert means == sorted(means, reverse=True)


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


def test_a_token_costs_the_same_wherever_it_is() -> None:
    """Lines are straight, and as steep after every prompt."""
    panels = figure_7().panels
    for lines in zip(*(panel.lines for panel in panels), strict=True):
        slopes = [(line.y[-1] - line.y[0]) / 1999 for line in lines]
        assert slopes == pytest.approx([slopes[0]] * len(panels), rel=1e-9)
        middle = lines[0].y[1000]
        assert middle == pytest.approx(lines[0].y[0] + 1000 * slopes[0], rel=1e-12)
    growths = {line.label: line.y[-1] / line.y[0] - 1.0 for line in panels[1].lines}
    most, least = max(growths, key=growths.__getitem__), min(growths, key=growths.__getitem__)
    told = f"{100 * growths[most]:.0f} % more with {most}, {100 * growths[least]:.0f} % more with {least}"
    assert told in figure_7().title


def test_traffic_grows_as_chunks_shrink() -> None:
    """Weights are read once a chunk: with a fused attention, which spills no scores, every halving costs more."""
    unfused, fused = (panel.lines[1] for panel in figure_6().panels)
    assert list(fused.y) == sorted(fused.y, reverse=True)
    assert unfused.y[0] > 2.0
    least, most = sorted((unfused.y[0], fused.y[0]))
    assert f"64 times the dispatches and {least:.1f} to {most:.1f} times the traffic" in figure_6().title
    read = [long_prompt("bf16-int4-kv4", chunk).parameter_bytes for chunk in (1024, 2048, 4096)]
    assert read[0] - read[1] == 2 * (read[1] - read[2]) > 0
