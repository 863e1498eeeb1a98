"""``run.json``: everything that a run measured and concluded; the fields are described in docs/run-format.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution, PhaseAttribution
from perfsuite.records.json_file import write_json
from perfsuite.records.judgement import Judgement
from perfsuite.records.run_json import RUN_NAME, SCHEMA
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin
from perfsuite.report.token_rates import tokens_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """One run, as it is written and as it is read again."""

    suite_version: str
    started_at: str
    device: str
    workload: str
    #: By group: what was measured, in words (the engine's version and build, the OpenCL device).
    subjects: Mapping[str, str]
    fingerprints: Mapping[str, Mapping[str, str]]
    ceilings: Ceilings | None
    durations_s: Mapping[str, float]
    operator_share_ratio: Mapping[str, float]
    n_discarded_replicates: Mapping[str, int]
    peak_rss_bytes: int | None
    judgements: tuple[Judgement, ...]
    #: By group: the time of each sentinel in each replicate, and what else was seen of the machine.
    sentinels_ns: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    covariates: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    #: By phase: the energy of a token; None where it was too short for the sensor, empty where there is no sensor.
    joules_per_token: Mapping[str, float | None] = field(default_factory=dict)
    #: What having the device came to: governors that were or could not be set, a lock taken over, a link that was lost.
    device_notes: tuple[str, ...] = ()
    #: Whether something was slowed down on purpose, which makes the run no reference.
    is_injected: bool = False
    #: Whether somebody broke the run off: it holds what was measured until then.
    is_interrupted: bool = False
    #: What the run was compared with in pairs, as it was asked for; None where it was not.
    against: str | None = None
    #: By group: what was measured, by its id in the store of engines of the machine that was measured.
    engines: Mapping[str, str] = field(default_factory=dict)
    attribution: Attribution = NO_ATTRIBUTION
    origin: RunOrigin = NO_ORIGIN


def write_run(run: RunFile, run_dir: Path) -> Path:
    """Write ``run.json`` into the run's folder; return its path."""
    path = run_dir / RUN_NAME
    write_json(path, plain_run(run), MeasurementError)
    return path


def plain_run(run: RunFile) -> dict[str, Any]:
    """Return the run as JSON-able values."""
    return {
        "schema": SCHEMA,
        "run_id": run.origin.run_id,
        "arguments": list(run.origin.arguments),
        "selection": list(run.origin.selection),
        "environment": dict(run.origin.environment),
        "commit": asdict(commit) if (commit := run.origin.commit) else None,
        "board": asdict(board) if (board := run.origin.board) else None,
        "device_notes": list(run.device_notes),
        "suite_version": run.suite_version,
        "started_at": run.started_at,
        "device": run.device,
        "workload": run.workload,
        "subject": dict(run.subjects),
        "fingerprint": {name: dict(fields) for name, fields in run.fingerprints.items()},
        "ceilings": run.ceilings.to_plain() if run.ceilings else None,
        "duration_s": {"total": round(sum(run.durations_s.values()), 3), **run.durations_s},
        "operator_share_ratio": dict(run.operator_share_ratio),
        "joules_per_token": dict(run.joules_per_token),
        "n_discarded_replicates": dict(run.n_discarded_replicates),
        "sentinels_ns": {
            group: {name: list(times) for name, times in sentinels.items()}
            for group, sentinels in run.sentinels_ns.items()
        },
        "covariates": {name: dict(fields) for name, fields in run.covariates.items()},
        "injected": run.is_injected,
        "interrupted": run.is_interrupted,
        "against": run.against,
        "engines": dict(run.engines),
        "peak_rss_bytes": run.peak_rss_bytes,
        "uniform_shift": asdict(shift) if (shift := run.attribution.uniform_shift) else None,
        "attribution": [_plain_attribution(each) for each in run.attribution.phases],
        "cases": [plain_case(judgement) for judgement in run.judgements],
    }


def plain_case(judgement: Judgement) -> dict[str, Any]:
    """Return one case as JSON-able values."""
    return {
        "id": judgement.case_id,
        "kind": judgement.kind,
        "samples_ns": list(judgement.samples_ns),
        "measured_ns": judgement.measured_ns,
        "tokens_per_s": tokens_per_s(judgement),
        "floor_ns": judgement.floor_ns,
        "expected_ns": judgement.expected_ns,
        "expected_lower_ns": judgement.lower_ns,
        "expected_upper_ns": judgement.upper_ns,
        "limit_ns": judgement.limit_ns,
        "baseline_ns": judgement.baseline_ns,
        "change_ratio": judgement.change_ratio,
        "lower_ratio": judgement.lower_ratio,
        "upper_ratio": judgement.upper_ratio,
        "margin_ratio": judgement.margin_ratio,
        "resolution_ratio": judgement.resolution_ratio,
        "step_share_ratio": judgement.step_share_ratio,
        "baseline_samples_ns": list(judgement.baseline_samples_ns),
        "n_pairs": judgement.n_pairs,
        "n_more_pairs": judgement.n_more_pairs,
        "smallest_effect_ratio": judgement.smallest_effect_ratio,
        "outcome": judgement.outcome.value,
        "reason": judgement.reason,
    }


def _plain_attribution(phase: PhaseAttribution) -> dict[str, Any]:
    return {
        "id": phase.case_id,
        "lost_ns": phase.lost_ns,
        "carriers": [
            {
                "id": carrier.case_id,
                "role": carrier.role,
                "lost_ns": carrier.lost_ns,
                "share_ratio": carrier.share_ratio,
                "is_significant": carrier.is_significant,
            }
            for carrier in phase.carriers
        ],
        "unexplained_ns": phase.unexplained_ns,
    }
