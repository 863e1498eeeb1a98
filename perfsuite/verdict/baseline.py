"""Stored baselines: ``<directory>/<device>/<model>.json``, entries by fingerprint and board, with their sessions.

What was asked for, such as the backend, chooses the entry; what the machine is must be equal for times to be
comparable; the engine's version does neither, for it is what is judged.

Two boards of a kind have one fingerprint, and may still differ by more than any margin: each that is measured over a
link has an entry of its own. What ran on the machine itself has none: machines that exist for a night share theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfsuite.errors import BaselineError
from perfsuite.records.codec import Number, Size, from_plain, plain_json, to_plain
from perfsuite.records.events import KeptOutputs
from perfsuite.records.fingerprint import ENGINE, Fingerprint, asked_fields, differences, machine_fields, without_engine
from perfsuite.records.own_files import is_locked
from perfsuite.records.whole_file import make_folder, plain_name, write_json, write_whole_bytes
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
    outputs: KeptOutputs | None = None


#: By the file's name of a field of a session: that of `StoredSession`.
_SESSION_FIELDS = {name: {"cases": "samples_ns", "engine": "engine_id"}.get(name, name) for name in _Session.__slots__}


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
    fingerprint: Mapping[str, str]
    recorded_at: str
    suite_version: str
    cases: Mapping[str, tuple[Size, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File1:
    entries: tuple[_Entry1, ...]


def plain_entry(entry: BaselineEntry) -> dict[str, Any]:
    """Return an entry as JSON-able values; what it has none of is left out."""
    plain = to_plain(entry)
    renamed = [{name: session[field] for name, field in _SESSION_FIELDS.items()} for session in plain["sessions"]]
    for session in renamed:
        session["cases"] = dict(sorted(session["cases"].items()))
    plain["sessions"] = [_without_nulls(session) for session in renamed]
    return _without_nulls({name: plain[name] for name in _Entry.__slots__})


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
    session = StoredSession(
        recorded_at=read.recorded_at,
        suite_version=read.suite_version,
        samples_ns=read.cases,
        engine_version=read.fingerprint.get(ENGINE),
    )
    return first_entry(read.fingerprint, session)


def _session(read: _Session, engine_version: str | None) -> StoredSession:
    session = StoredSession(**{field: getattr(read, name) for name, field in _SESSION_FIELDS.items()})
    return session if session.engine_version is not None else replace(session, engine_version=engine_version)


def _without_nulls(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if value is not None}


#: Longest to wait for somebody else who changes the baselines, which takes milliseconds.
LOCK_LIMIT_S = 30.0

_TODO = "restore it from version control, or move it away and re-record with --baseline=record"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFile:
    """All entries of one device and model."""

    path: Path
    entries: tuple[BaselineEntry, ...] = field(default=())

    def find(self, fingerprint: Fingerprint, board: str | None = None) -> BaselineEntry | None:
        """Return the entry with exactly this fingerprint, whatever its engine, and board."""
        return next((entry for entry in self.entries if entry.is_of(fingerprint, board)), None)

    def comparable(self, fingerprint: Fingerprint, board: str | None = None) -> tuple[BaselineEntry, ...]:
        """Return the entries that a run on a board is compared with; the first that holds a case counts for it.

        These are the board's own, and then the one without a board: older versions and runs on the machine itself
        left it, and who recorded before keeps a reference until the board has its own. Other boards' never count:
        their difference would be taken for a change.
        """
        named = dict.fromkeys((board, None))
        return tuple(entry for each in named if (entry := self.find(fingerprint, each)) is not None)

    def other_boards(self, fingerprint: Fingerprint, board: str | None = None) -> tuple[BaselineEntry, ...]:
        """Return the entries of other boards of this kind, which do not count for this one."""
        others = (entry for entry in self.entries if entry.board not in (board, None))
        return tuple(entry for entry in others if entry.is_of(fingerprint, entry.board))

    def machine_differences(self, fingerprint: Fingerprint, board: str | None = None) -> tuple[str, ...]:
        """Name the fields in which the board's most similar entry of the same settings differs, or any board's.

        Empty when there is no entry of what was asked for.
        """
        asked = asked_fields(fingerprint)
        entries = [entry for entry in self.entries if asked_fields(entry.fingerprint) == asked]
        own = [entry for entry in entries if entry.board == board]
        here = machine_fields(fingerprint)
        candidates = [differences(machine_fields(entry.fingerprint), here) for entry in own or entries]
        return min(candidates, key=len, default=())

    def unknown_settings(self, fingerprint: Fingerprint) -> dict[str, str]:
        """Return what was asked for and the most similar entry was not measured with; empty when there is no entry."""
        asked = asked_fields(fingerprint).items()
        stored = [asked_fields(entry.fingerprint) for entry in self.entries]
        return min(
            ({field: value for field, value in asked if each.get(field) != value} for each in stored),
            key=len,
            default={},
        )

    def with_session(self, fingerprint: Fingerprint, session: StoredSession, board: str | None = None) -> BaselineFile:
        """Return the file with a session more in the entry of its fingerprint and board, made where there is none."""
        old = self.find(fingerprint, board)
        return self.with_entry(old.with_session(session) if old else first_entry(fingerprint, session, board))

    def with_entry(self, new: BaselineEntry) -> BaselineFile:
        """Return the file with `new` in place of the entry of its fingerprint and board."""
        old = self.find(new.fingerprint, new.board)
        entries = tuple(new if each is old else each for each in self.entries)
        return BaselineFile(path=self.path, entries=entries if old else (*entries, new))


def baseline_path(directory: Path, device: str, name: str) -> Path:
    """Return where the baselines of a model, or of ``kernels``, lie for a device.

    Raises BaselineError: one of the names would lead out of the directory.
    """
    folder = directory / plain_name(device, f"{directory}: the device", BaselineError)
    return folder / f"{plain_name(name, f'{folder}: the model or group', BaselineError)}.json"


def read_baselines(path: Path) -> BaselineFile:
    """Read a file of baselines of this schema or an earlier one; one that does not exist has no entries.

    Raises BaselineError: the file is not JSON, has another schema, or lacks a field.
    """
    plain = plain_json(path, BaselineError, _TODO, absent={"schema": SCHEMA, "entries": []})
    return BaselineFile(path=path, entries=_merged(entries_from_plain(plain, str(path), _TODO)))


@contextmanager
def changing(folder: Path) -> Iterator[None]:
    """Keep others from changing the baselines below a folder between reading and writing them.

    Raises BaselineError: the folder cannot be made, or somebody else has been changing them for `LOCK_LIMIT_S`.
    """
    try:
        make_folder(folder)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise BaselineError(f"{folder}: cannot be written ({error.strerror})") from error
    try:
        if not is_locked(handle, LOCK_LIMIT_S):
            raise BaselineError(f"{folder}: another command has been changing it for {LOCK_LIMIT_S:g} s; try again")
        yield
    finally:
        os.close(handle)  # and so the lock, as a kill would


def write_baselines(*changed: BaselineFile, texts: Mapping[Path, str] | None = None) -> None:
    """Write files, each whole or not at all, and before them texts beside them: what is cut off can be repeated."""
    for path, text in (texts or {}).items():
        write_whole_bytes(path, text.encode(), BaselineError)
    for each in changed:
        plain = {"schema": SCHEMA, "entries": [plain_entry(entry) for entry in each.entries]}
        write_json(each.path, plain, BaselineError)


def _merged(entries: Iterable[BaselineEntry]) -> tuple[BaselineEntry, ...]:
    """Join entries that differ in nothing but the engine, which older versions kept apart."""
    merged: list[BaselineEntry] = []
    for entry in entries:
        same = [place for place, each in enumerate(merged) if each.is_of(entry.fingerprint, entry.board)]
        if same:
            merged[same[0]] = merged[same[0]].joined(entry)
        else:
            merged.append(entry)
    return tuple(merged)
