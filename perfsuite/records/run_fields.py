"""What each field of ``run.json`` may hold, as far as it is there."""

from __future__ import annotations

from perfsuite.records.field_checks import (
    amount,
    by_name,
    count,
    flag,
    list_of,
    number,
    object_of,
    one_of,
    or_none,
    ratio,
    text,
    whole_number,
)
from perfsuite.records.outcome import Outcome

_CASE = object_of(
    {
        "id": text,
        "kind": text,
        "samples_ns": list_of(count),
        "measured_ns": or_none(count),
        "tokens_per_s": or_none(amount),
        "floor_ns": or_none(count),
        "expected_ns": or_none(count),
        "expected_lower_ns": or_none(count),
        "expected_upper_ns": or_none(count),
        "limit_ns": or_none(count),
        "baseline_ns": or_none(count),
        "change_ratio": or_none(ratio),
        "lower_ratio": or_none(number),
        "upper_ratio": or_none(number),
        "margin_ratio": or_none(number),
        "resolution_ratio": or_none(number),
        "step_share_ratio": or_none(number),
        "baseline_samples_ns": list_of(count),
        "n_pairs": or_none(count),
        "n_more_pairs": or_none(count),
        "smallest_effect_ratio": or_none(number),
        "outcome": one_of([outcome.value for outcome in Outcome]),
        "reason": text,
    }
)

_CARRIER = object_of(
    {"id": text, "role": text, "lost_ns": whole_number, "share_ratio": number, "is_significant": flag},
)

_PHASE = object_of(
    {"id": text, "lost_ns": whole_number, "carriers": list_of(_CARRIER), "unexplained_ns": whole_number},
)

#: The whole file; `perfsuite.expectation.ceilings` checks its own part when it is built.
RUN_FIELDS = object_of(
    {
        "run_id": text,
        "arguments": list_of(text),
        "selection": list_of(text),
        "environment": by_name(text),
        "commit": or_none(object_of({"sha": text, "is_dirty": flag, "branch": or_none(text)})),
        "board": or_none(object_of({"identity": text, "hostname": text, "is_linked": flag})),
        "device_notes": list_of(text),
        "suite_version": text,
        "started_at": text,
        "device": text,
        "workload": text,
        "subject": by_name(text),
        "fingerprint": by_name(by_name(text)),
        "duration_s": by_name(amount),
        "operator_share_ratio": by_name(number),
        "joules_per_token": by_name(or_none(amount)),
        "n_discarded_replicates": by_name(count),
        "sentinels_ns": by_name(by_name(list_of(count))),
        "covariates": by_name(by_name(or_none(number))),
        "injected": flag,
        "interrupted": flag,
        "against": or_none(text),
        "peak_rss_bytes": or_none(count),
        "uniform_shift": or_none(object_of({"ratio": number, "n_cases": count})),
        "attribution": list_of(_PHASE),
        "cases": list_of(_CASE, key="id"),
    }
)
