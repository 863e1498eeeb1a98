"""The judges of a run's subjects."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.expectation.shapes.floor import ShapeForecasts
from perfsuite.experiments.run_config import Margins, RunConfig
from perfsuite.experiments.shapes import judge
from perfsuite.experiments.shapes.judges import ShapeJudges
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.calibration_store import store_calibration
from perfsuite.workload.shapes.shape_case import Subject
from tests.experiments.shapes.conftest import FakeSubjects
from tests.synthetic_calibration import N_THREADS, calibration


@pytest.mark.parametrize("is_linked", [True, False])
def test_shapes_are_forecast_by_the_boards_own_calibration(
    subjects: FakeSubjects, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_linked: bool
) -> None:
    """Over a link by that of this board, on the machine itself by that which is no board's; the other is another's."""
    board = LocalBoard(cache_dir=tmp_path, is_local=not is_linked)
    facts = board.facts()
    own, other = (facts.identity, None) if is_linked else (None, facts.identity)
    forecasts: list[ShapeForecasts | None] = []
    monkeypatch.setattr(judge, "ShapeJudge", lambda *_, **told: forecasts.append(told["forecasts"]))
    for kept_by in (other, own):
        stored = calibration(fingerprint=dict(facts.fingerprint))
        store_calibration(stored, facts.engine.build_id, tmp_path, board=kept_by)
        judges(board, tmp_path).of(Subject.GGML_CPU)
    assert [each is not None for each in forecasts] == [False, True]


def judges(board: LocalBoard, cache_dir: Path) -> ShapeJudges:
    plain = {
        "board": board,
        "old": None,
        "engine": board.facts().engine,
        "cache_dir": cache_dir,
        "run_dir": cache_dir,
        "n_threads": N_THREADS,
        "profile": find_profile("host"),
        "opencl_platform": None,
        "margins": Margins(),
    }
    request: Any = SimpleNamespace(profile="quick", kernels_dir=None)
    return ShapeJudges(config=cast(RunConfig, SimpleNamespace(**plain)), request=request, ceilings=lambda: None)
