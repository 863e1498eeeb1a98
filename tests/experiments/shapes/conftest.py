"""Runs of the plugin with hunts, over a simulated device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import hypothesis.core
import pytest

# What runs of the plugin import on their own they forget again, and what is replaced here would be another copy.
import perfsuite.expectation.shapes.floor
import perfsuite.experiments.shapes.hunt
import perfsuite.experiments.shapes.judge
import perfsuite.experiments.shapes.kept
import perfsuite.experiments.shapes.strategies
import perfsuite.measure.shapes.meters  # noqa: F401
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.shapes.meter import ShapeMeters
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import Subject
from tests.fake_device import FakeDevice


@dataclass
class FakeSubjects:
    """Opens the same simulated meters for every subject, and notes which."""

    meters: SimulatedMeters = field(default_factory=SimulatedMeters)
    error: Exception | None = None
    #: What each subject was opened with.
    opened: dict[Subject, dict[str, Any]] = field(default_factory=dict)
    n_closed: int = 0

    @contextmanager
    def open(self, subject: Subject, board: Board, **arguments: Any) -> Iterator[ShapeMeters]:
        if self.error is not None:
            raise self.error
        self.opened[subject] = {**arguments, "board": board}
        yield self.meters
        self.n_closed += 1


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> FakeSubjects:
    """Replace the meters."""
    found = FakeSubjects()
    monkeypatch.setattr("perfsuite.measure.shapes.meters.open_meters", found.open)
    return found


@pytest.fixture
def subjects(fake_device: FakeDevice, opened: FakeSubjects, monkeypatch: pytest.MonkeyPatch) -> FakeSubjects:
    """Replace the meters, on a device whose workers are replaced, and give Hypothesis its seed back afterwards."""
    monkeypatch.setattr(hypothesis.core, "global_force_seed", None)
    return opened
