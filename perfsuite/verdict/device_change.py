"""Whether the device is slower than it was: the baseline's own engine, measured again, against what was stored of it.

Pairs answer whether the code is slower, on the device as it is now. What both sides share they cannot see: a governor,
a driver, an image of the board. The old side's times against its own stored ones show it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.records.events import GRAPH_PHASES
from perfsuite.units import format_change
from perfsuite.verdict.entry import StoredSession

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
