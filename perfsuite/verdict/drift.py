"""The drift of the sentinels between two sessions, which alone is divided out when they are compared.

A sentinel is a fixed piece of work that has nothing to do with the cases: if it takes longer than it did, the machine
changed. The drift of the cases themselves is no such evidence; dividing by it would erase a true uniform regression.

How far the cases of a device follow its sentinels: fitted to its stored sessions, where that makes them steadier.

A profile states a weight for each sentinel. A device whose sessions are stored shows its own: how a session's cases
stood to those of the others, against how its sentinel did.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from perfsuite.records.binding import ITL, TOKENS_PER_S, TTFT, Part
from perfsuite.records.events import GRAPH_PHASES, Phase
from perfsuite.units import format_change
from perfsuite.verdict.entry import Anchor, BaselineEntry, StoredSession

MEMORY, COMPUTE = "memory", "compute"

#: The native driver's time to the first token, of each further one, and of a request for each of its tokens, beside
#: which the binding is measured turn by turn: the engine and the machine are divided out in full, and what is left is
#: the binding's own.
NATIVE_TTFT, NATIVE_ITL, NATIVE_TOKENS_PER_S = "native ttft", "native itl", "native tokens_per_s"

#: A correction that is less than this is not worth a word.
_NOTABLE_RATIO = 0.01

#: A machine whose sentinel is off by more than this, either way, is another one: so much is never divided out.
MOST_DRIFT_RATIO = 0.30

#: A machine whose arithmetic is off by more than this is not in the state that it was stored in.
_SUSPECT_RATIO = 0.10

#: What bounds each phase, its operators included.
_SENTINEL_OF_PHASE = {
    Phase.LOAD: MEMORY,
    Phase.EMBEDDING: MEMORY,
    Phase.DECODE: MEMORY,
    Phase.COPY: MEMORY,
    Phase.END_TO_END: MEMORY,
    Phase.DRAFT: MEMORY,
    Phase.PREFILL: COMPUTE,
    Phase.EMBED: COMPUTE,
    Phase.ENCODE_IMAGE: COMPUTE,
    Phase.DRAFT_PREFILL: COMPUTE,
    Phase.SOFTMAX: COMPUTE,
    Phase.SAMPLING: COMPUTE,
}

#: The same of what a program in Python waits for, which is the engine's for the most part.
_SENTINEL_OF_WHOLE = {
    TTFT: NATIVE_TTFT,
    TOKENS_PER_S: NATIVE_TOKENS_PER_S,
    **dict.fromkeys((ITL, "itl-p95", "itl-p99"), NATIVE_ITL),
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
    def is_beyond(self) -> bool:
        """Whether it is more than is ever divided out; the native driver's time is the engine's, and may be any."""
        is_followed = self.weight_ratio != 0.0 and self.sentinel in (MEMORY, COMPUTE)
        return is_followed and not 1.0 / (1.0 + MOST_DRIFT_RATIO) <= self.ratio <= 1.0 + MOST_DRIFT_RATIO

    @property
    def text(self) -> str:
        """The correction in words; empty where it is too small to matter."""
        if self.is_beyond:
            moved = f"the {self.sentinel} sentinel moved by {format_change(self.ratio)} since it was stored"
            return f"the device has changed: {moved}, and no more than {MOST_DRIFT_RATIO * 100:g} % is divided out"
        if abs(self.correction_ratio - 1.0) <= _NOTABLE_RATIO:
            return ""
        drift = f"a drift of {format_change(self.ratio)} of the {self.sentinel} sentinel"
        if self.weight_ratio == 1.0:
            return f"after dividing out {drift}"
        return f"after dividing out {format_change(self.correction_ratio)} for {drift}"


def sentinel_of(case_id: str) -> str | None:
    """Return which sentinel a case follows; None for cases of your own, of which nothing is known."""
    kind, *parts = case_id.split("/")
    if kind == "binding":
        return _sentinel_of_binding(parts)
    if kind not in ("phase", "operator", "kernel"):
        return None
    if len(parts) < 3 or parts[2] not in {phase.value for phase in Phase}:
        return COMPUTE if kind == "kernel" else None  # the suite's own kernels are of no phase, the engine's are
    return _SENTINEL_OF_PHASE.get(Phase(parts[2]))


def _sentinel_of_binding(parts: Sequence[str]) -> str | None:
    """Return that of a whole, which the engine's own part shares; what Python and the sampler do is arithmetic."""
    *_, before, last = parts
    if before in _SENTINEL_OF_WHOLE and last != Part.DECODE.value:
        return COMPUTE
    return _SENTINEL_OF_WHOLE.get(before if last == Part.DECODE.value else last)


def _weight_of(sentinel: str, weights: Mapping[str, float]) -> float:
    return 1.0 if sentinel in _SENTINEL_OF_WHOLE.values() else weights.get(sentinel, 0.0)


def drift_between(
    case_id: str, old: StoredSession, new: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> Drift | None:
    """Return the drift of a case's sentinel from a stored session to the new times; None where either lacks it."""
    sentinel = sentinel_of(case_id)
    old_ns = old.sentinel_ns(sentinel) if sentinel else None
    if sentinel is None or old_ns is None or not new.get(sentinel):
        return None
    ratio = median(new[sentinel]) / old_ns
    return Drift(sentinel=sentinel, ratio=ratio, weight_ratio=_weight_of(sentinel, weights))


def from_anchor_ratio(
    case_id: str, anchor: Anchor, session: StoredSession, weights: Mapping[str, float]
) -> float | None:
    """Return a session's median over the anchor's, less the drift of the sentinel.

    None where either lacks the case, and where the device has changed since.
    """
    if case_id not in anchor.cases_ns or not session.samples_ns.get(case_id):
        return None
    sentinel = sentinel_of(case_id)
    new_ns, old_ns = (session.sentinel_ns(sentinel), anchor.sentinels_ns.get(sentinel)) if sentinel else (None, None)
    ratio = new_ns / old_ns if new_ns and old_ns else 1.0
    drift = Drift(sentinel=sentinel or "", ratio=ratio, weight_ratio=_weight_of(sentinel or "", weights))
    if drift.is_beyond:
        return None
    return session.median_ns(case_id) / (anchor.cases_ns[case_id] * drift.correction_ratio)


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


#: Fewer sessions than this say nothing of how cases follow a sentinel.
MIN_SESSIONS = 6

#: The standard deviation of weights about 0 that is taken for granted: most lie within -1 and 1.
_PRIOR_DEVIATION = 0.5


#: Of what all sessions of a sentinel differ: what is left by rounding.
_NO_SPREAD = 1e-9

#: A session, in logarithms: its sentinel, and the middle of its cases against their own means.
_Point = tuple[float, float]


def fitted_weights(entry: BaselineEntry, stated: Mapping[str, float]) -> dict[str, float]:
    r"""Return the weights that an entry's own sessions give, and the stated ones where they give none.

    Of S sessions with the logarithms :math:`x_s` of the sentinel and :math:`y_s` of the cases that follow it, both
    about their means, the weight is the ridge estimate

    .. math:: w = \frac{\sum x_s y_s}{\sum x_s^2 + \sigma^2 / \tau^2}

    with the variance :math:`\sigma^2` of what a straight line leaves and :math:`\tau = 0.5`: few sessions, or a
    sentinel that hardly moved, leave it near 0. It counts only where each session, corrected by the weight of the
    others, lies nearer to these than without any correction, in the mean of squares; otherwise nothing is corrected.

    *Source*: Hoerl and Kennard, Ridge regression, 1970.
    """
    names = {name for session in entry.sessions for name in session.sentinels_ns}
    found = {name: _points(entry, name) for name in names}
    return {**stated, **{name: _weight(points) for name, points in found.items() if len(points) >= MIN_SESSIONS}}


def _points(entry: BaselineEntry, sentinel: str) -> list[_Point]:
    sessions = [session for session in entry.sessions if session.sentinel_ns(sentinel)]
    case_ids = [case_id for case_id in entry.case_ids if sentinel_of(case_id) == sentinel]
    shifts: dict[int, list[float]] = defaultdict(list)
    for case_id in case_ids:
        logs = [math.log(each.median_ns(case_id)) for each in sessions if each.samples_ns.get(case_id)]
        if len(logs) == len(sessions):
            mean = fmean(logs)
            for place, value in enumerate(logs):
                shifts[place].append(value - mean)
    sentinels = (math.log(session.sentinel_ns(sentinel) or 1.0) for session in sessions)
    return [(value, median(shifts[place])) for place, value in enumerate(sentinels) if place in shifts]


def _weight(points: Sequence[_Point]) -> float:
    """Return the weight of a sentinel; 0 where held-out sessions are no steadier by one."""
    n_points = len(points)
    mean_x, mean_y = map(fmean, zip(*points, strict=True))
    centred = [(x - mean_x, y - mean_y) for x, y in points]
    sums = tuple(math.fsum(terms) for terms in zip(*((x * x, x * y, y * y) for x, y in centred), strict=True))
    far = n_points / (n_points - 1)  # from the mean of the others, for one from the mean of all
    with_weight = without = 0.0
    for x, y in centred:
        others = tuple(whole - far * part for whole, part in zip(sums, (x * x, x * y, y * y), strict=True))
        without += y**2
        with_weight += (y - _ridge(others, n_points - 1, least=_NO_SPREAD * sums[0]) * x) ** 2
    return _ridge(sums, n_points) if with_weight < without else 0.0


def _ridge(sums: Sequence[float], n_points: int, *, least: float = 0.0) -> float:
    """Return the estimate of so many points by the sums of xx, xy and yy; 0 where the sentinel has not moved."""
    squares, products, rest = sums
    if squares <= least:
        return 0.0
    left = max(0.0, rest - products**2 / squares) / max(1, n_points - 2)
    return products / (squares + left / _PRIOR_DEVIATION**2)


_KERNELS = "the kernels"
_SUBJECTS = (*(phase.value for phase in GRAPH_PHASES), _KERNELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceChange:
    """How the device stands to what it was when a session was stored."""

    recorded_at: str
    #: Of phases and the kernels, as far as they were measured again: now over then.
    ratios: Mapping[str, float]
    #: The spread that this device shows between sessions without any change, as a ratio.
    spread_ratio: float
    #: How its fingerprint differs from the stored one.
    differences: tuple[str, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Whether one is beyond the spread between sessions, or the fingerprint is another."""
        beyond = math.log1p(self.spread_ratio)
        return bool(self.differences) or any(abs(math.log(ratio)) > beyond for ratio in self.ratios.values())

    @property
    def text(self) -> str:
        if not self.ratios and not self.differences:
            unknown = f"whether the device has changed since {self.recorded_at[:10]} is not known"
            return f"{unknown}: no phase or kernel was stored then and measured now"
        changes = ", ".join(f"{subject} {format_change(ratio)}" for subject, ratio in self.ratios.items())
        took = f"the baseline's own build takes {changes} against {self.recorded_at[:10]}" if changes else ""
        usual = f"up to {self.spread_ratio * 100:g} % between sessions is usual"
        if not self.has_changed:
            return f"the device is as it was: {took}, and {usual}"
        why = "; ".join(filter(None, (*self.differences, took)))
        return f"the device has changed: {why} ({usual}); the verdicts on the code are by pairs, and stand"


def device_change(
    session: StoredSession,
    old_ns: Mapping[str, Sequence[int]],
    *,
    spread_ratio: float,
    differences: tuple[str, ...] = (),
) -> DeviceChange:
    """Compare the times that the baseline's engine takes now, by case id, with those that were stored of it.

    Pairs answer whether the code is slower, on the device as it is now. What both sides share they cannot see: a
    governor, a driver, an image of the board.

    The phases count that are the wholes of what operators are parts of, and the median of the kernels.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for case_id, times_ns in old_ns.items():
        subject = _subject(case_id)
        if subject and times_ns and session.samples_ns.get(case_id):
            found[subject].append(median(times_ns) / session.median_ns(case_id))
    ratios = {each: median(found[each]) for each in _SUBJECTS if each in found}
    when = session.recorded_at
    return DeviceChange(recorded_at=when, ratios=ratios, spread_ratio=spread_ratio, differences=differences)


def _subject(case_id: str) -> str | None:
    kind, *_, last = case_id.split("/")
    if kind == "kernel":
        return _KERNELS
    return last if kind == "phase" and last in _SUBJECTS else None
