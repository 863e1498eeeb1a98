"""Findings: what failed, and what carries it."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.outcome import Judgement, Outcome, UniformShift, told_judgement
from perfsuite.records.run_file import RunFile
from perfsuite.report.page.findings import Finding, UndecidedGroup, failures, improvements, undecided_groups
from perfsuite.report.reproduce import reproductions
from perfsuite.testing.run_files import synthetic_run

STORED_RUN = synthetic_run(n_cases=200, against=None)


def groups_of(*judgements: Judgement) -> tuple[UndecidedGroup, ...]:
    return undecided_groups(replace(STORED_RUN, judgements=judgements))


def told(outcome: Outcome, *reasons: str) -> list[Judgement]:
    return [told_judgement(f"trace/x/{number}", "trace", outcome, reason) for number, reason in enumerate(reasons)]


def test_every_undecided_case_is_in_one_group() -> None:
    """In the order of their outcomes; reasons are one where only their figures differ, the first then is an example."""
    found = undecided_groups(STORED_RUN)
    order = [Outcome.SUSPECT, Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.INCONCLUSIVE, Outcome.NEW]
    assert [order.index(group.outcome) for group in found] == sorted(order.index(group.outcome) for group in found)
    n_cases = sum(len(group.judgements) for group in found)
    assert n_cases == sum(each.outcome in order for each in STORED_RUN.judgements)
    (group,) = groups_of(
        *told(Outcome.INVALID, "waited 21 % of the time (limit 2 %)", "waited 7.5 % of the time (limit 2 %)")
    )
    assert (len(group.judgements), group.is_example) == (2, True)
    apart = groups_of(*told(Outcome.INVALID, "threads 4, now 2", "governor x, now y", "governor x, now y"))
    assert [(len(group.judgements), group.is_example) for group in apart] == [(2, False), (1, False)]


RUN = synthetic_run(n_cases=120)


def failed(run: RunFile) -> tuple[Finding, ...]:
    return failures(run, reproductions(run))


def test_every_failure_and_every_improvement_is_told_once() -> None:
    """Each failing case has a finding or a branch in the tree of one; what got faster has its own."""
    found = failed(RUN)
    assert {each.judgement.outcome.fails for each in found} == {True}
    named = [each.judgement.case_id for each in found]
    carried = [carrier.case_id for tree in RUN.attribution.phases for carrier in tree.carriers]
    expected = sorted(each.case_id for each in RUN.judgements if each.outcome.fails)
    assert sorted([*named, *carried]) == expected
    found = improvements(RUN, reproductions(RUN))
    assert {each.judgement.outcome for each in found} == {Outcome.IMPROVED}
    assert len(found) == sum(each.outcome is Outcome.IMPROVED for each in RUN.judgements)
    assert all((each.judgement.change_ratio or 1.0) < 1.0 for each in found)


def test_where_everything_moved_no_operator_is_blamed() -> None:
    """With a uniform shift there is no tree, and each failing case is reported by itself."""
    shifted = replace(RUN, attribution=replace(RUN.attribution, uniform_shift=UniformShift(ratio=1.1, n_cases=50)))
    found = failed(shifted)
    assert not any(each.branches for each in found)
    assert len(found) == sum(each.outcome.fails for each in RUN.judgements)
