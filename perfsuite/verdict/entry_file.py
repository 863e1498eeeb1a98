"""Entries of baselines as files have them, of this schema and the one before; docs/run-format.md describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfsuite.device.fingerprint import ENGINE, without_engine
from perfsuite.errors import BaselineError
from perfsuite.records.codec import Number, Size, from_plain, to_plain
from perfsuite.verdict.entry import Anchor, Approval, BaselineEntry, StoredSession, first_entry

#: Raised whenever the file's fields change their meaning.
SCHEMA = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    recorded_at: str
    suite_version: str
    cases: Mapping[str, tuple[Size, ...]]
    sentinels_ns: Mapping[str, tuple[Size, ...]]
    covariates: Mapping[str, Number | None]
    engine: str | None = None
    #: Older versions wrote it into the fingerprint of the entry alone.
    engine_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    fingerprint: Mapping[str, str]
    board: str | None = None
    sessions: tuple[_Session, ...]
    anchor: Anchor
    approvals: tuple[Approval, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    entries: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry1:
    """An entry of schema 1, which is one session."""

    fingerprint: Mapping[str, str]
    recorded_at: str
    suite_version: str
    cases: Mapping[str, tuple[Size, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File1:
    entries: tuple[_Entry1, ...]


def plain_entry(entry: BaselineEntry) -> dict[str, Any]:
    """Return an entry as JSON-able values; what it has none of is left out."""
    plain = to_plain(
        _Entry(
            fingerprint=entry.fingerprint,
            board=entry.board,
            sessions=tuple(_file_session(session) for session in entry.sessions),
            anchor=entry.anchor,
            approvals=entry.approvals,
        )
    )
    sessions = [_without_nulls(session) for session in plain["sessions"]]
    return _without_nulls(plain | {"sessions": sessions})


def entries_from_plain(plain: Any, where: str, todo: str) -> tuple[BaselineEntry, ...]:
    """Return the entries of a file of either schema; BaselineError names the field and ends with `todo`."""
    if isinstance(plain, dict) and plain.get("schema") == 1:
        first = from_plain(plain, _File1, where, BaselineError, todo, schema=1)
        return tuple(map(_entry_1, first.entries))
    return tuple(map(_entry, from_plain(plain, _File, where, BaselineError, todo, schema=SCHEMA).entries))


def _entry(read: _Entry) -> BaselineEntry:
    return BaselineEntry(
        fingerprint=without_engine(read.fingerprint),
        sessions=tuple(_session(session, read.fingerprint.get(ENGINE)) for session in read.sessions),
        anchor=read.anchor,
        approvals=read.approvals,
        board=read.board,
    )


def _entry_1(read: _Entry1) -> BaselineEntry:
    """Anchor an entry at its only session."""
    session = StoredSession(
        recorded_at=read.recorded_at,
        suite_version=read.suite_version,
        samples_ns=read.cases,
        engine_version=read.fingerprint.get(ENGINE),
    )
    return first_entry(read.fingerprint, session)


def _file_session(session: StoredSession) -> _Session:
    return _Session(
        recorded_at=session.recorded_at,
        suite_version=session.suite_version,
        cases=dict(sorted(session.samples_ns.items())),
        sentinels_ns=session.sentinels_ns,
        covariates=session.covariates,
        engine=session.engine_id,
        engine_version=session.engine_version,
    )


def _session(read: _Session, engine_version: str | None) -> StoredSession:
    return StoredSession(
        recorded_at=read.recorded_at,
        suite_version=read.suite_version,
        samples_ns=read.cases,
        sentinels_ns=read.sentinels_ns,
        covariates=read.covariates,
        engine_id=read.engine,
        engine_version=engine_version if read.engine_version is None else read.engine_version,
    )


def _without_nulls(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if value is not None}
