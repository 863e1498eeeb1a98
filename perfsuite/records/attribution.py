"""Where the time of a slower or faster run went, as records that reports show."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.records.codec import Count, Number, Whole


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
