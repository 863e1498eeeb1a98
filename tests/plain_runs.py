"""A ``run.json`` with every field that all versions wrote, for tests that are about a few of them."""

from __future__ import annotations

from typing import Any

from perfsuite.records.run_file import SCHEMA

_RUN = {
    "schema": SCHEMA,
    "suite_version": "1",
    "started_at": "2025-01-01T00:00:00+00:00",
    "device": "host",
    "subject": {},
    "ceilings": None,
    "duration_s": {},
    "operator_share_ratio": {},
    "n_discarded_replicates": {},
    "peak_rss_bytes": None,
}
_CASE = {
    **dict.fromkeys(("measured_ns", "floor_ns", "expected_ns", "limit_ns", "baseline_ns", "change_ratio")),
    "kind": "phase",
    "reason": "",
}


def plain_run_of(*cases: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a run with these fields and cases, and the rest as in a run that has none of it."""
    return {**_RUN, **fields, "cases": [{**_CASE, **case} for case in cases]}
