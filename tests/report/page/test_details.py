"""Details of single cases."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.judgement import told_judgement
from perfsuite.records.observation import CaseWork
from perfsuite.records.outcome import Outcome
from perfsuite.report.page.details import case_facts, other_value
from perfsuite.report.page.other_runs import OtherRun
from perfsuite.testing.run_files import synthetic_run

PAIRED_RUN = synthetic_run(n_cases=60)
PAIRED_CASE = next(each for each in PAIRED_RUN.judgements if each.outcome is Outcome.INCONCLUSIVE and each.n_pairs)


def test_every_figure_of_a_pair_is_told() -> None:
    """Times, interval, pairs, how many more would decide, and what could have been seen."""
    case = replace(PAIRED_CASE, floor_ns=10, limit_ns=20, n_more_pairs=24, n_pairs=10, smallest_effect_ratio=1.126)
    case = replace(case, resolution_ratio=0.0213)
    found = case_facts(case, None)
    assert found.keys() >= {"Measured", "Samples", "Expected", "Floor", "Limit", "Old side", "Change", "Interval"}
    assert (found["Pairs"], found["Would decide"]) == ("10", "about 24 more pairs")
    assert (found["Resolves"], found["Could have seen"]) == ("2.2 %", "+12.6 %")


def test_what_a_case_lacks_is_not_told() -> None:
    """A case without times has no figures."""
    assert case_facts(told_judgement("trace/a", "trace", Outcome.PASS, "balanced"), None) == {}


def test_work_gives_rates() -> None:
    """What a case computes and moves over its time are its rates, and over each other its intensity."""
    work = CaseWork(case_id=PAIRED_CASE.case_id, flops=4_000_000, moved_bytes=2_000_000)
    found = case_facts(replace(PAIRED_CASE, measured_ns=1_000_000), work)
    assert (found["Computes at"], found["Moves at"], found["Intensity"]) == (
        "4.00 GFLOP/s",
        "2.00 GB/s",
        "2 FLOP a byte",
    )
    assert "Intensity" not in case_facts(PAIRED_CASE, replace(work, moved_bytes=0))


def test_other_runs_stand_beside_it() -> None:
    """The time in another run, this one over it, and its outcome there; that it is not there, where it is not."""
    there = OtherRun(
        label="run 2",
        run=PAIRED_RUN,
        cases={PAIRED_CASE.case_id: replace(PAIRED_CASE, measured_ns=50, outcome=Outcome.PASS)},
    )
    without = OtherRun(label="run 3", run=PAIRED_RUN, cases={})
    first, second = (other_value(replace(PAIRED_CASE, measured_ns=55), each) for each in (there, without))
    assert (first.measured, first.ratio, first.outcome) == ("50.0 ns", "+10.0 %", Outcome.PASS)
    assert (second.measured, second.ratio, second.outcome) == ("-", "-", None)
