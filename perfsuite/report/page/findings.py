"""The findings of a run: what failed and which operators carry it, and what got faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.report.page.names import case_anchor, kind_word, outcome_word, short_name
from perfsuite.report.page.words import (
    basis_words,
    expected_words,
    headline_change,
    old_word,
    reason_beside,
)
from perfsuite.report.reproduce import Reproduction
from perfsuite.report.run_file import RunFile
from perfsuite.report.token_rates import timed
from perfsuite.report.verdict_words import in_order_of_weight
from perfsuite.units import format_ns, format_ratio, format_signed_ns

#: More findings than this are lines, each with a link to its case.
MAX_CARDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A part of a phase in its tree: what it lost, and which share of the loss that is."""

    role: str
    #: None of what belongs to no case.
    anchor: str | None
    lost: str
    share: str
    #: The change of its own case; empty where it has none.
    change: str
    outcome_word: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A case of which the reader must know."""

    anchor: str
    case_id: str
    name: str
    kind: str
    outcome: Outcome
    outcome_word: str
    #: The figure that matters most, and of what it is.
    change: str
    change_of: str
    basis: str
    measured: str
    old: str
    old_title: str
    expected: str
    #: What the figures do not say already; it may be empty.
    reason: str
    #: What the operators below carry it like; empty where nothing is known.
    carried: str
    branches: tuple[Branch, ...]
    reproduction: Reproduction


def failures(run: RunFile, reproductions: Sequence[Reproduction]) -> tuple[Finding, ...]:
    """Return the cases that fail, by weight; an operator that is in the tree of its phase is not told again."""
    failed = [each for each in run.judgements if each.outcome.fails]
    ids = {each.case_id for each in failed}
    carried = {carrier.case_id for tree in _trees(run.attribution) if tree.case_id in ids for carrier in tree.carriers}
    told = [each for each in failed if each.case_id not in carried]
    return _findings(told, run, reproductions)


def improvements(run: RunFile, reproductions: Sequence[Reproduction]) -> tuple[Finding, ...]:
    """Return the cases that got faster, by weight."""
    return _findings([each for each in run.judgements if each.outcome is Outcome.IMPROVED], run, reproductions)


def _trees(attribution: Attribution) -> Sequence[PhaseAttribution]:
    """Return the trees to show: none where everything moved alike, since each operator is as slow as the next."""
    return () if attribution.uniform_shift else attribution.phases


def _findings(
    judgements: Sequence[Judgement], run: RunFile, reproductions: Sequence[Reproduction]
) -> tuple[Finding, ...]:
    cases = {each.case_id: each for each in run.judgements}
    commands = {each.case_id: command for each, command in zip(run.judgements, reproductions, strict=True)}
    trees = {tree.case_id: tree for tree in _trees(run.attribution)}
    return tuple(
        _finding(each, trees.get(each.case_id), cases, commands[each.case_id], run.workload)
        for each in in_order_of_weight(judgements, run.attribution)
    )


def _finding(
    judgement: Judgement,
    tree: PhaseAttribution | None,
    cases: Mapping[str, Judgement],
    reproduction: Reproduction,
    workload: str,
) -> Finding:
    change, change_of = headline_change(judgement)
    return Finding(
        anchor=case_anchor(judgement.case_id),
        case_id=judgement.case_id,
        name=short_name(judgement.case_id, workload),
        kind=kind_word(judgement.kind),
        outcome=judgement.outcome,
        outcome_word=outcome_word(judgement.outcome),
        change=change,
        change_of=change_of,
        basis=basis_words(judgement),
        measured=timed(judgement, judgement.measured_ns),
        old=timed(judgement, judgement.baseline_ns),
        old_title=old_word(judgement),
        expected=expected_words(judgement),
        reason=reason_beside(judgement),
        carried=_carried_words(tree) if tree else "",
        branches=_branches(tree, cases) if tree else (),
        reproduction=reproduction,
    )


def _carried_words(tree: PhaseAttribution) -> str:
    verb = "lost" if tree.lost_ns > 0 else "won"
    told = f"Of the {format_ns(abs(tree.lost_ns))} {verb}"
    if not tree.carriers:
        return f"{told}, no few operators carry the most"
    if not tree.carriers[0].is_significant:
        return f"{told}, no operator changed for sure by itself; mostly"
    return f"{told}, carried by"


def _branches(tree: PhaseAttribution, cases: Mapping[str, Judgement]) -> tuple[Branch, ...]:
    rest = Branch(
        role="unexplained",
        anchor=None,
        lost=format_signed_ns(tree.unexplained_ns),
        share=_share(tree.unexplained_ns / tree.lost_ns) if tree.lost_ns else "-",
        change="",
        outcome_word="",
        outcome="",
    )
    return (*(_branch(carrier, cases.get(carrier.case_id)) for carrier in tree.carriers), rest)


def _branch(carrier: Carrier, judgement: Judgement | None) -> Branch:
    return Branch(
        role=carrier.role,
        anchor=case_anchor(carrier.case_id) if judgement else None,
        lost=format_signed_ns(carrier.lost_ns),
        share=_share(carrier.share_ratio),
        change=format_ratio(judgement.change_ratio) if judgement else "",
        outcome_word=outcome_word(judgement.outcome) if judgement else "",
        outcome=judgement.outcome.value if judgement else "",
    )


def _share(ratio: float) -> str:
    return f"{ratio * 100.0:.0f} %"
