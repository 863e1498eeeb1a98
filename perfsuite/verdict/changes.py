"""How the cases of a run stand to what is stored, and how the reference crept away from the anchor by approvals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from perfsuite.errors import BaselineError
from perfsuite.units import format_change, format_count, format_ns
from perfsuite.verdict.drift import from_anchor_ratio
from perfsuite.verdict.entry import Approval, BaselineEntry, StoredSession, entry_with
from perfsuite.verdict.match import match_entry
from perfsuite.verdict.significance import Change, compare_sessions, spread_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseChange:
    """One case of a run beside its reference; None where nothing is stored."""

    case_id: str
    #: Medians as they were measured, ns.
    old_ns: int | None
    new_ns: int
    #: New over old, the drift of the sentinel divided out.
    change: Change | None
    #: New over anchor, likewise.
    anchor_ratio: float | None
    #: The drift that was divided out, or why nothing that is stored can be compared with; empty without either.
    drift: str = ""

    @property
    def ratio(self) -> float | None:
        return self.change.estimate_ratio if self.change else None

    def is_beyond(self, margin_ratio: float) -> bool:
        """Say whether the case is slower than its reference by more than the margin."""
        return self.ratio is not None and self.ratio > 1.0 + margin_ratio


def case_changes(
    entries: Sequence[BaselineEntry],
    session: StoredSession,
    *,
    weights: Mapping[str, float],
    default_spread_ratio: float,
) -> tuple[CaseChange, ...]:
    """Compare every case of a session with the stored ones of the first entry that holds it."""
    return tuple(
        _case_change(entry_with(entries, case_id) or entries[0], session, case_id, weights, default_spread_ratio)
        for case_id in session.samples_ns
    )


def drift_lines(changes: Iterable[CaseChange]) -> Iterator[str]:
    """Yield each drift that was divided out, or was too much for that, with the number of its cases."""
    for drift, count in Counter(each.drift for each in changes if each.drift).items():
        yield f"{format_count(count, 'case')}: {drift}"


def _case_change(
    entry: BaselineEntry,
    session: StoredSession,
    case_id: str,
    weights: Mapping[str, float],
    default_spread_ratio: float,
) -> CaseChange:
    samples = session.samples_ns[case_id]
    match = match_entry(entry, case_id, sentinels_ns=session.sentinels_ns, weights=weights)
    stored = match.sessions_ns
    return CaseChange(
        case_id=case_id,
        old_ns=entry.reference_ns(case_id),
        new_ns=round(median(samples)),
        change=compare_sessions(stored, samples, default_spread_ratio=default_spread_ratio) if stored else None,
        anchor_ratio=from_anchor_ratio(case_id, entry.anchor, session, weights),
        drift=match.problem or match.correction,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Creep:
    """A case whose stored reference is slower than its anchor by more than the margin."""

    case_id: str
    #: Reference over anchor.
    ratio: float
    anchored_at: str
    #: Approvals since the anchor was pinned.
    n_approvals: int

    @property
    def text(self) -> str:
        counted = format_count(self.n_approvals, "approval")
        since = f"since the anchor of {self.anchored_at[:10]}"
        return f"creep: {self.case_id} {format_change(self.ratio)} {since} ({counted})"


def creep_ratio(entry: BaselineEntry, case_id: str, weights: Mapping[str, float]) -> float | None:
    """Return the stored reference of a case over its anchor, less the drift of its sentinel."""
    ratios = [from_anchor_ratio(case_id, entry.anchor, each, weights) for each in entry.sessions_of(case_id)]
    known = [ratio for ratio in ratios if ratio is not None]
    return median(known) if known else None


def find_creep(
    entry: BaselineEntry, case_ids: Collection[str], *, margin_ratio: float, weights: Mapping[str, float]
) -> tuple[Creep, ...]:
    """Return the cases that crept beyond the margin, the furthest first."""
    ratios = {case_id: creep_ratio(entry, case_id, weights) for case_id in case_ids}
    crept = {case_id: ratio for case_id, ratio in ratios.items() if ratio is not None and ratio > 1.0 + margin_ratio}
    anchored_at = entry.anchor.recorded_at
    n_approvals = sum(approval.approved_at >= anchored_at for approval in entry.approvals)
    return tuple(
        Creep(case_id=case_id, ratio=crept[case_id], anchored_at=anchored_at, n_approvals=n_approvals)
        for case_id in sorted(crept, key=lambda case_id: -crept[case_id])
    )


def unknown_creep(entry: BaselineEntry, case_ids: Collection[str], weights: Mapping[str, float]) -> str | None:
    """Say so where the device has changed since the anchor, so that creep of cases is not known; None where it is."""
    anchored = [each for each in case_ids if each in entry.anchor.cases_ns and entry.sessions_of(each)]
    lost = [each for each in anchored if creep_ratio(entry, each, weights) is None]
    if not lost:
        return None
    since = f"since the anchor of {entry.anchor.recorded_at[:10]}"
    return f"creep of {format_count(len(lost), 'case')} is not known: the device has changed {since}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """One stored case; None where there is too little to say."""

    case_id: str
    n_sessions: int
    median_ns: int
    within_ratio: float | None
    between_ratio: float | None
    anchor_ns: int | None
    #: The reference over the anchor, the drift of the sentinel divided out.
    since_anchor_ratio: float | None


def case_summaries(entry: BaselineEntry, weights: Mapping[str, float]) -> tuple[CaseSummary, ...]:
    """Sum up every case of an entry."""
    samples = {case: [session.samples_ns[case] for session in entry.sessions_of(case)] for case in entry.case_ids}
    return tuple(
        CaseSummary(
            case_id=case_id,
            n_sessions=len(samples[case_id]),
            median_ns=median_ns,
            **asdict(spread_of(samples[case_id])),
            anchor_ns=entry.anchor.cases_ns.get(case_id),
            since_anchor_ratio=creep_ratio(entry, case_id, weights),
        )
        for case_id, median_ns in entry.references_ns().items()
    )


#: A reason that is shorter than this gives none.
MIN_REASON_CHARACTERS = 10

#: A case that changed by no more than this is not listed.
NOTABLE_RATIO = 0.005

_HEAD = "| case | old | new | change | since the anchor |\n|---|---:|---:|---:|---:|"


def checked_reason(reason: str) -> str:
    """Return the reason on one line; one that is too short is a `BaselineError`."""
    line = " ".join(reason.split())
    if len(line) < MIN_REASON_CHARACTERS:
        raise BaselineError(
            f"--reason={line!r}: has {len(line)} characters, expected {MIN_REASON_CHARACTERS} or more; "
            "say what changed and why that is right"
        )
    return line


def notable(changes: Iterable[CaseChange]) -> tuple[CaseChange, ...]:
    """Return the cases that changed by more than half a percent, or have nothing to be compared with."""
    return tuple(each for each in changes if each.ratio is None or abs(each.ratio - 1.0) > NOTABLE_RATIO)


def approve(
    entry: BaselineEntry, session: StoredSession, changes: Sequence[CaseChange], *, reason: str, approved_at: str
) -> BaselineEntry:
    """Return the entry with `session` as the only one of its cases; other cases keep theirs.

    Raises BaselineError: the session is the only one of all its cases already.
    """
    stored = ([each.recorded_at for each in entry.sessions_of(case)] for case in session.samples_ns)
    if all(each == [session.recorded_at] for each in stored):
        raise BaselineError(f"the run of {session.recorded_at} is the reference already; nothing to approve")
    approval = Approval(
        approved_at=approved_at,
        reason=reason,
        change_ratio={each.case_id: round(each.ratio, 6) for each in notable(changes) if each.ratio is not None},
        retired_ns={each.case_id: each.old_ns for each in changes if each.old_ns is not None},
    )
    kept = tuple(each.without(session.samples_ns.keys()) for each in entry.sessions)
    remaining = replace(entry, sessions=tuple(each for each in kept if each.samples_ns))
    return replace(remaining.with_session(session), approvals=(*entry.approvals, approval))


def approval_text(
    entry: BaselineEntry, changes: Sequence[CaseChange], *, reason: str, approved_at: str, recorded_at: str
) -> str:
    """Return the section of an approval in Markdown: when, why, and what changed."""
    listed = notable(changes)
    rows = "".join(f"{line}\n" for line in (_HEAD, *map(_row, listed), "")) if listed else ""
    told = "".join(f"- {line}\n" for line in drift_lines(changes))
    return f"""## {approved_at[:10]}: {reason}

The run of {recorded_at} on {entry.machine_text}.
The anchor is of {entry.anchor.recorded_at}: {entry.anchor.reason}. \
Changes are those that remain after dividing out the drift of the sentinels.
{told}

{rows}{format_count(len(changes) - len(listed), "more case")} changed by {NOTABLE_RATIO * 100:g} % or less.
"""


def approvals_path(baselines_path: Path) -> Path:
    """Return where the approvals of a file of baselines are listed."""
    return baselines_path.with_name(f"{baselines_path.name.removesuffix('.json')}.approvals.md")


def with_approval(path: Path, text: str, recorded_at: str) -> str:
    """Return the file's text with the section of a run at its end, unless it is there already."""
    try:
        before = path.read_text("utf-8")
    except FileNotFoundError:
        before = f"# Approvals: {path.parent.name}/{path.name.removesuffix('.approvals.md')}\n"
    except (OSError, ValueError) as error:
        raise BaselineError(f"{path}: cannot be read ({error}); restore it from version control") from error
    if f"The run of {recorded_at} on " in before.rpartition("\n## ")[2]:
        return before
    return f"{before.rstrip()}\n\n{text.rstrip()}\n"


def _row(change: CaseChange) -> str:
    ratios = map(format_change, (change.ratio, change.anchor_ratio))
    cells = (f"`{change.case_id}`", format_ns(change.old_ns), format_ns(change.new_ns), *ratios)
    return f"| {' | '.join(cells)} |"
