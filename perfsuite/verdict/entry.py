"""What is stored of one fingerprint and board: sessions with their raw samples, the anchor, and the approvals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from perfsuite.records.codec import Number, Size
from perfsuite.records.events import KeptOutputs
from perfsuite.records.fingerprint import ENGINE, Fingerprint, without_engine

#: How many sessions are kept of a case; the oldest go first.
MAX_SESSIONS = 20

#: Why the anchor of a case lies where it does, before anybody pins it.
FIRST_SESSION = "the first session"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """What one run measured."""

    recorded_at: str
    suite_version: str
    #: Samples of each case, ns, one a replicate.
    samples_ns: Mapping[str, tuple[Size, ...]]
    #: By sentinel: its time in each replicate, ns.
    sentinels_ns: Mapping[str, tuple[Size, ...]] = field(default_factory=dict)
    #: What may explain a session and does not identify it; None is 'not measured'.
    covariates: Mapping[str, Number | None] = field(default_factory=dict)
    #: What made it, by its id in the store of engines of the machine that was measured; None where it was not kept.
    engine_id: str | None = None
    #: The released version of the engine that was measured; None where there was none.
    engine_version: str | None = None
    #: What its first process came to; None of what older versions recorded.
    outputs: KeptOutputs | None = None

    def median_ns(self, case_id: str) -> float:
        return float(median(self.samples_ns[case_id]))

    def sentinel_ns(self, sentinel: str) -> float | None:
        """Return the median of a sentinel; None where it was not measured."""
        times_ns = self.sentinels_ns.get(sentinel)
        return float(median(times_ns)) if times_ns else None

    def without(self, case_ids: Collection[str]) -> StoredSession:
        kept = {case_id: values for case_id, values in self.samples_ns.items() if case_id not in case_ids}
        return replace(self, samples_ns=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A reference that nothing moves but a decision: what slow creep is measured from."""

    recorded_at: str
    reason: str
    #: Median of each case, ns.
    cases_ns: Mapping[str, Size]
    #: Median of each sentinel, ns.
    sentinels_ns: Mapping[str, Size]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Somebody's decision that a run is the new reference."""

    approved_at: str
    reason: str
    #: New over old of each case that changed notably.
    change_ratio: Mapping[str, Number]
    #: The reference that each case had until then, ns; its samples are in the file's history.
    retired_ns: Mapping[str, Size]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEntry:
    """Everything that is stored under one fingerprint and board; sessions and approvals in the order of time."""

    #: What was asked for and what the machine is; the engine's version is each session's own.
    fingerprint: Fingerprint
    sessions: tuple[StoredSession, ...]
    anchor: Anchor
    approvals: tuple[Approval, ...] = ()
    #: Identity of the board that was measured over a link. None of what ran on the machine itself, which machines of
    #: one kind share, and of what older versions recorded.
    board: str | None = None

    @property
    def machine_text(self) -> str:
        """What the entry was measured on, in words: the fingerprint, the engines, and the board where it has one."""
        engines = dict.fromkeys(session.engine_version for session in self.sessions if session.engine_version)
        of_engines = {ENGINE: ", then ".join(engines)} if engines else {}
        of_board = {} if self.board is None else {"board": self.board}
        return ", ".join(f"{field} {value}" for field, value in {**self.fingerprint, **of_engines, **of_board}.items())

    @property
    def case_ids(self) -> tuple[str, ...]:
        return tuple(sorted({case_id for session in self.sessions for case_id in session.samples_ns}))

    def sessions_of(self, case_id: str) -> tuple[StoredSession, ...]:
        return tuple(session for session in self.sessions if session.samples_ns.get(case_id))

    def reference_ns(self, case_id: str) -> int | None:
        """Return the median of the sessions' medians; None where no session holds the case."""
        medians = [session.median_ns(case_id) for session in self.sessions_of(case_id)]
        return round(median(medians)) if medians else None

    def references_ns(self) -> dict[str, int]:
        found = {case_id: self.reference_ns(case_id) for case_id in self.case_ids}
        return {case_id: reference for case_id, reference in found.items() if reference is not None}

    def has_session(self, recorded_at: str) -> bool:
        return any(session.recorded_at == recorded_at for session in self.sessions)

    def without_session(self, recorded_at: str) -> BaselineEntry:
        """Return the entry less the session of one run, to which that run itself must be compared."""
        return replace(self, sessions=tuple(each for each in self.sessions if each.recorded_at != recorded_at))

    def is_of(self, fingerprint: Fingerprint, board: str | None) -> bool:
        """Say whether this is the entry of a fingerprint, whatever its engine, and of a board."""
        return self.board == board and dict(self.fingerprint) == without_engine(fingerprint)

    def joined(self, other: BaselineEntry) -> BaselineEntry:
        """Return all that both hold; where both have an anchor of a case, the earlier one counts."""
        first, last = sorted((self, other), key=lambda entry: entry.anchor.recorded_at)
        anchor = replace(
            first.anchor,
            cases_ns=dict(sorted({**last.anchor.cases_ns, **first.anchor.cases_ns}.items())),
            sentinels_ns={**last.anchor.sentinels_ns, **first.anchor.sentinels_ns},
        )
        sessions = sorted((*self.sessions, *other.sessions), key=lambda session: session.recorded_at)
        approvals = sorted((*self.approvals, *other.approvals), key=lambda approval: approval.approved_at)
        return replace(self, sessions=tuple(sessions), anchor=anchor, approvals=tuple(approvals))

    def with_session(self, session: StoredSession) -> BaselineEntry:
        """Add a session; cases that the anchor lacks are pinned at it, and the oldest samples go."""
        added = replace(self, sessions=(*self.sessions, session), anchor=_extended(self.anchor, session))
        return added.pruned(MAX_SESSIONS)

    def pruned(self, n_kept: int) -> BaselineEntry:
        """Keep the newest sessions of each case; a session that holds no case any more goes."""
        kept: list[StoredSession] = []
        for index, session in enumerate(self.sessions):
            later = self.sessions[index + 1 :]
            old = {case for case in session.samples_ns if sum(case in each.samples_ns for each in later) >= n_kept}
            kept.append(session.without(old))
        return replace(self, sessions=tuple(session for session in kept if session.samples_ns))

    def for_board(self, board: str | None, session: StoredSession) -> BaselineEntry:
        """Return an entry for a board that has none, still empty: its anchor is its own first session."""
        return replace(first_entry(self.fingerprint, session, board), sessions=())

    def anchored(self, *, recorded_at: str, reason: str) -> BaselineEntry:
        """Pin the anchor to the present reference; cases that no session holds stay where they are."""
        cases_ns = {**self.anchor.cases_ns, **self.references_ns()}
        sentinels_ns = _sentinel_medians(self.sessions)
        anchor = Anchor(recorded_at=recorded_at, reason=reason, cases_ns=cases_ns, sentinels_ns=sentinels_ns)
        return replace(self, anchor=anchor)


def entry_with(entries: Iterable[BaselineEntry], case_id: str) -> BaselineEntry | None:
    """Return the first entry that holds sessions of a case."""
    return next((entry for entry in entries if entry.sessions_of(case_id)), None)


def first_entry(fingerprint: Fingerprint, session: StoredSession, board: str | None = None) -> BaselineEntry:
    """Return the entry of a fingerprint and board that were never measured before, anchored at its session.

    What a board was compared with until then has another anchor: that of other boards, or of nobody knows which. A
    board that merely differs from them has not crept.
    """
    cases_ns, sentinels_ns = _medians(session), _sentinel_medians((session,))
    when = session.recorded_at
    anchor = Anchor(recorded_at=when, reason=FIRST_SESSION, cases_ns=cases_ns, sentinels_ns=sentinels_ns)
    return BaselineEntry(fingerprint=without_engine(fingerprint), sessions=(session,), anchor=anchor, board=board)


def _extended(anchor: Anchor, session: StoredSession) -> Anchor:
    cases_ns = {**_medians(session), **anchor.cases_ns}
    sentinels_ns = {**_sentinel_medians((session,)), **anchor.sentinels_ns}
    return replace(anchor, cases_ns=dict(sorted(cases_ns.items())), sentinels_ns=sentinels_ns)


def _medians(session: StoredSession) -> dict[str, int]:
    return {case_id: round(median(values)) for case_id, values in session.samples_ns.items() if values}


def _sentinel_medians(sessions: Collection[StoredSession]) -> dict[str, int]:
    names = sorted({name for session in sessions for name in session.sentinels_ns})
    medians = {name: [session.sentinel_ns(name) for session in sessions] for name in names}
    found = {name: [value for value in values if value is not None] for name, values in medians.items()}
    return {name: round(median(values)) for name, values in found.items() if values}
