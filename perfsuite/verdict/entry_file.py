"""Entries of baselines as JSON-able values, of this schema and the one before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from perfsuite.device.fingerprint import ENGINE, without_engine
from perfsuite.verdict.entry import Anchor, Approval, BaselineEntry, StoredSession, first_entry


def plain_entry(entry: BaselineEntry) -> dict[str, Any]:
    """Return an entry as docs/run-format.md describes it."""
    return {
        "fingerprint": dict(entry.fingerprint),
        **({} if entry.board is None else {"board": entry.board}),
        "sessions": [_plain_session(session) for session in entry.sessions],
        "anchor": {
            "recorded_at": entry.anchor.recorded_at,
            "reason": entry.anchor.reason,
            "cases_ns": dict(entry.anchor.cases_ns),
            "sentinels_ns": dict(entry.anchor.sentinels_ns),
        },
        "approvals": [_plain_approval(approval) for approval in entry.approvals],
    }


def entry_from_plain(plain: Mapping[str, Any]) -> BaselineEntry:
    """Rebuild an entry from `plain_entry`; a field that is missing or no time raises what Python raises."""
    anchor, fingerprint = plain["anchor"], _fingerprint(plain)
    return BaselineEntry(
        fingerprint=without_engine(fingerprint),
        sessions=tuple(_session(session, fingerprint.get(ENGINE)) for session in plain["sessions"]),
        anchor=Anchor(
            recorded_at=str(anchor["recorded_at"]),
            reason=str(anchor["reason"]),
            cases_ns=_times(anchor["cases_ns"]),
            sentinels_ns=_times(anchor["sentinels_ns"]),
        ),
        approvals=tuple(_approval(approval) for approval in plain["approvals"]),
        board=None if plain.get("board") is None else str(plain["board"]),
    )


def entry_from_plain_1(plain: Mapping[str, Any]) -> BaselineEntry:
    """Read an entry of schema 1, which is one session, and anchor it there."""
    fingerprint = _fingerprint(plain)
    session = StoredSession(
        recorded_at=str(plain["recorded_at"]),
        suite_version=str(plain["suite_version"]),
        samples_ns=_samples(plain["cases"]),
        engine_version=fingerprint.get(ENGINE),
    )
    return first_entry(fingerprint, session)


def _plain_session(session: StoredSession) -> dict[str, Any]:
    return {
        "recorded_at": session.recorded_at,
        "suite_version": session.suite_version,
        "cases": {case_id: list(samples) for case_id, samples in sorted(session.samples_ns.items())},
        "sentinels_ns": {name: list(times) for name, times in session.sentinels_ns.items()},
        "covariates": dict(session.covariates),
        **({} if session.engine_id is None else {"engine": session.engine_id}),
        **({} if session.engine_version is None else {"engine_version": session.engine_version}),
    }


def _session(plain: Mapping[str, Any], engine_version: str | None) -> StoredSession:
    """Read a session; older versions wrote the engine's version into the fingerprint of the entry alone."""
    engine_version = plain.get("engine_version", engine_version)
    return StoredSession(
        recorded_at=str(plain["recorded_at"]),
        suite_version=str(plain["suite_version"]),
        samples_ns=_samples(plain["cases"]),
        sentinels_ns=_samples(plain["sentinels_ns"]),
        covariates={str(name): _number(value) for name, value in plain["covariates"].items()},
        engine_id=None if plain.get("engine") is None else str(plain["engine"]),
        engine_version=None if engine_version is None else str(engine_version),
    )


def _plain_approval(approval: Approval) -> dict[str, Any]:
    return {
        "approved_at": approval.approved_at,
        "reason": approval.reason,
        "change_ratio": dict(approval.change_ratio),
        "retired_ns": dict(approval.retired_ns),
    }


def _approval(plain: Mapping[str, Any]) -> Approval:
    return Approval(
        approved_at=str(plain["approved_at"]),
        reason=str(plain["reason"]),
        change_ratio={str(case_id): float(ratio) for case_id, ratio in plain["change_ratio"].items()},
        retired_ns=_times(plain["retired_ns"]),
    )


def _fingerprint(plain: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in plain["fingerprint"].items()}


def _samples(plain: Mapping[str, Iterable[Any]]) -> dict[str, tuple[int, ...]]:
    return {str(name): tuple(_time(value) for value in values) for name, values in plain.items()}


def _times(plain: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): _time(value) for name, value in plain.items()}


def _time(value: Any) -> int:
    time_ns = int(value)
    if time_ns <= 0:
        raise ValueError("a sample is not positive")
    return time_ns


def _number(value: Any) -> float | None:
    number = None if value is None else float(value)
    if number is not None and not math.isfinite(number):
        raise ValueError("a covariate is not finite")
    return number
