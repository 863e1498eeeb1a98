"""What the opened row of a case shows: every figure in words, other runs, the command that measures it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfsuite.records.judgement import Judgement
from perfsuite.records.observation import CaseWork
from perfsuite.report.page.names import outcome_word
from perfsuite.report.page.other_runs import OtherRun
from perfsuite.report.page.words import expected_words, interval_text, old_word, spread_words
from perfsuite.report.reproduce import Reproduction
from perfsuite.report.token_rates import timed
from perfsuite.units import (
    NS_PER_S,
    format_bytes,
    format_bytes_per_s,
    format_count,
    format_flops_per_s,
    format_limit,
    format_ns,
    format_ratio,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A figure with its name."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherValue:
    """What another run measured of the same case."""

    label: str
    measured: str
    #: This run over that one.
    ratio: str
    outcome_word: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDetails:
    """All that is told of one case."""

    case_id: str
    reason: str
    facts: tuple[Fact, ...]
    others: tuple[OtherValue, ...]
    reproduction: Reproduction
    #: Of the figure with the case's distribution; None where it has none.
    figure_key: str | None


def case_details(
    judgement: Judgement,
    *,
    work: CaseWork | None,
    reproduction: Reproduction,
    figure_key: str | None,
    others: Sequence[OtherRun],
) -> CaseDetails:
    """Return what is told of a case, without the figures that it does not have."""
    facts = (*_times(judgement), *_pairs(judgement), *_work(judgement, work))
    return CaseDetails(
        case_id=judgement.case_id,
        reason=judgement.reason,
        facts=tuple(Fact(name=name, value=value) for name, value in facts if value != "-"),
        others=tuple(_other(judgement, each) for each in others),
        reproduction=reproduction,
        figure_key=figure_key,
    )


def _times(judgement: Judgement) -> Iterator[tuple[str, str]]:
    yield "Measured", timed(judgement, judgement.measured_ns)
    yield "Samples", spread_words(judgement)
    yield "Expected", expected_words(judgement)
    yield "Floor", format_ns(judgement.floor_ns)
    yield "Limit", format_ns(judgement.limit_ns)
    yield old_word(judgement), timed(judgement, judgement.baseline_ns)
    yield "Change", format_ratio(judgement.change_ratio)


def _pairs(judgement: Judgement) -> Iterator[tuple[str, str]]:
    yield "Interval", interval_text(judgement)
    if judgement.resolution_ratio is not None:
        yield "Resolves", format_limit(judgement.resolution_ratio)
    if judgement.n_pairs is None:
        return
    yield "Pairs", str(judgement.n_pairs)
    if judgement.n_more_pairs is not None:
        yield "Would decide", f"about {format_count(judgement.n_more_pairs, 'more pair')}"
    yield "Could have seen", format_ratio(judgement.smallest_effect_ratio)


def _work(judgement: Judgement, work: CaseWork | None) -> Iterator[tuple[str, str]]:
    """Tell what the case computes and moves, and how fast it did."""
    if work is None:
        return
    yield "Moves", format_bytes(work.moved_bytes) if work.moved_bytes else "-"
    if work.flops and work.operational_intensity is not None:
        yield "Intensity", f"{work.operational_intensity:.3g} FLOP a byte"
    if judgement.measured_ns:
        per_s = NS_PER_S / judgement.measured_ns
        yield "Computes at", format_flops_per_s(work.flops * per_s) if work.flops else "-"
        yield "Moves at", format_bytes_per_s(work.moved_bytes * per_s) if work.moved_bytes else "-"


def _other(judgement: Judgement, other: OtherRun) -> OtherValue:
    there = other.cases.get(judgement.case_id)
    measured_ns = there.measured_ns if there else None
    ratio = judgement.measured_ns / measured_ns if judgement.measured_ns and measured_ns else None
    return OtherValue(
        label=other.label,
        measured=format_ns(measured_ns),
        ratio=format_ratio(ratio),
        outcome_word=outcome_word(there.outcome) if there else "not in it",
        outcome=there.outcome.value if there else "none",
    )
