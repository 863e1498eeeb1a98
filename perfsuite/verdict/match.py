"""Finds what the store holds for a case of a run: samples by session, the drift of its sentinel divided out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from perfsuite.device.fingerprint import Fingerprint
from perfsuite.verdict.baseline import BaselineFile
from perfsuite.verdict.compare import BaselineMatch
from perfsuite.verdict.drift import Drift, drift_between
from perfsuite.verdict.entry import BaselineEntry


def match_case(
    baselines: BaselineFile,
    fingerprint: Fingerprint,
    case_id: str,
    *,
    sentinels_ns: Mapping[str, Sequence[int]],
    weights: Mapping[str, float],
) -> BaselineMatch:
    """Return the comparable samples of a case, or how the nearest fingerprint differs."""
    entry = baselines.find(fingerprint)
    if entry is None:
        return BaselineMatch(differences=baselines.nearest_differences(fingerprint))
    return match_entry(entry, case_id, sentinels_ns=sentinels_ns, weights=weights)


def match_entry(
    entry: BaselineEntry, case_id: str, *, sentinels_ns: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> BaselineMatch:
    """Return the samples of a case by session, as they would have been on the machine as it is now."""
    sessions = entry.sessions_of(case_id)
    drifts = [drift_between(case_id, session, sentinels_ns, weights) for session in sessions]
    return BaselineMatch(
        sessions_ns=tuple(
            _scaled(session.samples_ns[case_id], drift) for session, drift in zip(sessions, drifts, strict=True)
        ),
        correction=_middle_text([drift for drift in drifts if drift is not None]),
    )


def _scaled(samples_ns: Sequence[int], drift: Drift | None) -> tuple[float, ...]:
    return tuple(sample * drift.correction_ratio for sample in samples_ns) if drift else tuple(samples_ns)


def _middle_text(drifts: Sequence[Drift]) -> str:
    """Tell the drift that half of the sessions exceed."""
    if not drifts:
        return ""
    ratio = median(drift.ratio for drift in drifts)
    return Drift(sentinel=drifts[0].sentinel, ratio=ratio, weight_ratio=drifts[0].weight_ratio).text
