"""The findings of a run: what failed and which operators carry it, and what got faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite.records.attribution import Attribution, PhaseAttribution
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.reproduce import Reproduction
from perfsuite.report.run_file import RunFile
from perfsuite.report.verdict_words import in_order_of_weight
from perfsuite.units import format_ns

#: More findings than this are lines, each with a link to its case.
MAX_CARDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A part of a phase in its tree."""

    role: str
    lost_ns: int
    #: Of what the phase lost; None where that is nothing.
    share_ratio: float | None
    #: None of what was not judged by itself.
    judgement: Judgement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A case of which the reader must know."""

    judgement: Judgement
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
        Finding(
            judgement=each,
            carried=_carried_words(tree) if (tree := trees.get(each.case_id)) else "",
            branches=tuple(_branches(tree, cases)) if tree else (),
            reproduction=commands[each.case_id],
        )
        for each in in_order_of_weight(judgements, run.attribution)
    )


def _carried_words(tree: PhaseAttribution) -> str:
    verb = "lost" if tree.lost_ns > 0 else "won"
    told = f"Of the {format_ns(abs(tree.lost_ns))} {verb}"
    if not tree.carriers:
        return f"{told}, no few operators carry the most"
    if not tree.carriers[0].is_significant:
        return f"{told}, no operator changed for sure by itself; mostly"
    return f"{told}, carried by"


def _branches(tree: PhaseAttribution, cases: Mapping[str, Judgement]) -> Iterator[Branch]:
    for each in tree.carriers:
        case = cases.get(each.case_id)
        yield Branch(role=each.role, lost_ns=each.lost_ns, share_ratio=each.share_ratio, judgement=case)
    left = tree.unexplained_ns / tree.lost_ns if tree.lost_ns else None
    yield Branch(role="unexplained", lost_ns=tree.unexplained_ns, share_ratio=left, judgement=None)
