"""The drift of the sentinels between two sessions, which alone is divided out when they are compared.

A sentinel is a fixed piece of work that has nothing to do with the cases: if it takes longer than it did, the machine
changed. The drift of the cases themselves is no such evidence; dividing by it would erase a true uniform regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.records.events import Phase
from perfsuite.units import format_change
from perfsuite.verdict.entry import Anchor, StoredSession

MEMORY, COMPUTE = "memory", "compute"

#: A correction that is less than this is not worth a word.
_TOLD_RATIO = 0.01

#: A machine whose arithmetic is off by more than this is not in the state that it was stored in.
_SUSPECT_RATIO = 0.10

#: What bounds each phase, its operators included.
_SENTINEL_OF_PHASE = {
    Phase.LOAD: MEMORY,
    Phase.EMBEDDING: MEMORY,
    Phase.DECODE: MEMORY,
    Phase.COPY: MEMORY,
    Phase.END_TO_END: MEMORY,
    Phase.PREFILL: COMPUTE,
    Phase.SOFTMAX: COMPUTE,
    Phase.SAMPLING: COMPUTE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far a sentinel moved, and how much of that a case follows."""

    sentinel: str
    #: New over old.
    ratio: float
    #: Exponent with which a case follows its sentinel: 0 not at all, 1 in full.
    weight_ratio: float

    @property
    def correction_ratio(self) -> float:
        """What stored latencies are multiplied by."""
        return float(self.ratio**self.weight_ratio)

    @property
    def text(self) -> str:
        """The correction in words; empty where it is too small to matter."""
        if abs(self.correction_ratio - 1.0) <= _TOLD_RATIO:
            return ""
        drift = f"a drift of {format_change(self.ratio)} of the {self.sentinel} sentinel"
        if self.weight_ratio == 1.0:
            return f"after dividing out {drift}"
        return f"after dividing out {format_change(self.correction_ratio)} for {drift}"


def sentinel_of(case_id: str) -> str | None:
    """Return which sentinel a case follows; None for cases of one's own, of which nothing is known."""
    kind, *parts = case_id.split("/")
    if kind not in ("phase", "operator", "kernel"):
        return None
    if len(parts) < 3 or parts[2] not in {phase.value for phase in Phase}:
        return COMPUTE if kind == "kernel" else None  # the suite's own kernels are of no phase, the engine's are
    return _SENTINEL_OF_PHASE.get(Phase(parts[2]))


def drift_between(
    case_id: str, old: StoredSession, new: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> Drift | None:
    """Return the drift of a case's sentinel from a stored session to the new times; None where either lacks it."""
    sentinel = sentinel_of(case_id)
    old_ns = old.sentinel_ns(sentinel) if sentinel else None
    if sentinel is None or old_ns is None or not new.get(sentinel):
        return None
    return Drift(sentinel=sentinel, ratio=median(new[sentinel]) / old_ns, weight_ratio=weights.get(sentinel, 0.0))


def from_anchor_ratio(
    case_id: str, anchor: Anchor, session: StoredSession, weights: Mapping[str, float]
) -> float | None:
    """Return a session's median over the anchor's, less the drift of the sentinel; None where either lacks the case."""
    if case_id not in anchor.cases_ns or not session.samples_ns.get(case_id):
        return None
    sentinel = sentinel_of(case_id)
    new_ns, old_ns = (session.sentinel_ns(sentinel), anchor.sentinels_ns.get(sentinel)) if sentinel else (None, None)
    correction = (new_ns / old_ns) ** weights.get(sentinel or "", 0.0) if new_ns and old_ns else 1.0
    return float(session.median_ns(case_id) / (anchor.cases_ns[case_id] * correction))


def suspicion(sessions: Sequence[StoredSession], new: Mapping[str, Sequence[int]]) -> str | None:
    """Say so where the machine's arithmetic is far from what the stored sessions had; None where it is not."""
    stored = [session.sentinel_ns(COMPUTE) for session in sessions]
    known = [each for each in stored if each is not None]
    if not known or not new.get(COMPUTE):
        return None
    ratio = median(new[COMPUTE]) / median(known)
    if abs(ratio - 1.0) <= _SUSPECT_RATIO:
        return None
    return f"the compute sentinel is {format_change(ratio)} off the stored sessions; look at clock and temperature"
