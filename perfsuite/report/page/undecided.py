"""What could not be judged, grouped by why, each group with what to do about it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.reproduce import command_again, is_unclaimed
from perfsuite.report.run_file import RunFile

_UNDECIDED = (Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.INCONCLUSIVE, Outcome.NEW)

#: A group names no more cases than this; the table has them all.
MAX_NAMED = 40

#: Figures, which tell reasons of one kind apart and say nothing of the kind.
_FIGURE = re.compile(r"[+-]?\d+(?:\.\d+)?(?: ?(?:%|[mµn]?s)\b)?")

_ADVICE = {
    Outcome.INVALID: "Let the machine come to rest (other processes, governor, heat: see Device state), "
    "then measure again.",
    Outcome.INCOMPARABLE: "Measure on the setup that the baseline was made on, or record one for this setup: "
    "the same command with --baseline=record.",
    Outcome.INCONCLUSIVE: "Take more replicates (--perf-replicates) on a quieter machine, or compare in pairs "
    "(--against).",
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
        """Return what all of them came to."""
        return self.judgements[0].outcome


def undecided_groups(run: RunFile) -> tuple[UndecidedGroup, ...]:
    """Return the groups by outcome, within it the largest first."""
    groups: dict[tuple[Outcome, str], list[Judgement]] = defaultdict(list)
    for judgement in run.judgements:
        if judgement.outcome in _UNDECIDED:
            groups[judgement.outcome, _FIGURE.sub("#", judgement.reason)].append(judgement)
    order = sorted(groups, key=lambda key: (_UNDECIDED.index(key[0]), -len(groups[key])))
    return tuple(_group(groups[key], run) for key in order)


def _group(judgements: Sequence[Judgement], run: RunFile) -> UndecidedGroup:
    first = judgements[0]
    return UndecidedGroup(
        judgements=tuple(judgements),
        is_example=any(each.reason != first.reason for each in judgements),
        advice=_advice(judgements),
        command=_command(first.outcome, run),
    )


def _advice(found: Sequence[Judgement]) -> str:
    outcome = found[0].outcome
    if outcome is Outcome.INCONCLUSIVE and any(each.n_pairs is not None for each in found):
        return _MORE_PAIRS
    if outcome is Outcome.INCONCLUSIVE and all(each.measured_ns is None for each in found):
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
