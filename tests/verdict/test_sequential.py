"""Verdicts from runs of pairs that grow as needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.outcome import Outcome
from perfsuite.verdict.judge_pairs import paired_reason
from perfsuite.verdict.sequential import STANDARD_DESIGN, Design, PairedVerdict, Pairs, compare_sequentially
from perfsuite.verdict.signed_rank import compare_pairs

#: More than any run takes.
N_STORED = 64
OLD_NS = 10**8
CASE = "phase/a/b/decode"


class Recorded:
    """A run that was stored whole: gives as many pairs as are asked for, at most `n_most`, and remembers the looks."""

    def __init__(self, new_ns: Mapping[str, Sequence[int]], n_most: int = N_STORED) -> None:
        self.new_ns = new_ns
        self.n_most = n_most
        self.looks: list[int] = []

    def __call__(self, n_pairs: int) -> Pairs:
        """Return the first pairs of all cases."""
        self.looks.append(n_pairs)
        taken = {case_id: tuple(new)[: min(n_pairs, self.n_most)] for case_id, new in self.new_ns.items()}
        return {case_id: ((OLD_NS,) * len(new), new) for case_id, new in taken.items()}


def _first(sides: tuple[Sequence[int], Sequence[int]], n_pairs: int) -> Pairs:
    return {CASE: (sides[0][:n_pairs], sides[1][:n_pairs])}


def _all(pairs: Pairs, _n_pairs: int) -> Pairs:
    return pairs


def constant(*ratios: float) -> tuple[int, ...]:
    """New latencies whose ratios repeat over and over."""
    return tuple(round(OLD_NS * ratio) for ratio, _ in zip(itertools.cycle(ratios), range(N_STORED), strict=False))


def judged(collect: Recorded, margin: float = 0.02, **options: object) -> dict[str, PairedVerdict]:
    """Judge all cases of a run by one margin."""
    return compare_sequentially(collect, dict.fromkeys(collect.new_ns, margin), **options)  # type: ignore[arg-type]


#: Confirms all that it flags.
_CAREFUL = replace(STANDARD_DESIGN, outright_alphas=(0.0,) * len(STANDARD_DESIGN.screen_looks), last_alpha=0.0)


def simulated(
    generator: np.random.Generator, n_cases: int = 1, *, effect: float = 0.0, deviation: float = 0.02, freedom: int = 3
) -> Recorded:
    """A suite whose log ratios are heavy-tailed, half of their variance shared by all cases of a pair."""
    noise = generator.standard_t(freedom, size=(n_cases + 1, N_STORED)) / math.sqrt(freedom / (freedom - 2))
    mixed = noise[1:] if n_cases == 1 else math.sqrt(0.5) * (noise[0] + noise[1:])
    new = np.rint(OLD_NS * (1.0 + effect) * np.exp(deviation * mixed)).astype(np.int64)
    return Recorded({f"case/{index}": row for index, row in enumerate(new.tolist())})


def share(outcome: Outcome, n_runs: int, *, seed: int, margin: float = 0.02, **noise: float) -> float:
    """Return in which share of simulated runs of one case it has the outcome."""
    generator = np.random.default_rng(seed)
    runs = (judged(simulated(generator, **noise), margin) for _ in range(n_runs))  # type: ignore[arg-type]
    return sum(verdict.outcome is outcome for run in runs for verdict in run.values()) / n_runs


@pytest.mark.parametrize("margin", [0.0, 0.02])
@pytest.mark.parametrize("deviation", [0.005, 0.02, 0.1])
def test_an_unchanged_case_is_hardly_ever_a_regression(deviation: float, margin: float) -> None:
    """With heavy-tailed noise of 0.5 to 10 %, far fewer than 1 % of unchanged cases are REGRESSED."""
    assert share(Outcome.REGRESSED, 3000, seed=1, deviation=deviation, margin=margin) <= 0.002


@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_an_unchanged_suite_is_hardly_ever_red(margin: float) -> None:
    """Of suites with 50 correlated cases and nothing changed, fewer than 5 % have any REGRESSED case."""
    generator = np.random.default_rng(2)
    runs = [judged(simulated(generator, 50), margin).values() for _ in range(400)]
    assert sum(any(verdict.outcome is Outcome.REGRESSED for verdict in run) for run in runs) / len(runs) < 0.05


def test_an_unchanged_case_mostly_passes() -> None:
    """At noise as large as the margin most unchanged cases PASS, and at half of it nearly all do."""
    assert share(Outcome.PASS, 400, seed=3) >= 0.8
    assert share(Outcome.PASS, 400, seed=3, deviation=0.01) >= 0.95


@pytest.mark.parametrize(
    ("effect", "freedom", "least"), [(0.05, 3, 0.95), (0.05, 30, 0.95), (0.03, 3, 0.7), (0.03, 30, 0.7)]
)
def test_a_slowdown_is_seen(effect: float, freedom: int, least: float) -> None:
    """At noise and margin of 2 %, a slowdown of 5 % is REGRESSED in 95 % of the runs, and one of 3 % in 70 %."""
    assert share(Outcome.REGRESSED, 400, seed=4, effect=effect, freedom=freedom) >= least


def test_a_uniform_slowdown_of_a_large_suite_is_seen() -> None:
    """Though Holm over 200 cases asks for a p-value that 14 pairs cannot give, the slowdown of all is confirmed."""
    generator = np.random.default_rng(5)
    verdicts = judged(simulated(generator, 200, effect=0.06, deviation=0.01)).values()
    assert sum(verdict.outcome is Outcome.REGRESSED for verdict in verdicts) >= 190


def test_a_confirmed_change_is_estimated_without_a_bias() -> None:
    """The mean estimate of what is REGRESSED is near the truth, though the screen picks the cases that look worst."""
    generator = np.random.default_rng(6)
    runs = (judged(simulated(generator, 20, effect=0.04)) for _ in range(20))
    seen = [each.change.estimate_ratio for run in runs for each in run.values() if each.outcome is Outcome.REGRESSED]
    assert np.mean(seen) == pytest.approx(1.04, abs=0.003)


@pytest.mark.parametrize(
    ("ratio", "outcome", "looks"),
    [
        (1.0, Outcome.PASS, [8]),
        (1.01, Outcome.PASS, [8]),
        (0.99, Outcome.PASS, [8]),
        (1.03, Outcome.REGRESSED, [8, 11]),
        (0.9, Outcome.IMPROVED, [8, 11]),
    ],
)
def test_constant_pairs_are_decided_at_once(ratio: float, outcome: Outcome, looks: list[int]) -> None:
    """Without noise the first look passes a case, and the second one shows a change outright."""
    collect = Recorded({CASE: constant(ratio)})
    verdict = judged(collect)[CASE]
    assert (verdict.outcome, collect.looks, verdict.is_flagged) == (outcome, looks, outcome is not Outcome.PASS)
    assert verdict.change.estimate_ratio == pytest.approx(ratio)
    assert (verdict.change.n_pairs, verdict.n_pairs) == (looks[-1], looks[-1])
    assert verdict.smallest_effect_ratio == pytest.approx(1.02)
    assert verdict.n_more_pairs is None


_RATIOS = st.lists(st.floats(0.8, 1.25), min_size=1, max_size=40).map(lambda ratios: constant(*ratios))


@given(_RATIOS)
def test_a_run_against_itself_is_no_regression(new: tuple[int, ...]) -> None:
    """The same latencies on both sides are a PASS, whatever they are."""
    verdicts = compare_sequentially(partial(_first, (new, new)), {CASE: 0.02})
    assert verdicts[CASE].outcome is Outcome.PASS


@given(_RATIOS)
def test_exchanging_the_sides_exchanges_the_claims(new: tuple[int, ...]) -> None:
    """What is REGRESSED one way is never so the other way, and what is IMPROVED never both ways."""
    old = (OLD_NS,) * N_STORED
    there, back = (
        compare_sequentially(partial(_first, sides), {CASE: 0.02})[CASE].outcome for sides in ((old, new), (new, old))
    )
    claims = {Outcome.REGRESSED, Outcome.IMPROVED}
    assert there not in claims or there is not back


def test_a_slowdown_is_an_improvement_the_other_way() -> None:
    """A clear change is REGRESSED one way and IMPROVED the other, by inverse ratios."""
    slower, faster = (judged(Recorded({CASE: constant(ratio)}))[CASE] for ratio in (1.25, 0.8))
    assert (slower.outcome, faster.outcome) == (Outcome.REGRESSED, Outcome.IMPROVED)
    assert slower.change.estimate_ratio == pytest.approx(1.0 / faster.change.estimate_ratio)


@given(st.lists(_RATIOS, min_size=2, max_size=5), st.data())
def test_the_order_of_the_cases_does_not_matter(rows: list[tuple[int, ...]], data: st.DataObject) -> None:
    """Any order of the cases gives the same verdicts."""
    cases = {f"case/{index}": row for index, row in enumerate(rows)}
    shuffled = dict(data.draw(st.permutations(list(cases.items()))))
    assert judged(Recorded(shuffled)) == judged(Recorded(cases))


def test_only_cases_with_a_margin_are_judged() -> None:
    """A margin without a pair has no verdict; a case that passed stays as it was at further looks."""
    collect = Recorded({"a": constant(1.0), "b": constant(2.0), "c": ()})
    assert (list(compare_sequentially(collect, {"missing": 0.02, "c": 0.02, "a": 0.02})), collect.looks) == (["a"], [8])
    late = (*constant(1.0)[:8], *constant(1.2)[8:])
    collect = Recorded({"late": late, "open": constant(0.97, 1.0, 1.03)})
    verdict = judged(collect)["late"]
    assert collect.looks[:2] == [8, 11]
    assert (verdict.outcome, verdict.change.n_pairs, verdict.n_pairs) == (Outcome.PASS, 8, collect.looks[-1])


@pytest.mark.parametrize(("margin", "outcome"), [(0.02, Outcome.REGRESSED), (0.10, Outcome.PASS)])
def test_each_case_has_its_own_margin(margin: float, outcome: Outcome) -> None:
    """The same pairs are beyond one margin and within another."""
    assert judged(Recorded({CASE: constant(1.05)}), margin)[CASE].outcome is outcome


def test_a_hopeless_case_is_not_looked_at_again() -> None:
    """Far beyond the margin in noise, or exactly at it, no number of pairs would decide."""
    collect = Recorded({CASE: constant(0.5, 2.0, 0.6, 1.6)})
    verdict = judged(collect)[CASE]
    assert (collect.looks, verdict.outcome, verdict.n_more_pairs) == ([8], Outcome.INCONCLUSIVE, None)
    assert verdict.smallest_effect_ratio == pytest.approx(2.0, rel=0.05)
    verdict = judged(Recorded({CASE: constant(1.5)}), margin=0.5)[CASE]
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.n_more_pairs is None


def test_what_fresh_pairs_do_not_show_is_not_confirmed() -> None:
    """A change of the screen's pairs alone passes where fresh ones rule it out, and is open where they do not."""
    collect = Recorded({CASE: (*constant(1.1)[:8], *constant(1.001)[8:])})
    verdict = judged(collect, design=_CAREFUL)[CASE]
    assert collect.looks == [8, 16, 22, 28]
    assert (verdict.outcome, verdict.is_flagged, verdict.change.n_pairs) == (Outcome.PASS, True, 20)
    assert paired_reason(verdict, 0.02).endswith("margin 2 %; flagged by the screen and not confirmed")
    collect = Recorded({CASE: (*constant(1.1)[:8], *constant(0.9, 1.15)[8:])})
    verdict = judged(collect)[CASE]
    assert (verdict.outcome, verdict.is_flagged, verdict.change.n_pairs) == (Outcome.INCONCLUSIVE, True, 20)


@pytest.mark.parametrize(("n_flagged", "looks"), [(1, [8, 16]), (2, [8, 17]), (10, [8, 20]), (200, [8, 24])])
def test_fresh_pairs_are_as_many_as_the_flagged_need(n_flagged: int, looks: list[int]) -> None:
    """A look that could not confirm the first of the flagged by Holm is put off to the first that can."""
    collect = Recorded({f"case/{index}": constant(1.5) for index in range(n_flagged)})
    assert {verdict.outcome for verdict in judged(collect, design=_CAREFUL).values()} == {Outcome.REGRESSED}
    assert collect.looks == looks


@pytest.mark.parametrize(
    ("n_slower", "n_cases", "looks"),
    [(1, 2, [8, 11]), (1, 50, [8, 11, 14]), (50, 50, [8, 11, 14]), (1, 200, [8, 16]), (200, 200, [8, 11, 14, 20])],
)
def test_a_gross_change_needs_no_fresh_pairs(n_slower: int, n_cases: int, looks: list[int]) -> None:
    """The screen goes on where its next looks decide among all cases sooner than fresh pairs would confirm."""
    slower = {f"slow/{index}": constant(1.5) for index in range(n_slower)}
    same = {f"same/{index}": constant(1.0) for index in range(n_cases - n_slower)}
    collect = Recorded(slower | same)
    verdicts = judged(collect)
    assert {case_id for case_id, each in verdicts.items() if each.outcome is Outcome.REGRESSED} == slower.keys()
    assert collect.looks == looks


def test_an_outright_change_takes_the_time_of_a_confirmation() -> None:
    """Where the screen may take no further look, a gross change is decided all the same; others are not."""
    new_ns = {"slow": constant(1.5), "same": constant(1.0), "open": constant(0.97, 1.0, 1.03)}
    collect = Recorded(new_ns)
    verdicts = judged(collect, may_go_on=lambda _: False, may_confirm=lambda n_pairs: n_pairs <= 14)
    assert verdicts["slow"].outcome is Outcome.REGRESSED
    assert collect.looks == [8, 11, 14]


@pytest.mark.parametrize(("n_most", "outcome"), [(13, Outcome.INCONCLUSIVE), (15, Outcome.REGRESSED)])
def test_a_run_that_ends_early_decides_what_is_gross(n_most: int, outcome: Outcome) -> None:
    """Beside an unsteady change, for which fresh pairs are taken, a gross one is decided by all the pairs there are."""
    unsteady = (*constant(1.03, 1.2)[:8], *constant(0.9, 1.3)[8:])
    same = {f"same/{index}": constant(1.0) for index in range(40)}
    collect = Recorded({"gross": constant(60.0), "unsteady": unsteady} | same, n_most=n_most)
    verdicts = judged(collect)
    assert verdicts["gross"].outcome is outcome
    assert verdicts["unsteady"].outcome is Outcome.INCONCLUSIVE


def test_what_does_not_stay_outright_is_confirmed_on_fresh_pairs() -> None:
    """What further pairs take back is none; each confirmed case keeps the look that confirmed it."""
    collect = Recorded({CASE: (*constant(1.5)[:8], *constant(0.7)[8:])})
    verdict = judged(collect)[CASE]
    assert verdict.outcome is Outcome.PASS
    assert collect.looks[:2] == [8, 11]
    slow = (*constant(1.2)[:8], OLD_NS, OLD_NS, *constant(1.2)[10:])
    collect = Recorded({"early": constant(1.5), "slow": slow})
    verdicts = judged(collect, design=_CAREFUL)
    assert (collect.looks, [verdict.change.n_pairs for verdict in verdicts.values()]) == ([8, 17, 22], [9, 14])
    assert {verdict.outcome for verdict in verdicts.values()} == {Outcome.REGRESSED}


@pytest.mark.parametrize(
    ("n_most", "ratio", "outcome"),
    [
        (5, 1.5, Outcome.INCONCLUSIVE),
        (5, 1.0, Outcome.INCONCLUSIVE),
        (8, 1.5, Outcome.INCONCLUSIVE),
        (10, 1.5, Outcome.INCONCLUSIVE),
        (10, 0.5, Outcome.PASS),
        (15, 1.5, Outcome.INCONCLUSIVE),
        (16, 1.5, Outcome.REGRESSED),
    ],
)
def test_a_run_that_gives_up_is_judged_by_what_there_is(n_most: int, ratio: float, outcome: Outcome) -> None:
    """When no more pairs come nothing further is asked for; without enough fresh pairs nothing is confirmed."""
    collect = Recorded({CASE: constant(ratio)}, n_most=n_most)
    verdict = judged(collect, design=_CAREFUL)[CASE]
    assert (verdict.outcome, verdict.n_pairs, collect.looks) == (outcome, n_most, [8] if n_most < 8 else [8, 16])


def test_too_few_pairs_show_their_number() -> None:
    """Without an interval no effect could be seen; a margin that is a share of the step says so."""
    verdict = judged(Recorded({CASE: constant(1.1)}, n_most=3))[CASE]
    assert (verdict.smallest_effect_ratio, verdict.n_more_pairs) == (None, None)
    assert paired_reason(verdict, 0.02) == "+10.0 % (too few pairs for an interval: 3), margin 2 %"
    verdict = _verdict(Outcome.PASS, margin_ratio=0.8)
    assert paired_reason(verdict, 0.02).endswith("margin 80 %, for it is a small part of its step")


def test_a_case_that_lost_a_pair_is_still_confirmed() -> None:
    """Cases of one run may differ in their number of pairs: fresh are those after its own."""

    def collect(n_pairs: int) -> Pairs:
        return {
            "whole": ((100,) * n_pairs, (150,) * n_pairs),
            "short": ((100,) * (n_pairs - 1), (150,) * (n_pairs - 1)),
        }

    verdicts = compare_sequentially(collect, {"whole": 0.02, "short": 0.02}, design=_LENIENT)
    assert [verdict.outcome for verdict in verdicts.values()] == [Outcome.REGRESSED] * 2
    assert [verdict.n_pairs for verdict in verdicts.values()] == [18, 17]


_LENIENT = Design(
    screen_looks=(9,),
    screen_alphas=(0.01,),
    outright_alphas=(0.0,),
    last_alpha=0.0,
    confirm_looks=(9,),
    confirm_alphas=(0.01,),
)


def test_a_run_that_has_more_pairs_is_judged_as_it_would_have_been() -> None:
    """A stored run that returns everything at once gives the verdict of one that grew."""
    generator = np.random.default_rng(8)
    for _ in range(20):
        collect = simulated(generator, 3, effect=0.03)
        whole = collect(N_STORED)
        assert compare_sequentially(partial(_all, whole), dict.fromkeys(whole, 0.02)) == judged(collect)


@pytest.mark.parametrize(
    ("ratios", "budget", "asked", "outcome"),
    [
        ((1.5,), 8, [16], Outcome.INCONCLUSIVE),
        ((0.5,), 8, [16], Outcome.PASS),
        ((1.5,), 16, [16], Outcome.REGRESSED),
        ((0.97, 1.0, 1.03), 8, [11], Outcome.INCONCLUSIVE),
        ((1.0,), 0, [], Outcome.PASS),
    ],
)
def test_the_budget_is_asked_before_more_pairs_are_taken(
    ratios: tuple[float, ...], budget: int, asked: list[int], outcome: Outcome
) -> None:
    """The first look is taken in any case; before each further one the budget is asked, and obeyed."""
    questions: list[int] = []

    def may_go_on(n_pairs: int) -> bool:
        questions.append(n_pairs)
        return n_pairs <= budget

    collect = Recorded({CASE: constant(*ratios)})
    verdict = judged(collect, may_go_on=may_go_on, may_confirm=may_go_on, design=_CAREFUL)[CASE]
    assert (verdict.outcome, questions) == (outcome, asked)
    assert collect.looks == [8, *(look for look in asked if look <= budget)]


def test_the_screen_leaves_the_budget_for_a_confirmation() -> None:
    """What is flagged is confirmed first, by a budget of its own."""
    new_ns = {"slow": constant(1.5), "open": constant(0.97, 1.0, 1.03)}
    collect = Recorded(new_ns)
    verdicts = judged(collect, design=_CAREFUL, may_confirm=lambda n_pairs: n_pairs <= 18)
    assert verdicts["slow"].outcome is Outcome.REGRESSED
    assert verdicts["open"].outcome is Outcome.INCONCLUSIVE
    assert collect.looks == [8, 16]
    collect = Recorded({CASE: constant(1.5)})
    assert judged(collect, may_go_on=lambda _: False, design=_CAREFUL)[CASE].outcome is Outcome.REGRESSED
    assert collect.looks == [8, 16]


def test_a_case_that_is_not_worth_it_is_no_reason_for_another_look() -> None:
    """An open case is judged at the looks that others are taken for, and causes none by itself."""
    new_ns = {"worthy": constant(0.97, 1.0, 1.03), "idle": constant(0.97, 1.0, 1.03)}
    alone = Recorded({"idle": new_ns["idle"]})
    compare_sequentially(alone, {"idle": 0.02}, is_worth_it=lambda case_id: case_id != "idle")
    assert alone.looks == [8]
    both = Recorded(new_ns)
    verdicts = compare_sequentially(both, dict.fromkeys(new_ns, 0.02), is_worth_it=lambda case_id: case_id != "idle")
    assert len(both.looks) > 1
    assert verdicts["idle"] == verdicts["worthy"]


def test_no_run_is_longer_than_the_design() -> None:
    """One case takes at most the last look of the screen and the last one of the confirmation."""
    generator = np.random.default_rng(9)
    n_most = STANDARD_DESIGN.screen_looks[-1] + STANDARD_DESIGN.confirm_looks[-1]
    runs = (judged(simulated(generator, effect=0.025), design=_CAREFUL) for _ in range(300))
    taken = [verdict.n_pairs for run in runs for verdict in run.values()]
    assert max(taken) == n_most
    screened = STANDARD_DESIGN.screen_looks
    confirmed = {first + fresh for first in screened for fresh in STANDARD_DESIGN.confirm_looks}
    assert set(taken) <= {*screened, *confirmed}


@pytest.mark.parametrize("margin", [-0.01, math.nan, math.inf])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    """A margin is finite and not negative; the case is named, and nothing is run."""
    collect = Recorded({CASE: constant(1.0)})
    with pytest.raises(ValueError, match=rf"^{CASE}: the margin is {margin}"):
        judged(collect, margin)
    assert collect.looks == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"screen_looks": ()}, "screen: 0 looks and 4 alphas"),
        ({"outright_alphas": (0.01,)}, r"outright: alphas are \(0.01, 0.003\), expected 0 to 0.5"),
        ({"confirm_alphas": (0.01,)}, "confirm: 3 looks and 1 alphas"),
        ({"screen_looks": (8, 8, 14, 20)}, "later than the one before"),
        (
            {"confirm_looks": (7, 14, 20)},
            "confirm: alpha is 0.004 at 7 pairs, expected at least 0.0078125 and below 0.5",
        ),
        ({"screen_alphas": (0.5, 0.002, 0.002, 0.002)}, "screen: alpha is 0.5 at 8 pairs"),
        ({"screen_alphas": (math.nan, 0.002, 0.002, 0.002)}, "screen: alpha is nan at 8 pairs"),
    ],
)
def test_a_design_that_cannot_decide_is_refused(change: dict[str, tuple[float, ...]], message: str) -> None:
    """Looks need errors, grow, and are late enough for their error."""
    with pytest.raises(ValueError, match=message):
        replace(STANDARD_DESIGN, **change)  # type: ignore[arg-type]


def test_the_standard_design_spends_one_percent_each_stage() -> None:
    """The errors of the looks of each stage sum to 1 %."""
    assert sum(STANDARD_DESIGN.screen_alphas) == pytest.approx(0.01)
    assert sum(STANDARD_DESIGN.outright_alphas) + STANDARD_DESIGN.last_alpha == pytest.approx(0.01)
    assert sum(STANDARD_DESIGN.confirm_alphas) == pytest.approx(0.01)


def _verdict(outcome: Outcome, **changes: object) -> PairedVerdict:
    old = [1000] * 9
    new = [992, 1034, 1012, 1012, 1012, 1012, 1012, 1011, 1013]
    verdict = PairedVerdict(
        outcome=outcome,
        change=replace(compare_pairs(old, new, alpha=0.01), lower_ratio=0.992, upper_ratio=1.034),
        margin_ratio=0.02,
        n_pairs=9,
        is_flagged=False,
        smallest_effect_ratio=1.026,
        n_more_pairs=12,
    )
    return replace(verdict, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (_verdict(Outcome.PASS), "; passes at 3.4 %"),
        (_verdict(Outcome.REGRESSED, is_flagged=True), ""),
        (
            _verdict(Outcome.INCONCLUSIVE),
            "; the smallest detectable change is +2.6 %, about 12 more pairs would decide",
        ),
        (
            _verdict(Outcome.INCONCLUSIVE, n_more_pairs=1),
            "; the smallest detectable change is +2.6 %, about 1 more pair would decide",
        ),
        (_verdict(Outcome.INCONCLUSIVE, n_more_pairs=None), "; the smallest detectable change is +2.6 %"),
        (
            _verdict(Outcome.INCONCLUSIVE, is_flagged=True, n_more_pairs=None),
            "; flagged by the screen and not confirmed; the smallest detectable change is +2.6 %",
        ),
    ],
)
def test_the_reason_says_what_was_seen_and_what_would_decide(verdict: PairedVerdict, reason: str) -> None:
    """Every reason has the change, its interval and the margin; an undecided one what could be known, and how."""
    assert paired_reason(verdict, 0.02) == f"+1.2 % (-0.8 % to +3.4 %), margin 2 %{reason}"


def test_as_many_more_pairs_as_are_reported_decide() -> None:
    """Pairs that repeat their noise are decided by about as many as the first verdict shows."""
    new = constant(0.97, 1.0, 1.03, 0.99, 1.01)
    short = judged(Recorded({CASE: new}), may_go_on=lambda _n_pairs: False)[CASE]
    assert short.outcome is Outcome.INCONCLUSIVE
    assert short.n_more_pairs is not None
    n_pairs = 8 + short.n_more_pairs
    assert compare_pairs([OLD_NS] * n_pairs, new[:n_pairs], alpha=0.004).upper_ratio < 1.02


def _noisy(n_pairs: int) -> Pairs:
    """Return pairs of two cases whose ratios scatter by 6 % either way: one is unchanged, one is 4 % slower."""
    ratios = (0.94, 1.06, 0.96, 1.04, 0.98, 1.02, 0.99, 1.01)
    old = [10**6] * n_pairs
    return {
        name: (old, [round(10**6 * factor * ratio) for ratio in (ratios * 8)[:n_pairs]])
        for name, factor in (("same", 1.0), ("slower", 1.04))
    }


def _never(_: int) -> bool:
    return False


def test_what_pairs_rule_out_passes_at_that() -> None:
    """Open to the end, a case passes at its bound, within the limit, unless its estimate is beyond the margin."""
    margins = {"same": 0.01, "slower": 0.01}
    undecided = compare_sequentially(_noisy, margins, may_go_on=_never)
    assert {each.outcome for each in undecided.values()} == {Outcome.INCONCLUSIVE}
    decided = compare_sequentially(_noisy, margins, may_go_on=_never, resolution_limit_ratio=0.10)
    same = decided["same"]
    assert same.outcome is Outcome.PASS
    assert same.resolution_ratio == pytest.approx(same.change.upper_ratio - 1.0)
    assert 0.01 < same.change.upper_ratio - 1.0 < 0.10
    assert decided["slower"].outcome is Outcome.INCONCLUSIVE
    strict = compare_sequentially(_noisy, margins, may_go_on=_never, resolution_limit_ratio=0.011)
    assert strict["same"].outcome is Outcome.INCONCLUSIVE


def test_margins_may_come_from_the_first_look() -> None:
    """They are asked for once, with the pairs of the first look, and count from there on."""
    asked = []

    def margins(pairs: Pairs) -> dict[str, float]:
        asked.append({name: len(old) for name, (old, _) in pairs.items()})
        return {"same": 0.5, "slower": 0.5}

    verdicts = compare_sequentially(_noisy, {"same": 0.01, "slower": 0.01}, margins_at_first_look=margins)
    assert asked == [{"same": 8, "slower": 8}]
    assert {(each.outcome, each.margin_ratio, each.n_pairs) for each in verdicts.values()} == {(Outcome.PASS, 0.5, 8)}
