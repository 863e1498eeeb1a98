"""What the opened row of a case shows: every figure in words, other runs, the command that measures it again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.records.judgement import Judgement
from perfsuite.records.observation import CaseWork
from perfsuite.records.outcome import Outcome
from perfsuite.report.page.other_runs import OtherRun
from perfsuite.report.page.words import expected_words, interval_text, old_word, spread_words
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
class OtherValue:
    """What another run measured of the same case."""

    label: str
    measured: str
    #: This run over that one.
    ratio: str
    #: None where the case is not in it.
    outcome: Outcome | None


def case_facts(judgement: Judgement, work: CaseWork | None) -> dict[str, str]:
    """Return the figures of a case by name, without those that it does not have."""
    facts = (*_times(judgement), *_pairs(judgement), *_work(judgement, work))
    return {name: value for name, value in facts if value != "-"}


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


def other_value(judgement: Judgement, other: OtherRun) -> OtherValue:
    """Return what another run measured of a case."""
    there = other.cases.get(judgement.case_id)
    measured_ns = there.measured_ns if there else None
    ratio = judgement.measured_ns / measured_ns if judgement.measured_ns and measured_ns else None
    return OtherValue(
        label=other.label,
        measured=format_ns(measured_ns),
        ratio=format_ratio(ratio),
        outcome=there.outcome if there else None,
    )
