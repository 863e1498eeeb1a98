"""The findings of a run: what failed and which operators carry it, and what got faster."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite.records.outcome import Attribution, Judgement, Outcome, PhaseAttribution
from perfsuite.records.run_file import RunFile
from perfsuite.report.reproduce import Reproduction, command_again, is_unclaimed
from perfsuite.report.verdict_words import in_order_of_weight
from perfsuite.units import format_ns

_UNDECIDED = (Outcome.SUSPECT, Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.INCONCLUSIVE, Outcome.NEW)

#: A group names no more cases than this; the table has them all.
MAX_NAMED = 40

#: Figures, which tell reasons of one kind apart and say nothing of the kind.
_FIGURE = re.compile(r"[+-]?\d+(?:\.\d+)?(?: ?(?:%|[mµn]?s)\b)?")

_MORE_REPLICATES = "Take more replicates (--perf-replicates) on a quieter machine, or compare in pairs (--against)."
_ADVICE = {
    Outcome.INVALID: "Let the machine come to rest (other processes, governor, heat: see Device state), "
    "then measure again.",
    Outcome.INCOMPARABLE: "Measure on the setup that the baseline was made on, or record one for this setup: "
    "the same command with --baseline=record.",
    Outcome.SUSPECT: _MORE_REPLICATES,
    Outcome.INCONCLUSIVE: _MORE_REPLICATES,
    Outcome.NEW: "Run again with --baseline=record to keep these times as the reference.",
}

_MORE_PAIRS = "Give the pairs more time: the same command with a larger --perf-budget."
_LONGER_RUN = "A longer run gives it more to go by: a --scenario of more tokens, or more replicates."
_UNKNOWN = "Nothing says what it should cost, so it has no test: add the operator to the architecture's expectation."


@dataclass(frozen=True, slots=True, kw_only=True)
class UndecidedGroup:
    """Cases that could not be judged for one reason, which may differ in its figures from case to case."""

    judgements: tuple[Judgement, ...]
    is_example: bool
    advice: str
    #: What to type for it; None where the advice is no command, or the run's own is not known.
    command: str | None

    @property
    def outcome(self) -> Outcome:
        """What all of them came to."""
        return self.judgements[0].outcome


def undecided_groups(run: RunFile) -> tuple[UndecidedGroup, ...]:
    """Return the groups by outcome, within it the largest first."""
    groups: dict[tuple[Outcome, str], list[Judgement]] = defaultdict(list)
    for judgement in run.judgements:
        if judgement.outcome in _UNDECIDED:
            groups[judgement.outcome, _FIGURE.sub("#", judgement.reason)].append(judgement)
    order = sorted(groups, key=lambda key: (_UNDECIDED.index(key[0]), -len(groups[key])))
    return tuple(
        UndecidedGroup(
            judgements=tuple(groups[key]),
            is_example=len({each.reason for each in groups[key]}) > 1,
            advice=_advice(groups[key]),
            command=_command(key[0], run),
        )
        for key in order
    )


def _advice(found: Sequence[Judgement]) -> str:
    outcome = found[0].outcome
    is_open = outcome in (Outcome.SUSPECT, Outcome.INCONCLUSIVE)
    if is_open and any(each.n_pairs is not None for each in found):
        return _MORE_PAIRS
    if is_open and all(each.measured_ns is None for each in found):
        return _LONGER_RUN
    if any(is_unclaimed(each) for each in found):
        return _UNKNOWN
    return _ADVICE[outcome]


def _command(outcome: Outcome, run: RunFile) -> str | None:
    if not run.origin.arguments:
        return None
    if outcome is Outcome.INVALID:
        return command_again(run.origin)
    is_recordable = outcome is Outcome.NEW and not run.against
    return command_again(run.origin, changed={"--baseline": "record"}) if is_recordable else None


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
    """Return the cases that fail, by weight; an operator that is in the tree of its phase is not reported again."""
    failed = [each for each in run.judgements if each.outcome.fails]
    ids = {each.case_id for each in failed}
    carried = {carrier.case_id for tree in _trees(run.attribution) if tree.case_id in ids for carrier in tree.carriers}
    return _findings([each for each in failed if each.case_id not in carried], run, reproductions)


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
    words = "carried by" if tree.carriers else "no few operators carry the most"
    if tree.carriers and not tree.carriers[0].is_significant:
        words = "no operator changed for sure by itself; mostly"
    return f"Of the {format_ns(abs(tree.lost_ns))} {'lost' if tree.lost_ns > 0 else 'won'}, {words}"


def _branches(tree: PhaseAttribution, cases: Mapping[str, Judgement]) -> Iterator[Branch]:
    for each in tree.carriers:
        case = cases.get(each.case_id)
        yield Branch(role=each.name, lost_ns=each.lost_ns, share_ratio=each.share_ratio, judgement=case)
    left = tree.unexplained_ns / tree.lost_ns if tree.lost_ns else None
    yield Branch(role="unexplained", lost_ns=tree.unexplained_ns, share_ratio=left, judgement=None)
