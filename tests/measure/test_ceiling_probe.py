"""What a board can do at most is measured there, and its best is kept here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.ceiling_probe import best_of_board, measured_ceilings
from perfsuite.measure.ceiling_store import stored_ceilings
from perfsuite.measure.plan import Plan, ProbePlan

from ..synthetic_calibration_run import answer


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Let workers follow a law, and return what they are asked for."""
    asked: list[Plan] = []

    def run(_: LocalBoard, plan: Plan) -> dict[str, Any]:
        asked.append(plan)
        return answer(plan)

    monkeypatch.setattr(LocalBoard, "run", run)
    return asked


def test_the_board_is_asked_with_its_own_cache(plans: list[Plan], tmp_path: Path) -> None:
    """Paths of the plan are the board's, and the number of threads is the run's."""
    measured = measured_ceilings(LocalBoard(cache_dir=tmp_path), 2)
    (plan,) = plans
    assert isinstance(plan, ProbePlan)
    assert (plan.cache_dir, plan.n_threads, measured.n_threads) == (str(tmp_path), 2, 2)


@pytest.mark.parametrize("is_local", [True, False])
def test_the_best_is_kept_of_the_very_board(plans: list[Plan], tmp_path: Path, is_local: bool) -> None:
    """By its identity over a link, and as this machine's otherwise; a slower run after it has the same best."""
    board = LocalBoard(cache_dir=tmp_path / "board", is_local=is_local)
    measured, facts = measured_ceilings(board, 2), board.facts()
    assert best_of_board(board, measured, tmp_path) == measured
    assert best_of_board(board, replace(measured, fp32_flops_per_s=1.0), tmp_path) == measured
    of_board = stored_ceilings(facts.fingerprint, 2, tmp_path, board=facts.identity)
    of_machine = stored_ceilings(facts.fingerprint, 2, tmp_path)
    assert (of_board, of_machine) == ((None, measured) if is_local else (measured, None))
