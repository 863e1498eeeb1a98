"""From pairs to a judgement."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import Case
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.verdict.judge_pairs import judge_pairs
from perfsuite.verdict.sequential import Pairs, compare_sequentially

CASE = Case(case_id="phase/a/b/decode", kind="phase", phase=Phase.DECODE)
OLD = tuple(1000 + step for step in range(40))


def judged(
    factor: float, n_pairs: int = 40, problems: tuple[str, ...] = (), counted_margin_ratio: float = 0.02
) -> Judgement:
    """Judge pairs whose new side takes `factor` as long."""
    sides = (OLD[:n_pairs], tuple(round(old * factor) for old in OLD[:n_pairs]))

    def collect(n: int) -> Pairs:
        return {CASE.case_id: (sides[0][:n], sides[1][:n])}

    verdict = compare_sequentially(collect, {CASE.case_id: counted_margin_ratio}).get(CASE.case_id)
    return judge_pairs(CASE, sides, verdict, margin_ratio=0.02, problems=problems)


@pytest.mark.parametrize(
    ("factor", "outcome"), [(1.0, Outcome.PASS), (1.2, Outcome.REGRESSED), (0.8, Outcome.IMPROVED)]
)
def test_pairs_decide(factor: float, outcome: Outcome) -> None:
    """A judgement carries what the pairs say, with the samples of both sides."""
    judgement = judged(factor)
    assert judgement.outcome is outcome
    assert (judgement.change_ratio, judgement.baseline_samples_ns) == (pytest.approx(factor, rel=0.01), OLD)
    assert (judgement.baseline_ns, judgement.measured_ns, judgement.margin_ratio) == (1020, round(1020 * factor), 0.02)


@pytest.mark.parametrize(("factor", "resolution_ratio"), [(1.0, 0.02), (1.2, 0.2)])
def test_a_pass_by_a_wide_margin_states_what_its_pairs_rule_out(factor: float, resolution_ratio: float) -> None:
    """Where a share of the step let a case change tenfold, its pairs still know how much slower it may be."""
    judgement = judged(factor, counted_margin_ratio=10.0)
    assert judgement.outcome is Outcome.PASS
    assert judgement.resolution_ratio == pytest.approx(resolution_ratio, rel=0.02)


def test_what_cannot_be_decided_says_why() -> None:
    """Too few pairs have no bounds, a problem comes first, and one side alone is incomparable."""
    judgement = judged(1.2, n_pairs=2)
    assert judgement.outcome is Outcome.INCONCLUSIVE
    assert (judgement.lower_ratio, judgement.upper_ratio) == (None, None)
    judgement = judged(1.2, problems=("no",))
    assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "no")
    judgement = judge_pairs(CASE, ((), ()), None, margin_ratio=0.02)
    assert judgement.outcome is Outcome.INCOMPARABLE
    assert (judgement.measured_ns, judgement.baseline_ns, judgement.margin_ratio) == (None, None, None)
