"""Figure 6."""

from __future__ import annotations

from statistics import fmean

import pytest

from perfsuite.expectation.paper.figures import figure_6, figure_7, figure_8, figure_9, long_prompt
from perfsuite.expectation.paper.tables import table_9
from perfsuite.records.chart import LineRole

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
