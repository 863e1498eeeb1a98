"""What a picture shows."""

from __future__ import annotations

import pytest

from perfsuite.records.chart import Axis, BarLayer, BarPanel


def test_an_axis_tells_its_unit() -> None:
    """In brackets where there is one."""
    assert Axis(label="peak", unit="TOPS").caption == "peak (TOPS)"
    assert Axis(label="ratio").caption == "ratio"


def test_a_bar_is_as_high_as_its_layers() -> None:
    """Totals add up bar by bar; layers of different lengths are a mistake."""
    layers = (BarLayer(label="a", heights=(1.0, 2.0)), BarLayer(label="b", heights=(0.5, 4.0)))
    assert BarPanel(title="", layers=layers).totals == (1.5, 6.0)
    with pytest.raises(ValueError, match="zip"):
        _ = BarPanel(title="", layers=(*layers, BarLayer(label="c", heights=(1.0,)))).totals
