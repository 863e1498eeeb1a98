"""What the passes of a run rule out, in words: a slowdown of the margin, or of what stored times resolve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.units import format_limit

#: What keeps the build that a baseline is made with, so that the next run can measure it beside the new one.
_KEEP = "--baseline=record keeps the build that later runs are measured beside"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoarsePasses:
    """Passes against stored times of which some rest on a resolution above their margin."""

    n_passed: int
    #: How many more passed because they are too small a share of their step.
    n_by_share: int
    #: The coarsest resolution, and the finest margin that was not reached.
    resolution_ratio: float
    margin_ratio: float


def outcome_words(judgement: Judgement, outcome: str) -> str:
    """Return the word for the outcome, of a pass with what it rules out: ``pass at 24 %``, ``pass by share``."""
    if judgement.outcome is not Outcome.PASS or judgement.resolution_ratio is None:
        return outcome
    if judgement.step_share_ratio is not None:
        return f"{outcome} by share"
    return f"{outcome} at {format_limit(judgement.resolution_ratio)}"


def passed_words(judgements: Iterable[Judgement]) -> str:
    """Say behind 'passed' what all passes rule out: `` at 24 %``; empty where each reached its margin."""
    coarse = _coarse_passes(judgements)
    if coarse is None:
        return ""
    resolution = format_limit(coarse.resolution_ratio)
    return f", {coarse.n_passed} of them at {resolution}" if coarse.n_by_share else f" at {resolution}"


def resolution_line(judgements: Sequence[Judgement]) -> str | None:
    """Say what the passes rule out and what would resolve their margin; None where each reached it."""
    coarse = _coarse_passes(judgements)
    if coarse is None:
        return None
    is_all = all(each.outcome in (Outcome.PASS, Outcome.IMPROVED) for each in judgements)
    by_share = f" and {coarse.n_by_share} by their share of a step" if coarse.n_by_share else ""
    return (
        f"  {coarse.n_passed} passed at {format_limit(coarse.resolution_ratio)}{by_share}: "
        f"{'nothing' if is_all else 'none of them'} is slower by more; "
        f"for {format_limit(coarse.margin_ratio)}, record again: {_KEEP}"
    )


def _coarse_passes(judgements: Iterable[Judgement]) -> CoarsePasses | None:
    """Sum up the passes against stored times; pairs resolve their margin, or go on."""
    stored = [each for each in judgements if each.outcome is Outcome.PASS and each.n_pairs is None]
    at = [
        (each.resolution_ratio, each.margin_ratio)
        for each in stored
        if each.resolution_ratio is not None and each.margin_ratio is not None and each.step_share_ratio is None
    ]
    missed = [margin_ratio for resolution_ratio, margin_ratio in at if resolution_ratio > margin_ratio]
    if not missed:
        return None
    return CoarsePasses(
        n_passed=len(at),
        n_by_share=sum(each.step_share_ratio is not None for each in stored),
        resolution_ratio=max(resolution_ratio for resolution_ratio, _ in at),
        margin_ratio=min(missed),
    )
