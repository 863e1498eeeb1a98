"""What a picture shows."""

from __future__ import annotations

import pytest

from perfsuite.records.chart import Axis, BarLayer, BarPanel


def test_units_and_totals_are_shown() -> None:
    """A unit is in brackets; totals add up bar by bar, of layers of one length."""
    assert (Axis(label="peak", unit="TOPS").caption, Axis(label="ratio").caption) == ("peak (TOPS)", "ratio")
    layers = (BarLayer(label="a", heights=(1.0, 2.0)), BarLayer(label="b", heights=(0.5, 4.0)))
    assert BarPanel(title="", layers=layers).totals == (1.5, 6.0)
    with pytest.raises(ValueError, match="zip"):
        _ = BarPanel(title="", layers=(*layers, BarLayer(label="c", heights=(1.0,)))).totals
