"""The JSON of a ``run.json``, guarded and checked field by field, for whoever builds something from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypedDict

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import Amount, Count, Number, Whole, double, from_plain, plain_json
from perfsuite.records.events import KeptOutputs
from perfsuite.records.outcome import Outcome


class _Case(TypedDict, total=False):
    id: str
    kind: str
    samples_ns: list[Count]
    measured_ns: Count | None
    tokens_per_s: Amount | None
    floor_ns: Count | None
    expected_ns: Count | None
    expected_lower_ns: Count | None
    expected_upper_ns: Count | None
    limit_ns: Count | None
    baseline_ns: Count | None
    change_ratio: Amount | None
    lower_ratio: Number | None
    upper_ratio: Number | None
    margin_ratio: Number | None
    resolution_ratio: Number | None
    step_share_ratio: Number | None
    baseline_samples_ns: list[Count]
    n_pairs: Count | None
    n_more_pairs: Count | None
    smallest_effect_ratio: Number | None
    outcome: Outcome
    reason: str


class _Carrier(TypedDict, total=False):
    id: str
    role: str
    lost_ns: Whole
    share_ratio: Number
    is_significant: bool
    only_side: str | None


class _Phase(TypedDict, total=False):
    id: str
    lost_ns: Whole
    carriers: list[_Carrier]
    unexplained_ns: Whole


class _Commit(TypedDict, total=False):
    sha: str
    is_dirty: bool
    branch: str | None


class _Board(TypedDict, total=False):
    identity: str
    hostname: str
    is_linked: bool


class _Shift(TypedDict, total=False):
    ratio: Number
    n_cases: Count


class _Cases(TypedDict):
    cases: list[_Case]


class RunFields(_Cases, total=False):
    """The whole file; `perfsuite.records.ceilings` checks its own part when it is built."""

    run_id: str
    arguments: list[str]
    selection: list[str]
    environment: dict[str, str]
    commit: _Commit | None
    board: _Board | None
    device_notes: list[str]
    suite_version: str
    started_at: str
    device: str
    workload: str
    subject: dict[str, str]
    fingerprint: dict[str, dict[str, str]]
    ceilings: Any
    duration_s: dict[str, Amount]
    operator_share_ratio: dict[str, Number]
    joules_per_token: dict[str, Amount | None]
    n_discarded_replicates: dict[str, Count]
    sentinels_ns: dict[str, dict[str, list[Count]]]
    covariates: dict[str, dict[str, Number | None]]
    outputs: dict[str, KeptOutputs]
    injected: bool
    interrupted: bool
    against: str | None
    engines: dict[str, str]
    peak_rss_bytes: Count | None
    uniform_shift: _Shift | None
    attribution: list[_Phase]


#: Raised whenever a field changes its meaning.
SCHEMA = 1

#: What the file of a run is called in the run's folder.
RUN_NAME = "run.json"

#: Ratios closer to 0 are none, and a time over one would be infinite.
_SMALLEST_RATIO = 1e-12


def read_plain_run(path: Path, error_type: type[PerfsuiteError] = PerfsuiteError) -> Mapping[str, Any]:
    """Return what the file holds; the fields that are there are of their types, and there are cases.

    Raises PerfsuiteError: of `error_type`: the file cannot be read, is no ``run.json`` of this schema, or a field holds
    what it cannot.
    """
    plain: Mapping[str, Any] = plain_json(path, error_type, "name the folder or the run.json of a run")
    cases = from_plain(plain, RunFields, str(path), error_type, "run again", schema=SCHEMA)["cases"]
    if twice := double(case["id"] for case in cases if "id" in case):
        raise error_type(f"{path}: cases{twice}; run again")
    for case in cases:
        if 0.0 < (ratio := case.get("change_ratio") or 0.0) < _SMALLEST_RATIO:
            message = (
                f"cases[{case.get('id')!r}].change_ratio is {ratio}, expected 0 or a number from {_SMALLEST_RATIO}"
            )
            raise error_type(f"{path}: {message}; run again")
    return plain


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
