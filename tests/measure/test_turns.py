"""Pairs of real workers that take turns, and the ways in which one of them can fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import FAILURE_MARK, READY_MARK
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.measure.turns import run_in_turns
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import misaligned_evaluations

from .conftest import Child, spans_of


@pytest.mark.parametrize("leader", [0, 1])
def test_the_leader_is_started_first(leader: int, small_plan: LlamaPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the later process lacks falls on both sides equally often."""
    plans = [replace(small_plan, seed=seed) for seed in (0, 1)]

    def start(plan: TurnsPlan, *_: object, **__: object) -> None:
        raise MeasurementError(f"started {plan.llama.seed}")

    monkeypatch.setattr("perfsuite.measure.worker_lines.start_worker", start)
    with pytest.raises(MeasurementError, match=f"started {leader}"):
        run_in_turns((TurnsPlan(llama=plans[0]), TurnsPlan(llama=plans[1])), n_turns=2, leader=leader)


def test_two_workers_never_run_at_once(small_plan: LlamaPlan) -> None:
    plans = (TurnsPlan(llama=small_plan), TurnsPlan(llama=small_plan))
    payloads = run_in_turns(plans, n_turns=2, leader=1)
    records = [EngineRecord.from_plain(payload["engine"]) for payload in payloads]
    wholes = ((span, side) for side in (0, 1) for span in spans_of(records[side], Phase.END_TO_END))
    ends = sorted((span.start_ns, span.end_ns, side) for span, side in wholes)
    assert [side for _, _, side in ends] == [1, 0, 0, 1]
    assert all(first[1] < second[0] for first, second in pairwise(ends))
    for record in records:
        assert {span.repetition for span in spans_of(record, Phase.DECODE)} == {0, 1}
        assert len(evaluations_of(record)) == 2 * (1 + small_plan.n_gen)
        assert misaligned_evaluations(record) == 0


@pytest.mark.parametrize(("waiting_ns", "n_turns"), [((0, 50), 8), ((0, 300), 4), ((300, 300), 8)])
def test_a_pair_is_broken_off_where_one_side_waits(
    waiting_ns: tuple[int, int], n_turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a block of turns; what both wait for alike is no reason, and both have sent what they measured."""
    told: list[int] = []

    class Worker:
        def __init__(self, plan: TurnsPlan, folder: Path, *_: object) -> None:
            self.side = int(folder.name)

        def tell(self, *_: object) -> None:
            told.append(self.side)

        def answer(self, mark: str | None, _: object) -> str | None:
            return mark and f"{mark} {waiting_ns[self.side]} 1000"

        def payload(self) -> dict[str, int]:
            return {"side": self.side}

        def end_input(self) -> None: ...

        close = end_input

    monkeypatch.setattr("perfsuite.measure.turns.WaitingWorker", Worker)
    plans: Any = (None, None)
    assert run_in_turns(plans, n_turns=4, leader=0) == ({"side": 0}, {"side": 1})
    assert len(told) == n_turns


def test_an_injected_phase_takes_longer_by_its_share(small_plan: LlamaPlan) -> None:
    slowed = replace(small_plan, inject_phases=("decode",), inject_phase_ratio=4.0, n_gen=8)
    plain = replace(small_plan, n_gen=8)
    payloads = run_in_turns((TurnsPlan(llama=plain), TurnsPlan(llama=slowed)), n_turns=2, leader=0)
    old, new = (EngineRecord.from_plain(payload["engine"]) for payload in payloads)

    def least_ns(record: EngineRecord, phase: Phase) -> int:
        return min(span.duration_ns for span in spans_of(record, phase))

    assert least_ns(new, Phase.DECODE) > 3 * least_ns(old, Phase.DECODE)
    assert least_ns(new, Phase.PREFILL) < 3 * least_ns(old, Phase.PREFILL)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (f"echo '{FAILURE_MARK}no such thing'; exit 1", "no such thing"),
        (f"echo words; echo '{READY_MARK}'; read turn; echo last words; exit 3", "last words"),
        (f"echo '{READY_MARK}'; while read turn; do echo '{READY_MARK}'; done", "wrote no record"),
    ],
)
def test_a_worker_that_ends_early_is_an_error(script: str, message: str, child: Child, small_plan: LlamaPlan) -> None:
    child(script)
    with pytest.raises(MeasurementError, match=message):
        run_in_turns((TurnsPlan(llama=small_plan),) * 2, n_turns=1, leader=0, limit_s=60)


@pytest.mark.parametrize("script", ["sleep 600", f"echo '{READY_MARK}'; sleep 600"])
def test_no_turn_is_waited_for_beyond_the_limit(script: str, child: Child, small_plan: LlamaPlan) -> None:
    child(script)
    with pytest.raises(MeasurementError, match="did not finish in time and was stopped"):
        run_in_turns((TurnsPlan(llama=small_plan),) * 2, n_turns=1, leader=0, limit_s=0.5)
