"""Runs of pairs whose workers answer from a stored record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.experiments.pairs import (
    EnginePair,
    Pair,
    lone_cases,
    lone_sides,
    lost_by_case,
    pair_series,
    pairs_by_case,
    weighty_cases,
)
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import TurnsPlan
from perfsuite.records.case import Case
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import ReplicateSamples
from perfsuite.verdict.pairs import LOOKS
from tests.synthetic_plans import PLAN, QUIET

DECODE = Case(case_id="phase/a/b/decode", kind="phase", phase=Phase.DECODE)


@pytest.mark.parametrize(("old", "new", "expected"), [(True, True, True), (False, True, False), (True, False, False)])
def test_a_pair_is_of_two_plans(
    stored_payload: dict[str, Any], stored_record: EngineRecord, old: bool, new: bool, expected: bool
) -> None:
    """It has the latencies of both; threads are bound on both sides or on none, and the first look is in any case."""
    asked: list[TurnsPlan] = []
    payload = {**stored_payload, "contention": QUIET}

    class _Board(LocalBoard):
        def run_in_turns(self, plans: tuple[TurnsPlan, TurnsPlan], **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            asked.extend(plans)
            return payload, payload

    plans = (replace(PLAN, binds_threads=old), replace(PLAN, binds_threads=new))
    series = pair_series(_Board(cache_dir=Path()), plans, budget_s=0.0)
    (pair, *more) = series.extend(100)
    decodes = [span.duration_ns for span in stored_record.spans if span.phase is Phase.DECODE]
    assert pair.old_repetitions_ns[Phase.DECODE] == pair.new_repetitions_ns[Phase.DECODE] == tuple(decodes)
    assert len(more) == LOOKS[0][0] - 1
    assert {plan.llama.binds_threads for plan in asked} == {expected}


def test_samples_are_pairwise_by_case() -> None:
    """A case has the pairs in which both sides measured a positive time, unless more than an eighth lack it."""
    copy = Case(case_id="phase/a/b/copy", kind="phase", phase=Phase.COPY)
    up = Case(case_id="operator/a/b/decode/up", kind="operator", phase=Phase.DECODE, role="up")
    pair = _pair(decode_ns=10, up_ns=4)
    assert pairs_by_case([DECODE, copy, up], [pair, pair]) == {
        DECODE.case_id: ((10, 10), (10, 10)),
        up.case_id: ((4, 4), (4, 4)),
    }
    lacking = _pair(decode_ns=10, up_ns=0)
    assert up.case_id not in pairs_by_case([up], [pair] * 6 + [lacking])
    disturbed = replace(pair, lost={Phase.DECODE: (0.2, 0.3)})
    of_eight = [*[pair] * 3, lacking, *[disturbed] * 4]
    assert pairs_by_case([up], of_eight)[up.case_id] == ((4,) * 7, (4,) * 7)
    assert lost_by_case([up], of_eight)[up.case_id] == pytest.approx((*[0.0] * 3, *[0.1] * 4))
    assert lost_by_case([up], of_eight, of_new_alone=True)[up.case_id] == (*[0.0] * 3, *[0.3] * 4)


def test_what_one_side_alone_has_is_found() -> None:
    both, one = _pair(decode_ns=10, up_ns=4), _pair(decode_ns=10, up_ns=4, tiny_ns=7)
    old = replace(both.old, operator_ns={Phase.DECODE: {"up": 4}})
    pairs = [replace(one, old=old), replace(one, old=old)]
    (found,) = lone_cases([DECODE], pairs)
    assert (found.case_id, found.phase, found.role) == ("operator/a/b/decode/tiny", Phase.DECODE, "tiny")
    assert lone_sides([DECODE, found], pairs) == {found.case_id: ((), (7, 7))}
    assert lone_cases([DECODE, found], pairs) == lone_cases([DECODE], [both]) == ()


def test_what_is_a_hundredth_of_a_token_is_worth_pairs() -> None:
    """Operators count by their share of their phase, phases by that of the shorter of prefill and decode."""
    phases = (Phase.PREFILL, Phase.DECODE, Phase.COPY, Phase.SOFTMAX)
    cases = [replace(DECODE, case_id=f"phase/a/b/{phase.value}", phase=phase) for phase in phases]
    cases += [
        Case(case_id=f"operator/a/b/decode/{role}", kind="operator", phase=Phase.DECODE, role=role)
        for role in ("up", "tiny")
    ]
    pair = _pair(decode_ns=1000, up_ns=10, more={Phase.PREFILL: 50_000, Phase.COPY: 9, Phase.SOFTMAX: 11}, tiny_ns=9)
    found = {case_id.split("/", 3)[-1] for case_id in weighty_cases(cases, [pair])}
    assert found == {"prefill", "decode", "softmax", "decode/up"}
    assert weighty_cases(cases, []) == frozenset()


def _pair(*, decode_ns: int, up_ns: int, tiny_ns: int = 1, more: dict[Phase, int] | None = None) -> EnginePair:
    samples = ReplicateSamples(
        phase_ns={Phase.DECODE: decode_ns, **(more or {})},
        operator_ns={Phase.DECODE: {"up": up_ns, "tiny": tiny_ns}},
        rest_ns={Phase.DECODE: 1},
    )
    return Pair(old=samples, new=replace(samples), old_repetitions_ns={}, new_repetitions_ns={})
