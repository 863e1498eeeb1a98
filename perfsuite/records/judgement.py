"""The verdict on one case, with every figure that it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.records.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is told of one case; latencies in ns, None where there is none."""

    case_id: str
    kind: str
    samples_ns: tuple[int, ...]
    #: Median of the samples.
    measured_ns: int | None
    #: The least that physics allows, the forecast, and the most that passes.
    floor_ns: int | None
    expected_ns: int | None
    limit_ns: int | None
    #: Median of the baseline's samples.
    baseline_ns: int | None
    #: Measured over baseline.
    change_ratio: float | None
    outcome: Outcome
    reason: str
