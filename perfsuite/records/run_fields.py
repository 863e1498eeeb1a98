"""What each field of ``run.json`` may hold, as far as it is there."""

from __future__ import annotations

from typing import Any, TypedDict

from perfsuite.records.codec import Amount, Count, Number, Whole
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
    """The whole file; `perfsuite.expectation.ceilings` checks its own part when it is built."""

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
    injected: bool
    interrupted: bool
    against: str | None
    engines: dict[str, str]
    peak_rss_bytes: Count | None
    uniform_shift: _Shift | None
    attribution: list[_Phase]
