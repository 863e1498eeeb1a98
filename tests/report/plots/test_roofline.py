"""Rooflines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.lines import Line2D
from matplotlib.text import Text

from perfsuite.records.chart import Axis, PointGroup, RooflineChart
from perfsuite.report.plots.picture import picture_bytes
from perfsuite.report.plots.roofline import draw_roofline

from .conftest import ROOFLINE

SHADED = replace(
    ROOFLINE,
    shade_axis=Axis(label="layers"),
    panels=(
        replace(
            ROOFLINE.panels[0],
            groups=tuple(
                PointGroup(label=kind, kind=kind, x=(x, x), y=(5.0, 9.0), shades=(2.0, 64.0), is_joined=True)
                for kind, x in (("prefill", 40.0), ("decode", 2.0))
            ),
        ),
    ),
)


def with_groups(*groups: PointGroup) -> RooflineChart:
    return replace(ROOFLINE, panels=(replace(ROOFLINE.panels[0], groups=groups),))


def at(axes: Axes, x: float, y: float) -> Line2D:
    return next(
        line
        for line in axes.lines
        if (list(np.asarray(line.get_xdata())), list(np.asarray(line.get_ydata()))) == ([x], [y])
    )


def look(mark: Line2D) -> tuple[Any, ...]:
    """What a reader sees of a mark, in grey as well."""
    return mark.get_marker(), mark.get_fillstyle(), mark.get_markerfacecolor() == "white"


def legend_texts(chart: RooflineChart) -> list[str]:
    (legend,) = draw_roofline(chart).legends
    return [text.get_text() for text in legend.get_texts()]


def test_groups_are_told_apart_without_colour() -> None:
    """Each label has a mark, each kind a filling, none the roof's black; the legend has them once."""
    axes = draw_roofline(ROOFLINE).axes[0]
    groups = ROOFLINE.panels[0].groups
    looks = {(group.label, group.kind): look(at(axes, group.x[0], group.y[0])) for group in groups}
    assert len(set(looks.values())) == len(groups) == 6
    assert {looks["short", kind][0] for kind in ("prefill", "decode", "both")} != {looks["long", "prefill"][0]}
    assert looks["short", "decode"][1:] == looks["long", "decode"][1:]
    many = [PointGroup(label=f"g{n}", kind="decode", x=(2.0 + n,), y=(5.0,)) for n in range(7)]
    axes = draw_roofline(with_groups(*many)).axes[0]
    marks = [at(axes, group.x[0], 5.0) for group in many]
    assert len({mark.get_marker() for mark in marks}) == len({mark.get_color() for mark in marks}) == 7
    assert to_rgb("black") not in {to_rgb(mark.get_color()) for mark in marks}
    assert legend_texts(ROOFLINE) == ["memory", "short", "long", "prefill", "decode", "both", "slope", "level"]


def test_words_overlap_neither_each_other_nor_marks() -> None:
    """Names of roofs, ridges and contours, and texts of points that lie close together."""
    crowd = PointGroup(
        label="decode", kind="decode", x=(3.0, 3.0, 3.1), y=(8.0, 8.5, 8.2), texts=("attn_out", "ffn_up", "ffn_down")
    )
    figure = draw_roofline(with_groups(crowd))
    axes = figure.axes[0]
    words = [text for text in axes.texts if text.get_text()]
    assert {text.get_text() for text in words} == {"attn_out", "ffn_up", "ffn_down", "ridge 10", "cache", "1 decade"}
    boxes = [Text.get_window_extent(text) for text in words]
    marks = axes.transData.transform(list(zip(crowd.x, crowd.y, strict=True)))
    for place, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])
        assert not any(box.contains(*mark) for mark in marks)
        assert axes.bbox.x0 - 1 <= box.x0 < box.x1 <= axes.bbox.x1 + 1


def test_shades_are_darker_for_larger_values() -> None:
    """The scale can be read in grey, kinds have marks of their own; a scale from a value to itself is drawn."""
    figure = draw_roofline(SHADED)
    axes = figure.axes[0]
    for x in (40.0, 2.0):
        light, dark = (sum(to_rgba(at(axes, x, y).get_markerfacecolor())[:3]) for y in (5.0, 9.0))
        assert light > dark + 0.5
    assert at(axes, 40.0, 5.0).get_marker() != at(axes, 2.0, 5.0).get_marker()
    assert figure.axes[-1].get_ylabel() == "layers"
    assert legend_texts(SHADED) == ["memory", "prefill", "decode", "slope", "level"]
    (group, _) = SHADED.panels[0].groups
    chart = replace(with_groups(replace(group, shades=(8.0, 8.0))), shade_axis=SHADED.shade_axis)
    assert picture_bytes(chart, "png")


@pytest.mark.parametrize("chart", [ROOFLINE, SHADED])
def test_the_same_roofline_is_the_same_svg(chart: RooflineChart) -> None:
    """Words are placed by no chance; all of them are text."""
    svg = picture_bytes(chart, "svg")
    assert svg == picture_bytes(chart, "svg")
    assert b">ridge 10<" in svg
