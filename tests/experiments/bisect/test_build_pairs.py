"""Pairs of builds that are made when they are asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import Case
from perfsuite.experiments.bisect.build_pairs import BuildPairs
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.records.events import Phase
from perfsuite.verdict.change_search import UnusableBuildError
from tests.synthetic_plans import CONTENDED, PLAN, QUIET

DECODE = Case(case_id="phase/a/b/decode", kind="phase", phase=Phase.DECODE)


class Board(LocalBoard):
    """Answers pairs from a stored record; one build crashes."""

    payload: dict[str, Any]
    contention = QUIET

    def run(self, plan: Any, **_: Any) -> dict[str, Any]:
        if plan.engine_build_id == "crashes":
            raise MeasurementError("the worker was killed by SIGSEGV")
        return self.payload

    def run_in_turns(self, plans: Any, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        answer = {**self.payload, "contention": self.contention}
        return answer, answer


@pytest.fixture
def engine() -> Engine:
    return find_engine()


@pytest.fixture
def board(stored_payload: dict[str, Any]) -> Board:
    found = Board(cache_dir=Path())
    found.payload = stored_payload
    return found


def pairs_of(board: Board, engine: Engine, made: list[str]) -> BuildPairs:

    def make(name: str) -> Engine:
        made.append(name)
        return replace(engine, build_id=name)

    return BuildPairs(
        board=board,
        profile=find_profile("host"),
        plan=PLAN,
        case=DECODE,
        names=("old", "crashes", "new"),
        make=make,
        remark=lambda _: None,
    )


def test_a_build_is_made_once_and_pairs_go_on(board: Board, engine: Engine) -> None:
    made: list[str] = []
    pairs = pairs_of(board, engine, made)
    assert (pairs.is_made(0), pairs.take(0, 2, 3), pairs.take(0, 2, 2)) == (False, [1.0] * 3, [1.0] * 2)
    assert made == ["old", "new"]
    assert pairs.is_made(0)


def test_what_cannot_be_compared_says_why(board: Board, engine: Engine) -> None:
    """A build that crashed is not tried again where the search leaves it out."""
    pairs = pairs_of(board, engine, [])
    with pytest.raises(UnusableBuildError):
        pairs.take(0, 1, 3)
    assert pairs.broken == {1: "the worker was killed by SIGSEGV"}
    pairs = pairs_of(board, engine, [])
    pairs.floor_ns = 10**12
    with pytest.raises(MeasurementError, match=r"old: phase/a/b/decode: .* is below the floor of 1000 s"):
        pairs.take(0, 2, 3)
    board.contention = CONTENDED
    with pytest.raises(MeasurementError, match=r"old and new cannot be compared: others took up to 80 % of the time"):
        pairs_of(board, engine, []).take(0, 2, 3)
