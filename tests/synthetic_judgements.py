"""Judgements of cases, and what carries them, made up one by one."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.outcome import Carrier, Judgement, Outcome, PhaseAttribution

PASSED = Judgement(
    case_id="phase/a-q8_0/siso/decode",
    kind="phase",
    samples_ns=(5_000_000,) * 3,
    measured_ns=5_000_000,
    floor_ns=1,
    expected_ns=4_000_000,
    limit_ns=None,
    baseline_ns=4_900_000,
    change_ratio=1.02,
    outcome=Outcome.PASS,
    reason="within the margin",
)


def case(case_id: str, outcome: Outcome = Outcome.PASS, **changes: object) -> Judgement:
    """A judgement of another case, its kind the first part of the id."""
    return replace(PASSED, case_id=case_id, kind=case_id.split("/")[0], outcome=outcome, **changes)  # type: ignore[arg-type]


def tree(*ids: str, losses_ns: tuple[int, ...], is_significant: bool = True) -> PhaseAttribution:
    """A decode that lost 400 µs to these operators, and to nobody knows what."""
    carriers = tuple(
        Carrier(
            case_id=case_id,
            role=case_id.rpartition("/")[2],
            lost_ns=lost_ns,
            share_ratio=lost_ns / 400_000,
            is_significant=is_significant,
        )
        for case_id, lost_ns in zip(ids, losses_ns, strict=True)
    )
    return PhaseAttribution(
        case_id="phase/a/b/decode", lost_ns=400_000, carriers=carriers, unexplained_ns=400_000 - sum(losses_ns)
    )
