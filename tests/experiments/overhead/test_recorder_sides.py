"""Which two sides a comparison of recorders has, with the measurement replaced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import Profile, find_profile
from perfsuite.experiments.overhead.measurement import Overhead, Side
from perfsuite.experiments.overhead.recorder_sides import CPU_COMPARISONS, OPENCL_COMPARISONS, compare_recorders
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.live import LIVE_SOCKET
from tests.synthetic_opencl_backend import opencl_backend, opencl_plan

MODE, LOG = "PERFSUITE_OPENCL_LAYER_MODE", "PERFSUITE_OPENCL_LOG"
HOST, BOARD = find_profile("host"), LocalBoard(cache_dir=Path("nowhere"))
OVERHEAD = Overhead(ratios={}, n_discarded=0)


@dataclass
class Measured:
    """Takes the sides that are compared, and the sockets that were subscribed to, meanwhile or ever."""

    sides: list[tuple[Side, Side]] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None

    def measure(self, plain: Side, recorded: Side, *where: Profile | Board, **asked: Any) -> Overhead:
        assert where == (HOST, BOARD)
        self.sides.append((plain, recorded))
        self.asked = asked
        assert (asked["hear"] is not None) == (recorded.plan.live_socket is not None)
        if self.error:
            raise self.error
        return OVERHEAD


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    found, module = Measured(), "perfsuite.experiments.overhead.recorder_sides"
    monkeypatch.setattr(f"{module}.measure_overhead", found.measure)
    return found


@pytest.mark.parametrize(
    ("name", "modes", "is_live"),
    [
        ("profiling", (None, "profile"), False),
        ("layer", ("profile", "record"), False),
        ("opencl", (None, "record"), False),
        ("opencl+live", (None, "record"), True),
    ],
)
def test_sides_on_opencl_differ_in_the_layer(
    name: str, modes: tuple[str | None, ...], is_live: bool, measured: Measured, tmp_path: Path
) -> None:
    """Each name sets one mode of the layer against another, on the same plan except a subscriber's socket."""
    backend, plan = opencl_backend(tmp_path), opencl_plan(tmp_path)
    comparison = OPENCL_COMPARISONS[name]
    assert compare_recorders(comparison, plan, HOST, BOARD, opencl=backend, n_pairs=7) is OVERHEAD
    [(plain, recorded)] = measured.sides
    assert tuple(side.environment.get(MODE) for side in (plain, recorded)) == modes
    assert [side.environment.get(LOG) for side in (plain, recorded)] == [
        str(RUN_FOLDER) if mode else None for mode in modes
    ]
    assert [("layer.so" in side.environment["OPENCL_LAYERS"]) for side in (plain, recorded)] == [*map(bool, modes)]
    assert all("compat.so" in side.environment["OPENCL_LAYERS"] for side in (plain, recorded))
    assert plain.plan == plan
    assert recorded.plan == replace(plan, live_socket=LIVE_SOCKET if is_live else None)
    assert measured.asked["n_pairs"] == 7


@pytest.mark.parametrize(("name", "recorder"), [("live", "none"), ("callback+live", "callback")])
def test_sides_on_the_processor_differ_in_the_subscriber(
    name: str, recorder: str, measured: Measured, tmp_path: Path
) -> None:
    """The plain side has no recorder and no socket, whatever the plan brings, and neither has a layer."""
    plan = replace(opencl_plan(tmp_path), recorder="preload", live_socket="/old", n_gpu_layers=0)
    compare_recorders(CPU_COMPARISONS[name], plan, HOST, BOARD, opencl=None, n_pairs=5)
    [(plain, recorded)] = measured.sides
    assert (plain.environment, recorded.environment) == ({}, {})
    assert plain.plan == replace(plan, recorder="none", live_socket=None)
    assert recorded.plan == replace(plan, recorder=recorder, live_socket=LIVE_SOCKET)
