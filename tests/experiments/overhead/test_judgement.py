"""Verdicts on what following a run costs."""

from __future__ import annotations

import pytest

from perfsuite.experiments.overhead.judgement import LIMITS_RATIO, case_name, judge_overhead, parts_of
from perfsuite.experiments.overhead.measurement import COST_PHASES
from perfsuite.experiments.overhead.recorder_sides import CPU_COMPARISONS, OPENCL_COMPARISONS
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.paired import PairedRatio


def ratio(lower: float, median: float, upper: float) -> PairedRatio:
    """Return a ratio with its bounds."""
    return PairedRatio(lower_ratio=lower, median_ratio=median, upper_ratio=upper, n_pairs=12)


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        ((0.998, 1.001, 1.005), Outcome.PASS),
        ((0.998, 1.001, 1.0051), Outcome.INCONCLUSIVE),
        ((1.004, 1.006, 1.008), Outcome.INCONCLUSIVE),
        ((1.0051, 1.006, 1.008), Outcome.SLOW),
    ],
)
def test_the_bounds_decide(bounds: tuple[float, float, float], outcome: Outcome) -> None:
    """A limit is met by the upper bound, missed by the lower one, and undecided between them."""
    judgement = judge_overhead("overhead/layer/prefill", ratio(*bounds), reason="")
    assert judgement.outcome is outcome
    assert "limit +0.50 %" in judgement.reason
    assert judgement.change_ratio == bounds[1]


def test_decode_and_the_whole_have_limits_of_their_own() -> None:
    """What passes a decode fails a prefill, and the end to end has the larger limit."""
    bounds = ratio(1.006, 1.007, 1.008)
    outcomes = [judge_overhead(case_name("layer", phase), bounds, reason="").outcome for phase in COST_PHASES]
    assert outcomes == [Outcome.SLOW, Outcome.PASS, Outcome.PASS]


def test_nothing_measured_is_invalid() -> None:
    """Without a ratio the reason is told, and nothing passes."""
    judgement = judge_overhead("overhead/layer/decode", None, reason="disturbed")
    assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "disturbed")


def test_every_comparison_has_limits() -> None:
    """No comparison is measured without a promise, and no promise is for one that is not."""
    assert set(LIMITS_RATIO) == {*CPU_COMPARISONS, *OPENCL_COMPARISONS}


def test_names_lead_back_to_their_parts() -> None:
    """A case's id says what it compares and in which phase."""
    assert parts_of(case_name("opencl+live", Phase.END_TO_END)) == ("opencl+live", Phase.END_TO_END, None)
    assert case_name("live", Phase.DECODE, "powersave") == "overhead/live@powersave/decode"
    assert parts_of("overhead/live@powersave/decode") == ("live", Phase.DECODE, "powersave")
