"""Pairs of real workers that take turns, and the ways in which one of them can fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import EngineError, MeasurementError
from perfsuite.measure.launch import FAILURE_MARK, READY_MARK
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.measure.turns import run_in_turns, turn_order
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.trace.samples import misaligned_evaluations

from .conftest import Child


def decodes(record: EngineRecord) -> list[Span]:
    return [span for span in record.spans if span.phase is Phase.DECODE]


@pytest.mark.parametrize(("leader", "order"), [(0, (0, 1, 1, 0, 0, 1, 1, 0)), (1, (1, 0, 0, 1, 1, 0, 0, 1))])
def test_turns_come_in_blocks(leader: int, order: tuple[int, ...]) -> None:
    """ABBA ABBA: each leads half of the time, and a steady drift falls out of every block."""
    assert turn_order(4, leader) == order


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
    """The turns of both lie one after the other, in the order asked for, and every turn is recorded whole."""
    plans = (TurnsPlan(llama=small_plan), TurnsPlan(llama=small_plan))
    payloads = run_in_turns(plans, n_turns=2, leader=1)
    records = [EngineRecord.from_plain(payload["engine"]) for payload in payloads]
    ends = [
        (span.start_ns, span.end_ns, side)
        for side, record in enumerate(records)
        for span in record.spans
        if span.phase is Phase.END_TO_END
    ]
    ends.sort()
    assert [side for _, _, side in ends] == [1, 0, 0, 1]
    assert all(first[1] < second[0] for first, second in pairwise(ends))
    for record in records:
        assert {span.repetition for span in decodes(record)} == {0, 1}
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
    """A slowdown of a phase by four times its own time shows in that phase, not in the other one."""
    slowed = replace(small_plan, inject_phases=("decode",), inject_phase_ratio=4.0, n_gen=8)
    plain = replace(small_plan, n_gen=8)
    payloads = run_in_turns((TurnsPlan(llama=plain), TurnsPlan(llama=slowed)), n_turns=2, leader=0)
    old, new = (EngineRecord.from_plain(payload["engine"]) for payload in payloads)

    def least_ns(record: EngineRecord, phase: Phase) -> int:
        return min(span.duration_ns for span in record.spans if span.phase is phase)

    assert least_ns(new, Phase.DECODE) > 3 * least_ns(old, Phase.DECODE)
    assert least_ns(new, Phase.PREFILL) < 3 * least_ns(old, Phase.PREFILL)


def test_a_worker_says_why_it_cannot_start(small_plan: LlamaPlan, tmp_path: Path) -> None:
    broken = replace(small_plan, gguf_path=str(tmp_path / "none.gguf"))
    with pytest.raises(MeasurementError, match=r"none\.gguf: llama\.cpp cannot load it"):
        run_in_turns((TurnsPlan(llama=small_plan), TurnsPlan(llama=broken)), n_turns=1, leader=0)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 0", "wrote no record: it printed nothing"),
        (f"echo '{FAILURE_MARK}no such thing'; exit 1", "no such thing"),
        (f"echo words; echo '{READY_MARK}'; read turn; echo last words; exit 3", "last words"),
        (f"echo '{READY_MARK}'; read turn; kill -9 $$", "killed by SIGKILL"),
        (f"echo '{READY_MARK}'; while read turn; do echo '{READY_MARK}'; done", "wrote no record"),
    ],
)
def test_a_worker_that_ends_early_is_an_error(script: str, message: str, child: Child, small_plan: LlamaPlan) -> None:
    """Before its first turn, within one, or without a record: the pair fails with the worker's last words."""
    child(script)
    with pytest.raises(MeasurementError, match=message):
        run_in_turns((TurnsPlan(llama=small_plan),) * 2, n_turns=1, leader=0, limit_s=60)


@pytest.mark.parametrize("script", ["sleep 600", f"echo '{READY_MARK}'; sleep 600"])
def test_no_turn_is_waited_for_beyond_the_limit(script: str, child: Child, small_plan: LlamaPlan) -> None:
    child(script)
    with pytest.raises(MeasurementError, match="did not finish in time and was stopped"):
        run_in_turns((TurnsPlan(llama=small_plan),) * 2, n_turns=1, leader=0, limit_s=0.5)


def test_two_builds_are_told_apart(small_plan: LlamaPlan) -> None:
    stale = replace(small_plan, engine_build_id="0" * 8)
    with pytest.raises((MeasurementError, EngineError), match="the plan was made for 00000000"):
        run_in_turns((TurnsPlan(llama=stale),) * 2, n_turns=1, leader=0)
