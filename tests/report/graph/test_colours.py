"""Colours of operators."""

from __future__ import annotations

from itertools import pairwise

import pytest
from matplotlib.colors import to_rgb

from perfsuite.errors import PerfsuiteError
from perfsuite.report.graph.colours import PLAIN, colour_of, scale_of
from perfsuite.report.graph.view import GraphOptions, graph_view
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.testing.large_trace import large_trace


def lightness(colour: str) -> float:
    """Return what is left of a colour in grey."""
    return sum(share * part for share, part in zip((0.299, 0.587, 0.114), to_rgb(colour), strict=True))


@pytest.mark.parametrize("metric", ["time", "bandwidth", "cycles"])
def test_more_is_darker(metric: str) -> None:
    """In grey as well, from 0 to the largest value that is drawn."""
    scale = scale_of([graph_view(large_trace(2000), GraphOptions(metric=metric))])
    shades = [lightness(colour_of(float(scale.vmax) * step / 10, scale)) for step in range(11)]  # type: ignore[arg-type]
    assert all(one > other for one, other in pairwise(shades))
    assert shades[0] > 0.8
    assert shades[-1] < 0.2


def test_what_has_no_value_is_white() -> None:
    """And a graph without any value has a scale all the same."""
    assert colour_of(None, scale_of([graph_view(engine_trace([]))])) == PLAIN


def test_there_is_no_scale_of_nothing() -> None:
    """No graphs, or graphs that tell different things, have none in common."""
    with pytest.raises(PerfsuiteError, match="metrics are none"):
        scale_of([])
