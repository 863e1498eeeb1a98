"""Finds what the store holds for a case of a run: samples by session, the drift of its sentinel divided out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from perfsuite.records.fingerprint import ENGINE, Fingerprint
from perfsuite.units import format_count
from perfsuite.verdict.baseline import BaselineFile
from perfsuite.verdict.compare import BaselineMatch
from perfsuite.verdict.drift import Drift, drift_between
from perfsuite.verdict.entry import BaselineEntry, entry_with


def match_case(
    baselines: BaselineFile,
    fingerprint: Fingerprint,
    case_id: str,
    *,
    sentinels_ns: Mapping[str, Sequence[int]],
    weights: Mapping[str, float],
    board: str | None = None,
) -> BaselineMatch:
    """Return the comparable samples of a case, or why there are none.

    `board` is the identity of what was measured over a link; None of a run on the machine itself.
    """
    comparable = baselines.comparable(fingerprint, board)
    entry = entry_with(comparable, case_id)
    if entry is not None:
        match = match_entry(entry, case_id, sentinels_ns=sentinels_ns, weights=weights)
        return replace(match, engines=_engines_text(entry, case_id, fingerprint.get(ENGINE)))
    others = [each for each in baselines.other_boards(fingerprint, board) if each.sessions_of(case_id)]
    has_others = bool(others) and not any(each.board == board for each in baselines.entries)
    if not comparable and not has_others:
        differences = baselines.machine_differences(fingerprint, board)
        return BaselineMatch(differences=differences, absence=settings_text(baselines, fingerprint))
    return BaselineMatch(absence=absence_text(len(others), board)) if others else BaselineMatch()


def settings_text(baselines: BaselineFile, fingerprint: Fingerprint) -> str:
    """Say with which settings nothing is stored yet; with another backend, on which others depend, that is enough."""
    lacking = baselines.unknown_settings(fingerprint)
    shown = {"backend": lacking["backend"]} if "backend" in lacking else lacking
    if not shown:
        return "no baseline yet"
    return f"no baseline with {', '.join(f'{field} {value}' for field, value in shown.items())} yet"


def absence_text(n_others: int, board: str | None) -> str:
    """Say that nothing counts for a board, though other boards of its kind have something stored."""
    boards = f"{format_count(n_others, 'other board' if board else 'board')} of its kind"
    have = "has one" if n_others == 1 else "have one"
    if board is None:
        return f"no baseline of runs on the machine itself yet, though {boards} {have} over a link"
    return f"no baseline of this board yet, though {boards} {have}"


def match_entry(
    entry: BaselineEntry, case_id: str, *, sentinels_ns: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> BaselineMatch:
    """Return the samples of a case by session, as they would have been on the machine as it is now.

    Sessions from which it has moved too far are left out; where that are all, the device has changed.
    """
    found = [
        (session.samples_ns[case_id], drift_between(case_id, session, sentinels_ns, weights))
        for session in entry.sessions_of(case_id)
    ]
    near = [(samples_ns, drift) for samples_ns, drift in found if drift is None or not drift.is_beyond]
    return BaselineMatch(
        sessions_ns=tuple(_scaled(samples_ns, drift) for samples_ns, drift in near),
        correction=_middle_text([drift for _, drift in near if drift is not None]),
        problem="" if near else next((drift.text for _, drift in reversed(found) if drift is not None), ""),
    )


def _engines_text(entry: BaselineEntry, case_id: str, engine_version: str | None) -> str:
    stored = entry.sessions_of(case_id)[-1].engine_version
    if None in (stored, engine_version) or stored == engine_version:
        return ""
    return f"engine {stored} -> {engine_version}"


def _scaled(samples_ns: Sequence[int], drift: Drift | None) -> tuple[float, ...]:
    return tuple(sample * drift.correction_ratio for sample in samples_ns) if drift else tuple(samples_ns)


def _middle_text(drifts: Sequence[Drift]) -> str:
    """Show the drift that half of the sessions exceed."""
    if not drifts:
        return ""
    ratio = median(drift.ratio for drift in drifts)
    return Drift(sentinel=drifts[0].sentinel, ratio=ratio, weight_ratio=drifts[0].weight_ratio).text
