"""The cost of live delivery, from pairs whose workers are replaced."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.experiments.overhead.live_cost import LiveCostRun, measure_live_cost
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.live import Delivery
from perfsuite.measure.live_server import open_server
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.live import LiveEnd, LiveToken, to_line
from tests.synthetic_plans import CONTENDED, PLAN, QUIET

HERE = LocalBoard(cache_dir=Path("nowhere"))


class Workers:
    """Answers every pair from a stored record; the new side's worker offers a token at its socket."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self.payload = payload
        self.plans: list[LlamaPlan] = []
        self.contention = self.live_contention = QUIET
        self.is_silent = False

    def run(self, plans: tuple[TurnsPlan, TurnsPlan], **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return two payloads, after the subscriber has come."""
        self.plans += [plan.llama for plan in plans]
        if not self.is_silent:
            self._offer(plans[1].llama)
        old, new = (
            {**self.payload, "contention": contention} for contention in (self.contention, self.live_contention)
        )
        return old, new

    def _offer(self, plan: LlamaPlan) -> None:
        assert plan.live_socket is not None
        with open_server(Path(plan.live_socket)) as server:
            while not server.has_subscribers:
                server.wait(30)
            token = LiveToken(repetition=0, step=0, token=0, latency_ns=1, end_ns=1, tokens_per_s=1.0)
            end = LiveEnd(end_ns=2, is_complete=True, n_phases=1, n_tokens=1, n_kernels=0)
            server.publish([to_line(token), to_line(end)])
            server.flush(30)


@pytest.fixture
def workers(stored_payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Workers:
    """Replace the workers of all pairs."""
    found = Workers(stored_payload)
    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", found.run)
    return found


def measured(**settings: Any) -> LiveCostRun:
    """Measure the cost over five pairs, of a plan whose own socket counts for neither side."""
    plan, order = replace(PLAN, live_socket="/x/y"), random.Random(1)
    return measure_live_cost(plan, profile=find_profile("host"), board=HERE, n_pairs=5, order=order, **settings)


def test_one_side_of_each_pair_has_a_subscriber(workers: Workers, stored_record: EngineRecord) -> None:
    """The plain side has no socket, the other one has, and all that it sends is consumed."""
    seen: list[Delivery] = []
    found = measured(consume=seen.append)
    assert [plan.live_socket is None for plan in workers.plans] == [True, False] * 5
    assert "/x/y" not in [plan.live_socket for plan in workers.plans]
    assert found.n_tokens == 5
    assert len(seen) == 10
    ratios = found.overhead.ratios
    assert list(ratios) == [Phase.PREFILL, Phase.DECODE, Phase.END_TO_END]
    assert all(ratio.median_ratio == 1 and ratio.n_pairs == 5 for ratio in ratios.values())
    assert found.overhead.n_discarded == 0
    assert any(span.phase is Phase.DECODE for span in stored_record.spans)


def test_a_subscriber_that_received_nothing_measures_nothing(workers: Workers) -> None:
    """Where no token came there is no cost of delivery, but an error."""
    workers.is_silent = True
    with pytest.raises(MeasurementError, match="received no token"):
        measured()


def test_competition_leaves_too_few_pairs(workers: Workers) -> None:
    """Pairs that had competition do not count, and their reason is told."""
    workers.contention = CONTENDED
    with pytest.raises(MeasurementError, match=r"0 of 5 pairs had no competition, expected 5 or more \(threads waited"):
        measured()


def test_only_the_plain_side_tells_of_competition(workers: Workers) -> None:
    """What the subscriber takes from the live side's threads leaves no pair out."""
    workers.live_contention = CONTENDED
    assert measured().overhead.n_discarded == 0
