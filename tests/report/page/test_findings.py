"""Findings: what failed, and what carries it."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.report.page.findings import Finding, failures, improvements
from perfsuite.report.reproduce import reproductions
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_run

RUN = synthetic_run(n_cases=120)
TREE = RUN.attribution.phases[0]


def failed(run: RunFile) -> tuple[Finding, ...]:
    """The failures of a run with its commands."""
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


def test_a_phase_has_its_tree() -> None:
    """A branch tells its operator's loss, share and own change, then what is left; one without a case has no link."""
    found = next(each for each in failed(RUN) if each.judgement.case_id == TREE.case_id)
    assert found.carried.endswith("lost, carried by")
    assert [branch.role for branch in found.branches] == [*(each.role for each in TREE.carriers), "unexplained"]
    first, *_, left = found.branches
    assert first.judgement is not None
    assert (first.judgement.outcome, first.share_ratio) == (Outcome.REGRESSED, TREE.carriers[0].share_ratio)
    assert (left.judgement, left.lost_ns) == (None, TREE.unexplained_ns)
    unknown = Carrier(case_id="operator/none", role="rest", lost_ns=1, share_ratio=0.1, is_significant=True)
    assert with_tree(replace(TREE, carriers=(unknown,))).branches[0].judgement is None


def test_a_tree_without_a_culprit_says_so() -> None:
    """Carriers that did not change for sure are called so, and a loss that nothing carries is told as that."""
    vague = replace(TREE.carriers[0], is_significant=False)
    assert with_tree(replace(TREE, carriers=(vague,))).carried.endswith(
        "no operator changed for sure by itself; mostly"
    )
    bare = with_tree(replace(TREE, carriers=(), unexplained_ns=TREE.lost_ns))
    assert bare.carried.endswith("no few operators carry the most")
    assert [branch.share_ratio for branch in bare.branches] == [1.0]


def test_where_everything_moved_no_operator_is_blamed() -> None:
    """With a uniform shift there is no tree, and each failing case is told by itself."""
    shifted = replace(RUN, attribution=replace(RUN.attribution, uniform_shift=UniformShift(ratio=1.1, n_cases=50)))
    found = failed(shifted)
    assert not any(each.branches for each in found)
    assert len(found) == sum(each.outcome.fails for each in RUN.judgements)
