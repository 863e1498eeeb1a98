"""What can be said of a case, and in which order of precedence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from perfsuite.records.codec import Amount, Count, Number, Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSamples:
    """What the replicates of a run say about one case."""

    case_id: str
    #: One value a valid replicate, ns; repetitions inside a process are collapsed to their median.
    samples_ns: tuple[int, ...]
    #: Why no sample can be trusted; empty when they can.
    problems: tuple[str, ...] = field(default=())
    #: By how much a sample may be off for the tick of the clock that it was timed by and for what it was not told, over
    #: it.
    error_ratio: float = 0.0


class Outcome(str, Enum):
    """The verdict on one case; earlier members win where several hold."""

    INVALID = "invalid"
    IMPOSSIBLE = "impossible"
    INCOMPARABLE = "incomparable"
    REGRESSED = "regressed"
    SLOW = "slow"
    #: Looks slower, not proven.
    SUSPECT = "suspect"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    IMPROVED = "improved"
    PASS = "pass"

    @property
    def fails(self) -> bool:
        return self in (Outcome.IMPOSSIBLE, Outcome.REGRESSED, Outcome.SLOW)

    @property
    def alarms(self) -> bool:
        """Whether somebody should look at the case: it fails, or looks slower."""
        return self.fails or self is Outcome.SUSPECT

    @property
    def decides(self) -> bool:
        """Whether the case was measured and compared; ``--perf-strict`` fails the others."""
        return self.fails or self in (Outcome.PASS, Outcome.IMPROVED)


LEAST_PAIRS = 5

#: The exit codes of a run that judged nothing, and of one in which something looks slower and is not proven; pytest's
#: own end at 6, and leave room here.
NOTHING_JUDGED_EXIT, SUSPECT_EXIT = 10, 11


def is_nothing_judged(outcomes: Iterable[Outcome]) -> bool:
    """Whether there are cases, of which none was decided, none is suspect and none is new."""
    found = set(outcomes)
    return bool(found) and not any(each.decides or each in (Outcome.SUSPECT, Outcome.NEW) for each in found)


#: The outcomes as they are shown, what weighs most first: what fails, what changed, what was not decided, the rest.
ORDER_OF_WEIGHT = (
    Outcome.REGRESSED,
    Outcome.IMPOSSIBLE,
    Outcome.SLOW,
    Outcome.SUSPECT,
    Outcome.IMPROVED,
    Outcome.INVALID,
    Outcome.INCOMPARABLE,
    Outcome.INCONCLUSIVE,
    Outcome.NEW,
    Outcome.PASS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One outcome that holds for a case, with its reason in one sentence."""

    outcome: Outcome
    reason: str


def foremost(findings: Iterable[Finding]) -> Finding:
    """Return the finding that takes precedence."""
    order = list(Outcome)
    return min(findings, key=lambda finding: order.index(finding.outcome))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is reported of one case; latencies in ns, None where there is none."""

    case_id: str
    kind: str
    samples_ns: tuple[Count, ...]
    #: Median of the samples.
    measured_ns: Count | None
    #: The least that physics allows, the forecast, and the most that passes.
    floor_ns: Count | None
    expected_ns: Count | None
    limit_ns: Count | None
    #: What it took before, as it is shown: the median of the baseline's samples, or of the old side's.
    baseline_ns: Count | None
    #: New over old, as it is judged: an estimate from all samples, and not the quotient of the two medians.
    change_ratio: Amount | None
    outcome: Outcome
    reason: str

    @property
    def only_side(self) -> str | None:
        """Which side of pairs alone has it, ``new`` or ``old``, so that it took 0 on the other; None where both do."""
        is_alone = bool(self.samples_ns) != bool(self.baseline_samples_ns)
        if self.outcome is not Outcome.INCOMPARABLE or not self.n_pairs or not is_alone:
            return None
        return "new" if self.samples_ns else "old"

    @property
    def old_ns(self) -> float | None:
        """What the case took before by the estimate of the change, for sums over cases; shown is `baseline_ns`."""
        if self.only_side == "new":
            return 0.0
        if self.measured_ns is not None and self.change_ratio:
            return self.measured_ns / self.change_ratio
        return self.baseline_ns

    @property
    def lost_ns(self) -> int | None:
        """New minus old; negative where time was won."""
        new_ns = 0 if self.only_side == "old" else self.measured_ns
        return None if new_ns is None or self.old_ns is None else round(new_ns - self.old_ns)

    #: The forecast's interval, where a calibration gives one.
    lower_ns: Count | None = None
    upper_ns: Count | None = None
    #: Where pairs were compared: the old side's samples, pair by pair with `samples_ns`.
    baseline_samples_ns: tuple[Count, ...] = ()
    #: Bounds of `change_ratio`, by the same pairs or from the spread of the stored sessions.
    lower_ratio: Number | None = None
    upper_ratio: Number | None = None
    #: How much slower the case may be and still pass; None where nothing was compared.
    margin_ratio: Number | None = None
    #: How much slower it is surely not where it passes: the larger of the margin and of what could be resolved, as the
    #: margin is given; None where nothing was compared.
    resolution_ratio: Number | None = None
    #: The share of its step that it may change by, where it passes by that and by nothing finer.
    step_share_ratio: Number | None = None
    #: Pairs that the verdict rests on, and how many more would probably decide one that is open.
    n_pairs: Count | None = None
    n_more_pairs: Count | None = None
    #: The smallest slowdown that these pairs could have shown.
    smallest_effect_ratio: Number | None = None


def told_judgement(
    case_id: str, kind: str, outcome: Outcome, reason: str, change_ratio: float | None = None
) -> Judgement:
    """Return the judgement of a case that has no latency of its own: an outcome, and in words why."""
    return Judgement(
        case_id=case_id,
        kind=kind,
        samples_ns=(),
        measured_ns=None,
        floor_ns=None,
        expected_ns=None,
        limit_ns=None,
        baseline_ns=None,
        change_ratio=change_ratio,
        outcome=outcome,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is claimed of measured points."""

    name: str
    #: Who claims it, or why it must hold.
    claim: str
    #: None where the run lacks the points that would show it, or they lie within their spread.
    holds: bool | None
    #: The figures.
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """A part of a phase that carries a share of what the phase lost."""

    case_id: str
    #: The part's name within its phase.
    role: str
    #: New minus old, ns; negative where time was won.
    lost_ns: Whole
    #: Of what the phase lost.
    share_ratio: Number
    #: Whether the part was judged as changed by itself, in the direction of its phase.
    is_significant: bool
    #: ``new`` or ``old`` where that side alone has it, so that all of its time is a change.
    only_side: str | None = None

    @property
    def name(self) -> str:
        """Its role, and whether it is new or gone."""
        return {"new": "new: ", "old": "gone: "}.get(self.only_side or "", "") + self.role


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseAttribution:
    """What a phase lost or won, by its parts."""

    case_id: str
    #: New minus old, ns; negative where time was won.
    lost_ns: Whole
    #: Those of one side alone, then others; of these either all are significant, or none is. Largest first.
    carriers: tuple[Carrier, ...]
    #: What the carriers leave over, ns; it may have either sign.
    unexplained_ns: Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformShift:
    """All phases and operators moved alike: the cause is in none of them."""

    #: New over old, the time-weighted median of the operators.
    ratio: Number
    #: Phases and operators that moved by about this ratio.
    n_cases: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Both answers for a run; where there is a uniform shift, it is the one to show."""

    phases: tuple[PhaseAttribution, ...] = ()
    uniform_shift: UniformShift | None = None


NO_ATTRIBUTION = Attribution()
