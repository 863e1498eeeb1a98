"""Findings: what failed, and what carries it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.page.findings import Finding, UndecidedGroup, failures, improvements, undecided_groups
from perfsuite.report.reproduce import reproductions, run_command
from perfsuite.report.run_file import RunFile
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


@pytest.mark.parametrize("outcome", [Outcome.SUSPECT, Outcome.INCONCLUSIVE])
def test_advice_fits_the_case(outcome: Outcome) -> None:
    """Pairs need more time, findings without samples a longer run, what no case claims an expectation."""
    paired = next(each for each in synthetic_run(n_cases=60).judgements if each.outcome is outcome)
    assert "--perf-budget" in groups_of(replace(paired, n_pairs=8))[0].advice
    assert "--perf-replicates" in groups_of(replace(paired, n_pairs=None))[0].advice
    assert "--scenario" in groups_of(*told(outcome, "too short"))[0].advice
    assert "expectation" in groups_of(*told(Outcome.INVALID, "recorded, and no case claims it: x"))[0].advice
    assert "come to rest" in groups_of(*told(Outcome.INVALID, "threads waited 73 % of the time"))[0].advice


def test_groups_have_the_command_of_the_run() -> None:
    """New cases the one that records, invalid ones the run's own; in pairs, or where it is not known, there is none."""
    new = told(Outcome.NEW, "no baseline yet")
    (group,) = groups_of(*new)
    assert group.command is not None
    assert "--baseline=record" in group.command
    for other in (replace(STORED_RUN, against="x"), replace(STORED_RUN, origin=NO_ORIGIN)):
        assert undecided_groups(replace(other, judgements=tuple(new)))[0].command is None
    invalid = told(Outcome.INVALID, "threads waited 73 % of the time")
    assert groups_of(*invalid)[0].command == run_command(STORED_RUN.origin)
    bare = replace(STORED_RUN, origin=NO_ORIGIN, judgements=tuple(invalid))
    assert undecided_groups(bare)[0].command is None


RUN = synthetic_run(n_cases=120)
TREE = RUN.attribution.phases[0]


def failed(run: RunFile) -> tuple[Finding, ...]:
    return failures(run, reproductions(run))


def with_tree(tree: PhaseAttribution) -> Finding:
    """The finding on a phase, with another tree."""
    run = replace(RUN, attribution=Attribution(phases=(tree,)))
    return next(each for each in failed(run) if each.judgement.case_id == tree.case_id)


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


def test_a_branch_without_a_case_has_no_link() -> None:
    unknown = Carrier(case_id="operator/none", role="rest", lost_ns=1, share_ratio=0.1, is_significant=True)
    assert with_tree(replace(TREE, carriers=(unknown,))).branches[0].judgement is None


def test_a_tree_without_a_culprit_says_so() -> None:
    """Carriers that did not change for sure are called so, and a loss that nothing carries is reported as that."""
    vague = replace(TREE.carriers[0], is_significant=False)
    assert with_tree(replace(TREE, carriers=(vague,))).carried.endswith(
        "no operator changed for sure by itself; mostly"
    )
    bare = with_tree(replace(TREE, carriers=(), unexplained_ns=TREE.lost_ns))
    assert bare.carried.endswith("no few operators carry the most")
    assert [branch.share_ratio for branch in bare.branches] == [1.0]


def test_where_everything_moved_no_operator_is_blamed() -> None:
    """With a uniform shift there is no tree, and each failing case is reported by itself."""
    shifted = replace(RUN, attribution=replace(RUN.attribution, uniform_shift=UniformShift(ratio=1.1, n_cases=50)))
    found = failed(shifted)
    assert not any(each.branches for each in found)
    assert len(found) == sum(each.outcome.fails for each in RUN.judgements)
