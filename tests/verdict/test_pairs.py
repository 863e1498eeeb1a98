"""Verdicts from pairs: the interval, the families, the looks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from perfsuite.records.case import Case
from perfsuite.records.events import Phase
from perfsuite.records.outcome import LEAST_PAIRS, Outcome
from perfsuite.verdict.judge_pairs import paired_reason
from perfsuite.verdict.pairs import (
    LOOKS,
    PairedVerdict,
    Pairs,
    Suite,
    compare_in_looks,
    compare_pairs,
    correlation_note,
    lag_correlation,
    slower_at_worst,
    verdicts_at,
)

OLD_NS = 10**8
QUESTIONS = ("phase/a/b/end_to_end", "phase/a/b/prefill", "phase/a/b/decode")
PARTS = tuple(f"operator/a/b/{phase}/{role}" for phase in ("prefill", "decode") for role in range(25))
SUITE = Suite.of(
    [
        *(Case(case_id=each, kind="phase", phase=Phase(each.rpartition("/")[2])) for each in QUESTIONS),
        *(Case(case_id=each, kind="operator", phase=Phase(each.split("/")[3]), role=each[-2:]) for each in PARTS),
    ]
)
PREFILL = QUESTIONS[1]


def sides(ratios: Sequence[float]) -> tuple[list[int], list[int]]:
    return [OLD_NS] * len(ratios), [round(OLD_NS * ratio) for ratio in ratios]


def noisy(
    generator: np.random.Generator, n_pairs: int, *, effect: float = 0.0, deviation: float = 0.015
) -> list[float]:
    noise = generator.standard_t(4, n_pairs) * deviation / math.sqrt(2.0)
    return [float(each) for each in np.exp(math.log1p(effect) + noise)]


def suite_pairs(
    generator: np.random.Generator, n_pairs: int, effects: Mapping[str, float] | None = None, deviation: float = 0.015
) -> dict[str, tuple[list[int], list[int]]]:
    """All cases of a run, each with noise of its own."""
    found = effects or {}
    return {
        each: sides(noisy(generator, n_pairs, effect=found.get(each, 0.0), deviation=deviation))
        for each in (*QUESTIONS, *PARTS)
    }


def verdict(
    ratios: Sequence[float], *, case_id: str = PREFILL, margin: float = 0.02, **options: object
) -> PairedVerdict:
    settings = {"share_ratio": 0.2, **options}
    return verdicts_at({case_id: sides(ratios)}, {case_id: margin}, SUITE, **settings)[case_id]  # type: ignore[arg-type]


@pytest.mark.parametrize("n_pairs", [2, 6, 9])
def test_fewer_than_ten_pairs_are_students_t(n_pairs: int) -> None:
    logs = np.log(noisy(np.random.default_rng(1), n_pairs, effect=0.03))
    change = compare_pairs(*sides([float(each) for each in np.exp(logs)]), alpha=0.01)
    theirs = ttest_1samp(logs, 0.0, alternative="greater")
    low, high = ttest_1samp(logs, 0.0).confidence_interval(0.98)
    assert change.p_slower == pytest.approx(float(theirs.pvalue), rel=1e-4)
    assert (change.lower_ratio, change.upper_ratio) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-6)
    assert change.p_faster == pytest.approx(1.0 - change.p_slower)


def test_an_eighth_is_cut_at_each_end_from_ten_pairs_on() -> None:
    ratios = [1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 0.5, 40.0]
    change = compare_pairs(*sides(ratios), alpha=0.025)
    kept = np.log(sorted(ratios)[1:-1])
    spread = float(np.std([kept[0], *kept, kept[-1]], ddof=1))
    reach = float(student.ppf(0.975, 10 - 3 - 1)) * spread * math.sqrt(10) / 8
    assert change.estimate_ratio == pytest.approx(math.exp(float(kept.mean())), rel=1e-6)
    assert change.upper_ratio == pytest.approx(math.exp(float(kept.mean()) + reach), rel=1e-6)


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=30), st.floats(0.0001, 0.4))
def test_exchanging_the_sides_inverts_the_change(ratios: list[float], alpha: float) -> None:
    old, new = sides(ratios)
    there, back = compare_pairs(old, new, alpha=alpha), compare_pairs(new, old, alpha=alpha)
    assert there.estimate_ratio == pytest.approx(1.0 / back.estimate_ratio)
    assert there.p_slower == pytest.approx(back.p_faster)
    assert there.lower_ratio <= there.estimate_ratio <= there.upper_ratio


SLOW = [1.20, 1.21, 1.22, 1.19, 1.2, 1.18]
SAME = [1.00, 1.001, 0.999, 1.0, 1.002, 0.998]
LOOKS_SLOWER = [1.06, 1.20, 1.05, 1.14, 1.22, 1.08]


@pytest.mark.parametrize(
    ("ratios", "outcome"),
    [
        (SLOW, Outcome.REGRESSED),
        ([0.80, 0.81, 0.82, 0.79, 0.8, 0.78], Outcome.IMPROVED),
        (SAME, Outcome.PASS),
        ([1.00, 1.1, 0.9, 1.05, 0.97, 1.01], Outcome.INCONCLUSIVE),
        (LOOKS_SLOWER, Outcome.SUSPECT),
        ([1.20, 1.21, 1.22, 1.19], Outcome.INCONCLUSIVE),
        ([1.0] * 4, Outcome.INCONCLUSIVE),
        ([1.0] * 20, Outcome.INCONCLUSIVE),
        ([1.5] * 20, Outcome.SUSPECT),
    ],
)
def test_pairs_decide(ratios: list[float], outcome: Outcome) -> None:
    assert verdict(ratios).outcome is outcome


def test_a_part_stands_alone_or_where_its_phase_has_changed() -> None:
    """A part whose family does not let it stand looks slower; within its margin it is open, or passes."""
    part = PARTS[0]
    alone = {part: sides([1.30, 1.55, 1.38, 1.62, 1.33, 1.48])}
    quiet = {**suite_pairs(np.random.default_rng(3), 6), **alone}
    slow = {**quiet, PREFILL: sides(SLOW)}

    def outcome(pairs: Pairs, margin: float = 0.05) -> Outcome:
        return verdicts_at(pairs, dict.fromkeys(pairs, margin), SUITE, share_ratio=0.2)[part].outcome

    assert [outcome(pairs) for pairs in (quiet, alone, slow)] == [
        *(Outcome.SUSPECT, Outcome.REGRESSED, Outcome.REGRESSED),
    ]
    assert outcome(alone, 0.8) is not Outcome.SUSPECT


def test_noisy_parts_seldom_look_slower_where_nothing_changed() -> None:
    """All of them together, as llama-cpp-python's 35 calls of 6 pairs that scatter by 30 %: in one run of 50."""
    rng = np.random.default_rng(5)
    n_suspect = 0
    for _ in range(400):
        ratios = np.exp(rng.normal(0.0, 0.3, (35, 6)))
        pairs = {f"binding/{number}": sides([float(each) for each in row]) for number, row in enumerate(ratios)}
        found = verdicts_at(pairs, dict.fromkeys(pairs, 0.05), Suite(), share_ratio=1.0)
        n_suspect += any(each.outcome is Outcome.SUSPECT for each in found.values())
    assert n_suspect <= 16


def test_what_others_took_of_one_side_makes_no_verdict() -> None:
    """A slowdown, a gain and a pass that the sides' waiting may account for are open; others stay."""
    taken = [0.17, 0.18, 0.19, 0.18, 0.17, 0.18]
    given = [-each for each in taken]
    assert verdict(SLOW, lost={PREFILL: taken}).outcome is Outcome.INCONCLUSIVE
    assert verdict(SAME, lost={PREFILL: given}).outcome is Outcome.INCONCLUSIVE
    assert verdict([1 / each for each in SLOW], lost={PREFILL: given}).outcome is not Outcome.IMPROVED
    assert verdict(SLOW, lost={PREFILL: [0.01, -0.01, 0.02, -0.02, 0.0, 0.01]}).outcome is Outcome.REGRESSED


def test_the_reason_says_estimate_interval_margin_pairs_and_what_would_decide() -> None:
    found = paired_reason(verdict([1.00, 1.03, 0.97, 1.02, 0.98, 1.01]), 0.02)
    assert found == "+0.1 % (-3.6 % to +4.0 %), margin 2 %, 6 pairs; within +4.0 %; about 20 more pairs would decide"
    found = paired_reason(verdict(LOOKS_SLOWER), 0.02)
    assert found.startswith("+12.3 % (+")
    assert "; looks slower, not proven; about " in found
    assert "all pairs are alike" in paired_reason(verdict([1.5] * 20), 0.02)
    wide = verdict([1.00, 1.03, 0.97, 1.02, 0.98, 1.01], margin=0.8)
    assert "margin 80 %, for it is a small part of its step, 6 pairs" in paired_reason(wide, 0.02)


class Recorded:
    """A run that was stored whole and whose budget allows so many pairs, and more where it is asked once more."""

    def __init__(self, pairs: Pairs, n_budget: int = 1000, n_extra: int = 1000) -> None:
        self.pairs, self.n_budget, self.n_extra = pairs, n_budget, n_extra
        self.looks: list[tuple[int, bool]] = []

    def __call__(self, n_pairs: int, is_extra: bool) -> Pairs:
        n_taken = min(n_pairs, self.n_extra if is_extra else self.n_budget)
        self.looks.append((n_taken, is_extra))
        return {case_id: (old[:n_taken], new[:n_taken]) for case_id, (old, new) in self.pairs.items()}

    def judged(self, **options: object) -> dict[str, PairedVerdict]:
        return compare_in_looks(self, dict.fromkeys(self.pairs, 0.02), SUITE, **options)  # type: ignore[arg-type]


GROSS = SLOW * 30
OPEN = [1.00, 1.06, 0.94, 1.08, 0.93, 1.01] * 30


@pytest.mark.parametrize(
    ("ratios", "n_budget", "looks", "outcome"),
    [
        (GROSS, 1000, [6], Outcome.REGRESSED),
        (GROSS, 5, [5], Outcome.REGRESSED),
        (GROSS, 4, [4, 4], Outcome.INCONCLUSIVE),
        (GROSS, 0, [0], None),
        (OPEN, 1000, [6, 10, 16, 24, 40, 64, 104, 168], Outcome.INCONCLUSIVE),
        (OPEN, 13, [6, 10, 13], Outcome.INCONCLUSIVE),
    ],
)
def test_a_question_is_looked_at_until_it_is_decided_or_the_budget_ends(
    ratios: list[float], n_budget: int, looks: list[int], outcome: Outcome | None
) -> None:
    run = Recorded({PREFILL: sides(ratios)}, n_budget, n_extra=n_budget)
    found = run.judged()
    assert [n_pairs for n_pairs, _ in run.looks] == looks
    assert (found[PREFILL].outcome if found else None) is outcome


def test_a_run_that_would_end_suspect_or_has_too_few_pairs_takes_more_once() -> None:
    """It is extended beyond its budget once; what is open and looks no slower is not."""
    run = Recorded({PREFILL: sides(LOOKS_SLOWER * 4)}, n_budget=7, n_extra=11)
    assert run.judged()[PREFILL].n_pairs == run.looks[-1][0]
    assert run.looks[:3] == [(6, False), (7, False), (11, True)]
    run = Recorded({PREFILL: sides(OPEN)}, n_budget=7)
    run.judged()
    assert run.looks == [(6, False), (7, False)]
    run = Recorded({PREFILL: sides(GROSS)}, n_budget=3, n_extra=7)
    assert run.judged()[PREFILL].outcome is Outcome.REGRESSED
    assert run.looks == [(3, False), (7, True)]
    run = Recorded({PREFILL: sides(GROSS)}, n_budget=0, n_extra=7)
    assert (run.judged(), run.looks) == ({}, [(0, False)])


@pytest.mark.parametrize(
    ("ratios", "lost", "is_suspect"),
    [
        ([2.6, 2.8, 2.7, 2.5], 0.45, True),
        ([2.6, 2.8, 2.7, 2.5], 1.0, False),  # others may have taken all of it
        ([1.2, 6.0], 0.1, False),
        ([3.7, 3.6, 3.8, 3.7], 1.2, False),  # as one build beside a neighbour in phase with one side
        ([1.0, 1.01, 0.99], 0.0, False),
    ],
)
def test_disturbed_pairs_show_what_is_slower_whatever_others_took(
    ratios: list[float], lost: float, is_suspect: bool
) -> None:
    """A question is suspect where all that the new side lost cannot explain it; a part never is."""
    pairs = {PREFILL: sides(ratios), PARTS[0]: sides(ratios)}
    found = slower_at_worst(
        pairs, dict.fromkeys(pairs, 0.02), SUITE, lost={PREFILL: [lost] * len(ratios)}, n_disturbed=1
    )
    assert {case_id: each.outcome for case_id, each in found.items()} == (
        {PREFILL: Outcome.SUSPECT} if is_suspect else {}
    )


def test_a_part_keeps_a_run_going_where_it_is_worth_it_and_can_be_decided() -> None:
    """An open part that is too small, or that no affordable number of pairs decides, is no reason for a look."""
    pairs = {PREFILL: sides(SAME * 30), PARTS[0]: sides(OPEN)}
    for options, n_looks in (
        ({}, 7),
        ({"is_worth_it": lambda case_id: case_id != PARTS[0]}, 1),
        ({"n_affordable": lambda: 12.0}, 1),
    ):
        run = Recorded(pairs)
        run.judged(**options)
        assert len(run.looks) >= n_looks if not options else len(run.looks) == n_looks


def test_the_looks_share_an_error_of_one() -> None:
    assert sum(share for _, share in LOOKS) <= 1.0
    assert [n_pairs for n_pairs, _ in LOOKS] == sorted({n_pairs for n_pairs, _ in LOOKS})
    assert LOOKS[0][0] > LEAST_PAIRS


def test_neighbours_that_are_alike_are_judged_in_twos() -> None:
    drifting = [1.0 + 0.03 * math.sin(place / 3.0) for place in range(24)]
    pairs = {PREFILL: sides(drifting)}
    assert (lag_correlation(pairs, SUITE) or 0.0) > 0.8
    assert correlation_note(pairs, SUITE)[0].endswith("judged are the means of two neighbours")
    found = verdicts_at(pairs, {PREFILL: 0.02}, SUITE, share_ratio=0.2)[PREFILL]
    assert (found.n_pairs, found.change.n_pairs) == (24, 12)
    assert lag_correlation({PREFILL: sides(drifting[:11])}, SUITE) is None
    assert correlation_note({PREFILL: sides(drifting[:11])}, SUITE) == ()


@pytest.mark.long_but_first
@pytest.mark.parametrize("deviation", [0.015, 0.05])
def test_an_unchanged_run_is_hardly_ever_red(deviation: float) -> None:
    """Of 300 simulated runs of 53 unchanged cases, at three looks, at most 2 have an alarm."""
    generator = np.random.default_rng(7)
    n_red = 0
    for _ in range(300):
        run = Recorded(suite_pairs(generator, 16, deviation=deviation), n_budget=16, n_extra=16)
        n_red += any(each.outcome is Outcome.REGRESSED for each in run.judged().values())
    assert n_red <= 2


@pytest.mark.parametrize(("effect", "n_pairs", "least"), [(0.05, 22, 0.95), (0.10, 6, 0.9), (0.20, 6, 0.97)])
def test_a_slowdown_is_found(effect: float, n_pairs: int, least: float) -> None:
    """A question that is 5 % slower is found in 22 pairs, and a gross one in six."""
    generator = np.random.default_rng(8)
    runs = [
        Recorded({PREFILL: sides(noisy(generator, n_pairs, effect=effect))}, n_pairs, n_pairs).judged()[PREFILL].outcome
        for _ in range(200)
    ]
    assert runs.count(Outcome.REGRESSED) / len(runs) >= least
