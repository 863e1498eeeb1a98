"""``run.json``: everything that a run measured and concluded; the fields are described in docs/run-format.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.records.json_file import write_json
from perfsuite.records.judgement import Judgement

#: Raised whenever a field changes its meaning.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """One run, ready to be written."""

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


def write_run(run: RunFile, run_dir: Path) -> Path:
    """Write ``run.json`` into the run's folder; return its path."""
    path = run_dir / "run.json"
    write_json(path, plain_run(run), MeasurementError)
    return path


def plain_run(run: RunFile) -> dict[str, Any]:
    """Return the run as JSON-able values."""
    return {
        "schema": SCHEMA,
        "suite_version": run.suite_version,
        "started_at": run.started_at,
        "device": run.device,
        "workload": run.workload,
        "subject": dict(run.subjects),
        "fingerprint": {name: dict(fields) for name, fields in run.fingerprints.items()},
        "ceilings": run.ceilings.to_plain() if run.ceilings else None,
        "duration_s": {"total": round(sum(run.durations_s.values()), 3), **run.durations_s},
        "operator_share_ratio": dict(run.operator_share_ratio),
        "n_discarded_replicates": dict(run.n_discarded_replicates),
        "peak_rss_bytes": run.peak_rss_bytes,
        "cases": [plain_case(judgement) for judgement in run.judgements],
    }


def plain_case(judgement: Judgement) -> dict[str, Any]:
    """Return one case as JSON-able values."""
    return {
        "id": judgement.case_id,
        "kind": judgement.kind,
        "samples_ns": list(judgement.samples_ns),
        "measured_ns": judgement.measured_ns,
        "floor_ns": judgement.floor_ns,
        "expected_ns": judgement.expected_ns,
        "limit_ns": judgement.limit_ns,
        "baseline_ns": judgement.baseline_ns,
        "change_ratio": judgement.change_ratio,
        "outcome": judgement.outcome.value,
        "reason": judgement.reason,
    }
