"""A run, as its ``run.json`` holds it; the fields are described in docs/run-format.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.codec import rebuilt
from perfsuite.records.events import KeptOutputs
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_json import RUN_NAME, read_plain_run
from perfsuite.records.run_origin import NO_ORIGIN, BoardName, Commit, RunOrigin

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
    #: By group: what its first process came to, for a baseline that is made of the run.
    outputs: Mapping[str, KeptOutputs] = field(default_factory=dict)
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


def written_name(field_name: str) -> str:
    """Return the name that a field of a record has in the file."""
    return _WRITTEN_NAMES.get(field_name, field_name)


_TOTAL = "total"


def run_path(named: Path) -> Path:
    """Return the file of a run that is named by its folder or by the file itself."""
    return named / RUN_NAME if named.is_dir() else named


def read_run_file(named: Path, error_type: type[PerfsuiteError] = PerfsuiteError) -> RunFile:
    """Read a run, named by its folder or its ``run.json``.

    Fields that older versions did not write are as in a run that has none of it.

    Raises PerfsuiteError: of `error_type`: the file cannot be read, is no ``run.json`` of this schema, lacks a field,
    or has one that holds what it cannot; the message says which.
    """
    path = run_path(named)
    plain = read_plain_run(path, error_type)
    try:
        return _run(plain)
    except KeyError as error:
        raise error_type(f"{path}: lacks the field {error}; run again") from error
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, PerfsuiteError) as error:
        raise error_type(f"{path}: cannot be used ({type(error).__name__}: {error}); run again") from error


def _run(plain: Mapping[str, Any]) -> RunFile:
    ceilings = plain["ceilings"]
    sentinels = plain.get("sentinels_ns", {})
    shift, commit, board = (plain.get(name) for name in ("uniform_shift", "commit", "board"))
    origin = _fields(RunOrigin, plain) | {
        "arguments": tuple(plain.get("arguments", ())),
        "selection": tuple(plain.get("selection", ())),
        "commit": Commit(**commit) if commit else None,
        "board": BoardName(**board) if board else None,
    }
    told = {
        "ceilings": None if ceilings is None else Ceilings.from_plain(ceilings),
        "durations_s": {name: spent for name, spent in plain["duration_s"].items() if name != _TOTAL},
        "judgements": tuple(_judgement(case) for case in plain["cases"]),
        "sentinels_ns": {
            group: {name: tuple(times) for name, times in each.items()} for group, each in sentinels.items()
        },
        "device_notes": tuple(plain.get("device_notes", ())),
        "outputs": {group: rebuilt(each, KeptOutputs) for group, each in plain.get("outputs", {}).items()},
        "attribution": Attribution(
            phases=tuple(map(_attribution, plain.get("attribution", ()))),
            uniform_shift=UniformShift(**shift) if shift else None,
        ),
        "origin": RunOrigin(**origin),
    }
    return RunFile(**_fields(RunFile, plain) | told)


def _fields(record_type: type[Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record is made of; what has a default may be missing, and what no field is for is left out."""
    return {
        each.name: plain[name]
        for each in fields(record_type)
        if (name := written_name(each.name)) in plain or each.default is each.default_factory is MISSING
    }


def _judgement(case: Mapping[str, Any]) -> Judgement:
    samples = {name: tuple(case.get(name, ())) for name in ("samples_ns", "baseline_samples_ns")}
    return Judgement(**_fields(Judgement, case) | samples | {"outcome": Outcome(case["outcome"])})


def _attribution(phase: Mapping[str, Any]) -> PhaseAttribution:
    carriers = tuple(Carrier(**_fields(Carrier, each)) for each in phase["carriers"])
    return PhaseAttribution(**_fields(PhaseAttribution, phase) | {"carriers": carriers})
