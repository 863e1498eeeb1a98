"""Cases of ``--perf-shapes``: the shapes that are kept from earlier hunts, then hunts for others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.experiments.shapes.hunt import hunt_settings
from perfsuite.plugin.fixtures import Perf


def test_kept(shape_kept: str, perf: Perf) -> None:
    """A shape at which an operation broke down does so no more, or as little as was accepted."""
    perf.judge(shape_kept)


@hunt_settings()
@given(data=st.data())
def test_hunt(shape_hunt: str, perf: Perf, data: st.DataObject) -> None:
    """A property holds at every shape of an operation; after the last one, the hunt as a whole is judged."""
    perf.hunt(shape_hunt, data)
