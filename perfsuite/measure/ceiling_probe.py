"""Measures what a board can do at most, for forecasts and for the floor that rests on its best."""

from __future__ import annotations

from pathlib import Path

from perfsuite.expectation.ceilings import Ceilings
from perfsuite.measure.board.protocol import Board, board_name
from perfsuite.measure.ceiling_store import best_ceilings
from perfsuite.measure.plan import ProbePlan

#: How long the probes take together, ms.
_BUDGET_MS = 2500


def measured_ceilings(board: Board, n_threads: int) -> Ceilings:
    """Measure the ceilings of a board with so many threads, in a fresh process there."""
    plan = ProbePlan(cache_dir=str(board.facts().cache_dir), n_threads=n_threads, budget_ms=_BUDGET_MS)
    return Ceilings.from_plain(board.run(plan)["ceilings"])


def best_of_board(board: Board, measured: Ceilings, cache_dir: Path) -> Ceilings:
    """Return the best that this very board has shown in any run, with what was measured now, and keep it."""
    return best_ceilings(measured, board.facts().fingerprint, cache_dir, board=board_name(board).kept_by)
