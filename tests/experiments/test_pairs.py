"""Runs of pairs whose workers answer from a stored record."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.expectation.cases import Case
from perfsuite.experiments.pairs import N_TURNS, Pair, PairRun, pairs_by_case, weighty_cases
from perfsuite.measure.plan import TurnsPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import ReplicateSamples
from tests.synthetic_plans import CONTENDED, PLAN, QUIET


class Workers:
    """Answers every pair; `contended` tells which ones had competition."""

    def __init__(self, payload: dict[str, Any], contended: frozenset[int] = frozenset()) -> None:
        self.payload = payload
        self.contended = contended
        self.leaders: list[int] = []
        self.plans: list[TurnsPlan] = []

    def run(
        self, plans: tuple[TurnsPlan, TurnsPlan], *, n_turns: int, leader: int, **_: object
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return two payloads."""
        assert (len(plans), n_turns) == (2, N_TURNS)
        self.plans += plans
        contention = CONTENDED if len(self.leaders) in self.contended else QUIET
        self.leaders.append(leader)
        payload = {**self.payload, "contention": contention, "peak_rss_bytes": 5}
        return payload, payload


@pytest.fixture
def workers(stored_payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Workers:
    """Replace the workers of all pairs."""
    found = Workers(stored_payload)
    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", found.run)
    return found


def pair_run(**settings: Any) -> PairRun:
    """Return a run of the plan against itself, with a fixed order."""
    return PairRun(plans=(PLAN, PLAN), profile=find_profile("host"), order=random.Random(1), **settings)


def test_a_run_is_extended_to_what_is_asked(workers: Workers, stored_record: EngineRecord) -> None:
    """Pairs that are there are not taken again, and fewer may be asked for later."""
    run = pair_run()
    assert len(run.extend(3)) == 3
    assert len(run.extend(5)) == 5
    assert len(run.extend(2)) == 2
    assert len(workers.leaders) == 5
    assert run.pairs[0].old_repetitions_ns[Phase.DECODE] == tuple(
        span.duration_ns for span in stored_record.spans if span.phase is Phase.DECODE
    )
    assert run.first_records is not None
    assert run.peak_rss_bytes == 5


def test_each_pair_is_witnessed(workers: Workers) -> None:
    """With the new side's record where the pair counts, and without one where it had competition."""
    workers.contended = frozenset({1})
    seen: list[tuple[int, bool]] = []

    def witness(payload: Mapping[str, Any], record: EngineRecord | None) -> None:
        seen.append((payload["contention"]["waiting_ns"], record is not None))

    pair_run(witness=witness).extend(2)
    assert seen == [(0, True), (10**9, False), (0, True)]


def test_each_side_leads_one_of_two_pairs(workers: Workers) -> None:
    """Who leads is drawn for the first pair of two, and changes for the second."""
    pair_run().extend(40)
    firsts, seconds = workers.leaders[::2], workers.leaders[1::2]
    assert [1 - leader for leader in firsts] == seconds
    assert set(firsts) == {0, 1}


def test_each_process_draws_its_layout(workers: Workers) -> None:
    """No two processes of a run have their buffers in the same place by design."""
    pair_run().extend(4)
    seeds = [plan.llama.layout_seed for plan in workers.plans]
    assert len(set(seeds)) == 8
    assert min(seeds) > 0


@pytest.mark.parametrize(("old", "new", "expected"), [(True, True, True), (False, True, False), (True, False, False)])
def test_threads_are_bound_on_both_sides_or_on_none(workers: Workers, old: bool, new: bool, expected: bool) -> None:
    """A side whose threads cannot be bound decides for both."""
    plans = (replace(PLAN, binds_threads=old), replace(PLAN, binds_threads=new))
    PairRun(plans=plans, profile=find_profile("host")).extend(1)
    assert [plan.llama.binds_threads for plan in workers.plans] == [expected, expected]


def test_pairs_with_competition_are_taken_again(workers: Workers) -> None:
    """What had competition is left out, with its reason, and replaced."""
    workers.contended = frozenset({0, 2})
    run = pair_run()
    assert len(run.extend(4)) == 4
    assert len(workers.leaders) == 6
    assert run.complaints == ["threads waited 50 % of the time (limit 2 %) for a processor"] * 2


def test_endless_competition_ends_the_run(workers: Workers) -> None:
    """As many pairs with competition as were asked for are enough: what there is comes back."""
    workers.contended = frozenset(range(1, 100))
    assert len(pair_run().extend(8)) == 1
    assert len(workers.leaders) == 9


def test_a_budget_ends_a_run_after_its_first_look(workers: Workers) -> None:
    """The pairs of a first look are taken whatever they cost; a spent budget allows for no more."""
    run = pair_run(budget_s=0.0)
    assert run.may_extend(8)
    assert len(run.extend(8)) == 8
    assert not run.may_extend(14)
    assert len(run.extend(14)) == 8
    generous = pair_run(budget_s=3600.0)
    generous.extend(8)
    assert generous.may_extend(14)
    assert not generous.may_extend(14, share_ratio=0.0)


def test_a_confirmation_may_take_half_as_long_again(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is confirmed beyond the budget, and not for ever."""
    run = pair_run(budget_s=100.0)
    run.extend(8)
    monkeypatch.setattr(PairRun, "elapsed_s", 80.0)
    assert [run.may_extend(n_pairs) for n_pairs in (10, 11)] == [True, False]
    assert [run.may_confirm(n_pairs) for n_pairs in (15, 16)] == [True, False]
    assert len(run.extend(15)) == 15
    monkeypatch.setattr(PairRun, "elapsed_s", 151.0)
    assert len(run.extend(20)) == 15


def test_a_budget_ends_a_run_that_has_competition_at_once(workers: Workers) -> None:
    """A busy machine is not waited for beyond the budget."""
    workers.contended = frozenset({0})
    run = pair_run(budget_s=0.0)
    assert len(run.extend(8)) == 0
    assert len(run.complaints) == 1


def test_samples_are_pairwise_by_case() -> None:
    """A case that one process did not measure, or with a time of nothing, has no pairs."""
    decode = Case(case_id="phase/a/b/decode", kind="phase", phase=Phase.DECODE)
    copy = Case(case_id="phase/a/b/copy", kind="phase", phase=Phase.COPY)
    up = Case(case_id="operator/a/b/decode/up", kind="operator", phase=Phase.DECODE, role="up")
    pair = _pair(decode_ns=10, up_ns=4)
    assert pairs_by_case([decode, copy, up], [pair, pair]) == {
        decode.case_id: ((10, 10), (10, 10)),
        up.case_id: ((4, 4), (4, 4)),
    }
    assert up.case_id not in pairs_by_case([up], [pair, _pair(decode_ns=10, up_ns=0)])


def test_what_is_a_hundredth_of_a_token_is_worth_pairs() -> None:
    """Operators count by their share of their phase, phases by that of the shorter of prefill and decode."""
    cases = [
        Case(case_id=f"phase/a/b/{phase.value}", kind="phase", phase=phase)
        for phase in (Phase.PREFILL, Phase.DECODE, Phase.COPY, Phase.SOFTMAX)
    ]
    cases += [
        Case(case_id=f"operator/a/b/decode/{role}", kind="operator", phase=Phase.DECODE, role=role)
        for role in ("up", "tiny")
    ]
    pair = _pair(decode_ns=1000, up_ns=10, more={Phase.PREFILL: 50_000, Phase.COPY: 9, Phase.SOFTMAX: 11}, tiny_ns=9)
    found = {case_id.split("/", 3)[-1] for case_id in weighty_cases(cases, [pair])}
    assert found == {"prefill", "decode", "softmax", "decode/up"}
    assert weighty_cases(cases, []) == frozenset()


def _pair(*, decode_ns: int, up_ns: int, tiny_ns: int = 1, more: dict[Phase, int] | None = None) -> Pair:
    samples = ReplicateSamples(
        phase_ns={Phase.DECODE: decode_ns, **(more or {})},
        operator_ns={Phase.DECODE: {"up": up_ns, "tiny": tiny_ns}},
        rest_ns={Phase.DECODE: 1},
    )
    return Pair(old=samples, new=replace(samples), old_repetitions_ns={}, new_repetitions_ns={})
