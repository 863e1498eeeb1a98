"""What an experiment has measured for cases that stored baselines judge: a group of them, with one fingerprint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.records.case import Case
from perfsuite.records.events import KeptOutputs, Phase
from perfsuite.records.observation import NO_OBSERVATION, Observation
from perfsuite.records.outcome import CaseSamples, Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSamples:
    """What measuring a group gave."""

    samples: Mapping[str, CaseSamples] = field(default_factory=dict)
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    #: What pairs said, by case id: of these cases there are no other samples.
    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    #: Case ids that the record holds and no case claims, with the reason.
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    #: By id: operators of a graph that is not known, which nobody could enumerate; their samples are among the others.
    found: dict[str, Case] = field(default_factory=dict)
    peak_rss_bytes: int | None = None
    #: Replicates that were measured under contention and left out.
    n_discarded: int = 0
    #: By phase: the share of it that its operators account for.
    operator_share_ratio: Mapping[str, float] = field(default_factory=dict)
    #: By phase: the energy of a token; None where the phase is too short for the sensor, empty without one.
    joules_per_token: Mapping[str, float | None] = field(default_factory=dict)
    #: What is run, in words for the header of a report.
    description: str = ""
    #: What the engine says of itself; empty without one.
    engine_version: str = ""
    #: By sentinel: its time in each replicate, ns.
    sentinels_ns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Whether the processor's ceilings are those of what was measured.
    on_processor: bool = True
    #: What may explain the run and does not identify it; None is 'not measured'.
    covariates: Mapping[str, float | None] = field(default_factory=dict)
    #: Phase and role of operators that the engine computes otherwise than is expected.
    without_forecast: frozenset[tuple[Phase | None, str | None]] = frozenset()
    #: What each process came to, of prompts that later runs draw again.
    outputs: tuple[KeptOutputs, ...] = ()
    #: What is shown of it beside its samples.
    observation: Observation = NO_OBSERVATION
    #: What a reader of the run should know of how it was measured.
    notes: tuple[str, ...] = ()
    #: What broke the measurement off before its end.
    broken_off_by: KeyboardInterrupt | LinkError | MeasurementError | None = None
    #: Whether it had too few pairs for any verdict.
    is_too_few: bool = False


def case_samples(case: Case, values: Iterable[int | None], problems: tuple[str, ...]) -> CaseSamples:
    """Return the samples of a case, one of each process that has measured it."""
    measured = tuple(value for value in values if value is not None)
    return CaseSamples(case_id=case.case_id, samples_ns=measured, problems=problems)
