"""Runs of the plugin with hunts, over a simulated device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
import perfsuite.experiments.shapes.profiles
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


#: Runs the plugin with more arguments.
Run = Callable[..., pytest.RunResult]


@pytest.fixture
def subjects(fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> FakeSubjects:
    """Replace the meters, on a device whose workers are replaced, and give Hypothesis its seed back afterwards."""
    found = FakeSubjects()
    monkeypatch.setattr("perfsuite.measure.shapes.meters.open_meters", found.open)
    monkeypatch.setattr(hypothesis.core, "global_force_seed", None)
    return found


@pytest.fixture
def run(pytester: pytest.Pytester, subjects: FakeSubjects) -> Run:
    """Return what runs the plugin on the host, shapes alone."""

    def run_plugin(*arguments: str) -> pytest.RunResult:
        own = ("--model=smollm2-135m-l2-q8_0", "--perf-dir=run", "--threads=2", "-p", "no:cacheprovider")
        return pytester.runpytest_inprocess("--device=host", *own, "-k", "shape-hunt or shape-kept", *arguments)

    return run_plugin


@pytest.fixture
def told(pytester: pytest.Pytester) -> Callable[[], dict[str, dict[str, Any]]]:

    def cases() -> dict[str, dict[str, Any]]:
        plain: dict[str, Any] = json.loads((pytester.path / "run" / "run.json").read_text())
        return {case["id"]: case for case in plain["cases"]}

    return cases
