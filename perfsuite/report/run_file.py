"""``run.json``: everything that a run measured and concluded; the fields are described in docs/run-format.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution
from perfsuite.records.json_file import write_json
from perfsuite.records.judgement import Judgement
from perfsuite.records.run_json import RUN_NAME, SCHEMA
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin
from perfsuite.report.token_rates import tokens_per_s

#: What fields of the records are called in the file, where that differs.
_WRITTEN_NAMES = {
    "case_id": "id",
    "durations_s": "duration_s",
    "fingerprints": "fingerprint",
    "is_injected": "injected",
    "is_interrupted": "interrupted",
    "judgements": "cases",
    "lower_ns": "expected_lower_ns",
    "subjects": "subject",
    "upper_ns": "expected_upper_ns",
}


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
    plain = _plain(run)
    origin, attribution = plain.pop("origin"), plain.pop("attribution")
    return {
        "schema": SCHEMA,
        **origin,
        **plain,
        "ceilings": run.ceilings.to_plain() if run.ceilings else None,
        "duration_s": {"total": round(sum(run.durations_s.values()), 3), **run.durations_s},
        "uniform_shift": attribution["uniform_shift"],
        "attribution": attribution["phases"],
        "cases": [plain_case(judgement) for judgement in run.judgements],
    }


def plain_case(judgement: Judgement) -> dict[str, Any]:
    """Return one case as JSON-able values."""
    return {**_plain(judgement), "tokens_per_s": tokens_per_s(judgement)}


def written_name(field_name: str) -> str:
    """Return the name that a field of a record has in the file."""
    return _WRITTEN_NAMES.get(field_name, field_name)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {written_name(each.name): _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value
