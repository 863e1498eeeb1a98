"""From pairs to a judgement."""

from __future__ import annotations

import pytest

from perfsuite.records.case import Case
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.units import format_ns
from perfsuite.verdict.judge_pairs import judge_pairs
from perfsuite.verdict.pairs import Suite, verdicts_at

CASE = Case(case_id="phase/a/b/decode", kind="phase", phase=Phase.DECODE)
OLD = tuple(100_000 + 100 * step for step in range(40))


def judged(
    factor: float, n_pairs: int = 40, problems: tuple[str, ...] = (), counted_margin_ratio: float = 0.02
) -> Judgement:
    new = tuple(round(old * factor * (1.0 + 0.001 * (place % 3 - 1))) for place, old in enumerate(OLD[:n_pairs]))
    sides = (OLD[:n_pairs], new)
    margins = {CASE.case_id: counted_margin_ratio}
    verdict = verdicts_at({CASE.case_id: sides}, margins, Suite.of([CASE]), share_ratio=0.2).get(CASE.case_id)
    return judge_pairs(CASE, sides, verdict, margin_ratio=0.02, problems=problems)


@pytest.mark.parametrize(
    ("factor", "outcome"), [(1.0, Outcome.PASS), (1.2, Outcome.REGRESSED), (0.8, Outcome.IMPROVED)]
)
def test_pairs_decide(factor: float, outcome: Outcome) -> None:
    judgement = judged(factor)
    assert judgement.outcome is outcome
    assert (judgement.change_ratio, judgement.baseline_samples_ns) == (pytest.approx(factor, rel=0.01), OLD)
    assert (judgement.baseline_ns, judgement.measured_ns, judgement.margin_ratio) == (
        101_950,
        pytest.approx(101_950 * factor, rel=0.001),
        0.02,
    )


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
    judgement = judged(1.2, problems=("no",))
    assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "no")
    for sides, side, lost_ns in ((((), (7, 7)), "new", 7), (((5,), ()), "old", -5)):
        alone = judge_pairs(CASE, sides, None, margin_ratio=0.02)
        assert alone.reason == f"only the {side} side computes it: {format_ns(abs(lost_ns))}"
        assert (alone.outcome, alone.only_side, alone.lost_ns) == (Outcome.INCOMPARABLE, side, lost_ns)
    judgement = judge_pairs(CASE, ((), ()), None, margin_ratio=0.02)
    assert judgement.only_side is None
    assert judgement.outcome is Outcome.INCOMPARABLE
    assert (judgement.measured_ns, judgement.baseline_ns, judgement.margin_ratio) == (None, None, None)
