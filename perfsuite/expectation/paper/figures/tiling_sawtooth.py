"""Figure 8: what padding to a tile leaves of decode's products over a growing context."""

from __future__ import annotations

from statistics import fmean

from perfsuite.expectation.operators.tiling import tile_efficiency
from perfsuite.expectation.paper.figures.wording import percent
from perfsuite.records.chart import Axis, Line, LineChart, LinePanel

_TILES = (64, 128, 256)
_LENGTHS = tuple(range(1, 4097))

_CONTEXT_AXIS = Axis(label="context", unit="tokens", least=0.0, most=float(_LENGTHS[-1]))
_SHARE_AXIS = Axis(label="useful share", least=0.0, most=1.05)


def figure_8() -> LineChart:
    """L / (ceil(L/t) t) over contexts of 1 to 4096 tokens, for tiles of 64, 128 and 256, each with its mean.

    *Source*: LIFE, Fig. 8.
    """
    efficiencies = {tile: tuple(tile_efficiency(length, tile) for length in _LENGTHS) for tile in _TILES}
    means = {tile: fmean(of_tile) for tile, of_tile in efficiencies.items()}
    losses = ", ".join(f"{percent(1.0 - mean, 1)} at {tile}" for tile, mean in means.items())
    return LineChart(
        title=f"Padding to a tile wastes less the longer the context; on average over 1 to {_LENGTHS[-1]}: {losses}",
        note="Batched products of decode, whose growing dimension L is padded to the tile t: L / (ceil(L/t) t). "
        "LIFE, Fig. 8",
        n_columns=1,
        panels=tuple(
            LinePanel(
                title=f"tile {tile}, mean {means[tile]:.3f}",
                x_axis=_CONTEXT_AXIS,
                y_axis=_SHARE_AXIS,
                lines=(
                    Line(label="useful share of the product", x=_LENGTHS, y=efficiencies[tile]),
                    Line(label="mean", x=_LENGTHS[:: len(_LENGTHS) - 1], y=(means[tile],) * 2, is_reference=True),
                ),
            )
            for tile in _TILES
        ),
    )
