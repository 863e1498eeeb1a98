"""What the passes of a run rule out, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.report.resolution_words import outcome_words, passed_words, resolution_line


def passed(resolution_ratio: float | None, margin_ratio: float = 0.05, outcome: Outcome = Outcome.PASS) -> Judgement:
    """A case that was compared with stored times."""
    judgement = told_judgement("phase/a/b/decode", "phase", outcome, "because")
    return replace(judgement, resolution_ratio=resolution_ratio, margin_ratio=margin_ratio)


def test_a_pass_stands_with_what_it_rules_out() -> None:
    """The outcome of a pass has its resolution, rounded up; that of others, and of what was not compared, has none."""
    assert outcome_words(passed(0.2384), "pass") == "pass at 24 %"
    assert outcome_words(passed(0.0201), "Pass") == "Pass at 2.1 %"
    assert outcome_words(passed(None), "pass") == "pass"
    assert outcome_words(replace(passed(4.0), step_share_ratio=0.002), "pass") == "pass by share"
    assert outcome_words(passed(0.24, outcome=Outcome.REGRESSED), "regressed") == "regressed"


def test_the_coarsest_resolution_speaks_for_all_passes() -> None:
    """Down to what nothing is slower, and for which margin the engine has to be kept; shares count apart."""
    run = [passed(0.27), passed(0.24, 0.02), passed(0.05)]
    line = "  3 passed at 27 %: {} is slower by more; for 2 %, record again: "
    line += "--baseline=record keeps the build that later runs are measured beside"
    assert resolution_line(run) == line.format("nothing")
    assert passed_words(run) == " at 27 %"
    assert resolution_line([*run, passed(0.4, outcome=Outcome.INCONCLUSIVE)]) == line.format("none of them")
    run = [passed(0.27), replace(passed(4.0, 4.0), step_share_ratio=0.002)]
    line = "  1 passed at 27 % and 1 by their share of a step: nothing is slower by more; for 5 %"
    assert (resolution_line(run) or "").startswith(line)
    assert passed_words(run) == ", 1 of them at 27 %"


@pytest.mark.parametrize(
    "run",
    [
        [],
        [passed(0.05), replace(passed(4.0, 4.0), step_share_ratio=0.002)],
        [passed(None), passed(0.9, outcome=Outcome.INCONCLUSIVE)],
        [replace(passed(0.2), n_pairs=12)],
    ],
)
def test_what_reached_its_margin_needs_no_line(run: list[Judgement]) -> None:
    """Nothing is said where each pass reached its margin, where none was compared, and of pairs."""
    assert resolution_line(run) is None
    assert passed_words(run) == ""
