"""A run, as its ``run.json`` holds it; the fields are described in docs/run-format.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import GenericAlias
from typing import Any, get_type_hints

from perfsuite.errors import PerfsuiteError
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.codec import Amount, Count, Number, double, from_plain, plain_json, rebuilt
from perfsuite.records.events import KeptOutputs
from perfsuite.records.outcome import NO_ATTRIBUTION, Attribution, Carrier, Judgement, PhaseAttribution, UniformShift
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin

#: Raised whenever a field changes its meaning.
SCHEMA = 1

RUN_NAME = "run.json"

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
    durations_s: Mapping[str, Amount]
    operator_share_ratio: Mapping[str, Number]
    n_discarded_replicates: Mapping[str, Count]
    peak_rss_bytes: Count | None
    judgements: tuple[Judgement, ...]
    #: By group: the time of each sentinel in each replicate, and what else was seen of the machine.
    sentinels_ns: Mapping[str, Mapping[str, tuple[Count, ...]]] = field(default_factory=dict)
    covariates: Mapping[str, Mapping[str, Number | None]] = field(default_factory=dict)
    #: By group: what its first process came to, for a baseline that is made of the run.
    outputs: Mapping[str, KeptOutputs] = field(default_factory=dict)
    #: By phase: the energy of a token; None where it was too short for the sensor, empty where there is no sensor.
    joules_per_token: Mapping[str, Amount | None] = field(default_factory=dict)
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


def _plain_type(record_type: type[Any], **others: Any) -> Any:
    """Return the type of a record in the file, where each field has its written name and may be missing."""
    hints = get_type_hints(record_type, include_extras=True)
    known = {written_name(each.name): hints[each.name] for each in fields(record_type)} | others
    return make_dataclass("Plain", [(name, hint, field(default=None)) for name, hint in known.items()], kw_only=True)


_CARRIERS = GenericAlias(list, _plain_type(Carrier))
_PHASES = GenericAlias(list, _plain_type(PhaseAttribution, carriers=_CARRIERS))
_CASES = GenericAlias(list, _plain_type(Judgement, tokens_per_s=Amount | None))
_BASES = (_plain_type(RunOrigin), _plain_type(RunFile, attribution=_PHASES, uniform_shift=UniformShift | None))
_Run: type[Any] = make_dataclass("Run", [("cases", _CASES)], bases=_BASES, kw_only=True)

#: Ratios closer to 0 are none, and a time over one would be infinite.
_SMALLEST_RATIO = 1e-12


def read_plain_run(path: Path, error_type: type[PerfsuiteError] = PerfsuiteError) -> Mapping[str, Any]:
    """Return what the file holds; the fields that are there are of their types, and there are cases.

    Raises PerfsuiteError: of `error_type`: the file cannot be read, is no ``run.json`` of this schema, or a field holds
    what it cannot.
    """
    plain: Mapping[str, Any] = plain_json(path, error_type, "name the folder or the run.json of a run")
    from_plain(plain, _Run, str(path), error_type, "run again", schema=SCHEMA)
    cases = plain["cases"]
    if twice := double(case["id"] for case in cases if "id" in case):
        raise error_type(f"{path}: cases{twice}; run again")
    for case in cases:
        if 0.0 < (ratio := case.get("change_ratio") or 0.0) < _SMALLEST_RATIO:
            told = f"cases[{case.get('id')!r}].change_ratio is {ratio}, expected 0 or a number from {_SMALLEST_RATIO}"
            raise error_type(f"{path}: {told}; run again")
    return plain


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
        return rebuilt(_fields(RunFile, plain) | _nested(plain), RunFile)
    except KeyError as error:
        raise error_type(f"{path}: lacks the field {error}; run again") from error
    except ValueError as error:
        raise error_type(f"{path}: cannot be used ({error}); run again") from error


def _nested(plain: Mapping[str, Any]) -> dict[str, Any]:
    phases = [
        _fields(PhaseAttribution, phase) | {"carriers": [_fields(Carrier, each) for each in phase["carriers"]]}
        for phase in plain.get("attribution", ())
    ]
    return {
        "durations_s": {name: spent for name, spent in plain["duration_s"].items() if name != "total"},
        "judgements": [_fields(Judgement, {"samples_ns": (), **case}) for case in plain["cases"]],
        "attribution": {"phases": phases, "uniform_shift": plain.get("uniform_shift")},
        "origin": _fields(RunOrigin, plain),
    }


def _fields(record_type: type[Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record is made of; what has a default may be missing, and what no field is for is left out."""
    return {
        each.name: plain[name]
        for each in fields(record_type)
        if (name := written_name(each.name)) in plain or each.default is each.default_factory is MISSING
    }


#: A date and a time to the minute or finer; Python 3.10 reads by itself neither ``Z`` nor any number of digits.
_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<minute>\d\d:\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>[Zz]|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


def moment_of(text: str) -> datetime | None:
    """Return the moment in UTC; None where the text is no such time, or one before the year 1 or after 9999.

    A time without a zone is UTC. What is finer than a microsecond is cut.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    fraction = (found["fraction"] or "")[:6].ljust(6, "0")
    zone = found["zone"] or "Z"
    offset = "+00:00" if zone in "Zz" else f"{zone[:3]}:{zone[-2:]}"
    try:
        moment = datetime.fromisoformat(
            f"{found['day']}T{found['minute']}:{found['second'] or '00'}.{fraction}{offset}"
        )
        return moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
