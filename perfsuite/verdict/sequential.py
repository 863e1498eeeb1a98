"""Verdicts from a run of pairs that grows as needed: screen all cases, then confirm the flagged ones on fresh pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter

from perfsuite.records.outcome import Outcome
from perfsuite.units import format_change
from perfsuite.verdict.signed_rank import PairedChange, compare_pairs, least_p

#: By case id: old and new latencies, ns, pair by pair.
Pairs = Mapping[str, tuple[Sequence[int], Sequence[int]]]

#: How much further the bounds of a first look move in than 1/sqrt(n) says: from the extremes of 8 normal values, 1.42
#: deviations, to 0.63 deviations at 20 pairs, which is 0.44 and not 0.63 times as wide.
_EXTREMES_SHRINK = 0.7

#: A case that needs more further pairs than this to be decided is not told how many.
_MOST_PAIRS_TOLD = 200


def _check_looks(stage: str, looks: Sequence[int], alphas: Sequence[float]) -> None:
    if not looks or len(looks) != len(alphas):
        raise ValueError(f"{stage}: {len(looks)} looks and {len(alphas)} alphas, expected as many, and at least one")
    if any(later <= earlier for earlier, later in pairwise(looks)):
        raise ValueError(f"{stage}: looks at {looks} pairs, expected each later than the one before")
    for n_pairs, alpha in zip(looks, alphas, strict=True):
        if not least_p(n_pairs) <= alpha < 0.5:
            least = f"{least_p(n_pairs):g}"
            raise ValueError(f"{stage}: alpha is {alpha} at {n_pairs} pairs, expected at least {least} and below 0.5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """When a run is looked at, in pairs, and how much one-sided error each look may spend.

    Looks are numbers of pairs, those of the confirmation counted from its own first. A case that did not change is
    flagged as slower with at most the sum of `screen_alphas`; given the flagged, any of them that did not change is
    confirmed with at most the sum of `confirm_alphas` over the whole suite.

    Raises
    ------
    ValueError
        Looks and errors differ in number, do not grow, or a look is too early for its error.
    """

    screen_looks: tuple[int, ...] = (8, 14, 20)
    screen_alphas: tuple[float, ...] = (0.004, 0.003, 0.003)
    confirm_looks: tuple[int, ...] = (8, 14, 20)
    confirm_alphas: tuple[float, ...] = (0.004, 0.003, 0.003)

    def __post_init__(self) -> None:
        """Refuse looks at which nothing could be decided."""
        _check_looks("screen", self.screen_looks, self.screen_alphas)
        _check_looks("confirm", self.confirm_looks, self.confirm_alphas)


STANDARD_DESIGN = Design()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedVerdict:
    """What the pairs of a run say about one case: REGRESSED, IMPROVED, PASS or INCONCLUSIVE."""

    outcome: Outcome
    #: Of the stage that decided: a confirmed change is estimated from fresh pairs alone, which did not select it.
    change: PairedChange
    #: Of this case in the whole run.
    n_pairs: int
    #: Whether the screen saw a change.
    is_flagged: bool
    #: The smallest slowdown that these pairs could have shown; None where they are too few for any.
    smallest_effect_ratio: float | None
    #: How many further pairs would probably decide an INCONCLUSIVE case; None where that is unknown or too many.
    n_more_pairs: int | None


def _always(_: object) -> bool:
    return True


def compare_sequentially(
    collect: Callable[[int], Pairs],
    margins: Mapping[str, float],
    *,
    design: Design = STANDARD_DESIGN,
    may_go_on: Callable[[int], bool] = _always,
    is_worth_it: Callable[[str], bool] = _always,
) -> dict[str, PairedVerdict]:
    """Judge the cases of a run that is extended only as long as that is likely to decide something.

    1. Screen: at each look a case is flagged (its bound and, by the margin, its estimate say that it changed), passed
       (slower by the margin is ruled out) or still open; what is decided stays. The next look is taken where an open
       case may be decided by the last one: its interval shrinks as 1/sqrt(n), its estimate moves by a standard error.
    2. Confirm: the flagged are tested again on fresh pairs only, by Holm over all of them. A flagged case that is not
       confirmed passes where fresh pairs rule out a slowdown by the margin, and is INCONCLUSIVE otherwise.

    Parameters
    ----------
    collect
        Extends the run to so many pairs in total and returns all of them; fewer mean that it gave up, and the case is
        decided with what there is.
    margins
        By case id, the change that matters, as a ratio: 0.02 is 2 %. Cases without a pair have no verdict.
    may_go_on
        Whether the budget allows so many pairs in total; not asked for the first look.
    is_worth_it
        Whether a case that is still open is a reason for another look; asked after the first one. All cases are
        judged at the looks that are taken.

    Raises
    ------
    ValueError
        A margin is negative or not finite, or a side of a case is not made of latencies.

    The errors of the looks add up by Bonferroni's inequality, whatever is shared between them.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979, for the confirmation.
    """
    for case_id, margin in margins.items():
        if not 0.0 <= margin < math.inf:
            raise ValueError(f"{case_id}: the margin is {margin}, expected a finite ratio of at least 0")
    run = _Run(collect=collect, may_go_on=may_go_on)
    screened = _screen(run, margins, design, is_worth_it)
    flagged = {
        case_id: answer
        for case_id, change in screened.items()
        if (answer := _answer(change, margins[case_id])) in (Outcome.REGRESSED, Outcome.IMPROVED)
    }
    confirmed, latest = _confirm(run, flagged, margins, design)
    return {
        case_id: _verdict(
            margins[case_id],
            screened=screened[case_id],
            confirmed=confirmed.get(case_id),
            latest=latest.get(case_id),
            n_pairs=run.count(case_id),
        )
        for case_id in margins
        if case_id in screened
    }


def paired_reason(verdict: PairedVerdict, margin_ratio: float) -> str:
    """Tell in one sentence what was seen and, where it decides nothing, what would."""
    seen = f"{_interval(verdict.change)}, margin {margin_ratio * 100:g} %"
    return "; ".join((seen, *filter(None, (_lost_flag(verdict), _what_would_decide(verdict)))))


def _interval(change: PairedChange) -> str:
    estimate = format_change(change.estimate_ratio)
    if math.isinf(change.upper_ratio):
        return f"{estimate} (too few pairs for an interval: {change.n_pairs})"
    return f"{estimate} ({format_change(change.lower_ratio)} to {format_change(change.upper_ratio)})"


def _lost_flag(verdict: PairedVerdict) -> str:
    is_lost = verdict.is_flagged and verdict.outcome in (Outcome.PASS, Outcome.INCONCLUSIVE)
    return "flagged by the screen and not confirmed" if is_lost else ""


def _what_would_decide(verdict: PairedVerdict) -> str:
    if verdict.outcome is not Outcome.INCONCLUSIVE or verdict.smallest_effect_ratio is None:
        return ""
    could_see = f"a change of {format_change(verdict.smallest_effect_ratio)} could have been seen"
    if verdict.n_more_pairs is None:
        return could_see
    noun = "pair" if verdict.n_more_pairs == 1 else "pairs"
    return f"{could_see}, about {verdict.n_more_pairs} more {noun} would decide"


@dataclass(slots=True, kw_only=True)
class _Run:
    """The pairs as far as they were taken."""

    collect: Callable[[int], Pairs]
    may_go_on: Callable[[int], bool]
    pairs: Pairs = field(default_factory=dict)
    n_pairs: int = 0
    gave_up: bool = False

    def extend(self, n_pairs: int) -> bool:
        """Take pairs until there are `n_pairs`; return False, and take none, where that is not to be."""
        if self.gave_up or (self.n_pairs and not self.may_go_on(n_pairs)):
            return False
        self.pairs = {
            case_id: (old_ns[:n_pairs], new_ns[:n_pairs]) for case_id, (old_ns, new_ns) in self.collect(n_pairs).items()
        }
        self.n_pairs = n_pairs
        self.gave_up = max(map(self.count, self.pairs), default=0) < n_pairs
        return True

    def count(self, case_id: str) -> int:
        """Return how many pairs a case has."""
        return len(self.pairs[case_id][0]) if case_id in self.pairs else 0

    def compare(self, case_id: str, *, alpha: float, first: int = 0) -> PairedChange:
        """Compare the sides of a case from its pair `first` on."""
        old_ns, new_ns = self.pairs[case_id]
        return compare_pairs(old_ns[first:], new_ns[first:], alpha=alpha)


def _screen(
    run: _Run, margins: Mapping[str, float], design: Design, is_worth_it: Callable[[str], bool]
) -> dict[str, PairedChange]:
    """Return the change of each case at the look that decided it, or at the last one."""
    changes: dict[str, PairedChange] = {}
    answers: dict[str, Outcome] = {}
    for n_pairs, alpha in zip(design.screen_looks, design.screen_alphas, strict=True):
        still_open = {case_id for case_id, answer in answers.items() if answer is Outcome.INCONCLUSIVE}
        n_flagged = sum(answer in (Outcome.REGRESSED, Outcome.IMPROVED) for answer in answers.values())
        if run.n_pairs and not (
            any(
                is_worth_it(case_id) and _may_be_decided(changes[case_id], margins[case_id], design)
                for case_id in still_open
            )
            and run.may_go_on(n_pairs + _reserve(design, n_flagged))
        ):
            break
        if not run.extend(n_pairs):
            break
        undecided = still_open if answers else margins.keys()
        changes |= {case_id: run.compare(case_id, alpha=alpha) for case_id in undecided if run.count(case_id)}
        answers |= {case_id: _answer(changes[case_id], margins[case_id]) for case_id in undecided & changes.keys()}
    return changes


def _reserve(design: Design, n_flagged: int) -> int:
    """Return the pairs that a confirmation of the flagged, or of a case yet to be flagged, takes at its first look."""
    return min(_confirm_looks(design, n_flagged))


def _confirm(
    run: _Run, flagged: Mapping[str, Outcome], margins: Mapping[str, float], design: Design
) -> tuple[dict[str, PairedChange], dict[str, PairedChange]]:
    """Return the changes on fresh pairs of the flagged cases: as they were confirmed, and as they were seen last."""
    n_screened = run.n_pairs
    first = {case_id: run.count(case_id) for case_id in flagged}
    confirmed: dict[str, PairedChange] = {}
    latest: dict[str, PairedChange] = {}
    for n_fresh, alpha in _confirm_looks(design, len(flagged)).items():
        if len(confirmed) == len(flagged) or not run.extend(n_screened + n_fresh):
            break
        latest = {
            case_id: run.compare(case_id, alpha=alpha, first=first[case_id])
            for case_id in flagged
            if run.count(case_id) > first[case_id]
        }
        p_values = {case_id: _p_value(change, flagged[case_id]) for case_id, change in latest.items()}
        for case_id in _holm(p_values, n_tests=len(flagged), alpha=alpha):
            if _answer(latest[case_id], margins[case_id]) is flagged[case_id]:
                confirmed.setdefault(case_id, latest[case_id])
    return confirmed, latest


def _confirm_looks(design: Design, n_flagged: int) -> dict[int, float]:
    """Return each look with its error; one too early for the first step of Holm is put off until pairs can take it."""
    return {
        max(n_fresh, math.ceil(math.log2(max(n_flagged, 1) / alpha))): alpha
        for n_fresh, alpha in zip(design.confirm_looks, design.confirm_alphas, strict=True)
    }


def _holm(p_values: Mapping[str, float], *, n_tests: int, alpha: float) -> set[str]:
    """Return the cases that stand among `n_tests`: the k-th least p-value is held against alpha / (n_tests + 1 - k)."""
    standing: set[str] = set()
    for case_id, p_value in sorted(p_values.items(), key=itemgetter(1)):
        if p_value > alpha / (n_tests - len(standing)):
            break
        standing.add(case_id)
    return standing


def _p_value(change: PairedChange, claim: Outcome) -> float:
    return change.p_slower if claim is Outcome.REGRESSED else change.p_faster


def _answer(change: PairedChange, margin: float) -> Outcome:
    """Slower or faster for sure and by more than the margin; not slower by the margin for sure; neither."""
    if change.lower_ratio > 1.0 and change.estimate_ratio > 1.0 + margin:
        return Outcome.REGRESSED
    if change.upper_ratio < 1.0 and change.estimate_ratio < 1.0 / (1.0 + margin):
        return Outcome.IMPROVED
    return Outcome.PASS if change.upper_ratio < 1.0 + margin else Outcome.INCONCLUSIVE


def _verdict(
    margin: float,
    *,
    screened: PairedChange,
    confirmed: PairedChange | None,
    latest: PairedChange | None,
    n_pairs: int,
) -> PairedVerdict:
    """Conclude from the screen and, of a flagged case, from its fresh pairs where they are enough for a bound."""
    outcome, change = _answer(screened, margin), confirmed or screened
    is_flagged = outcome in (Outcome.REGRESSED, Outcome.IMPROVED)
    if is_flagged and confirmed is None:
        change = latest if latest and math.isfinite(latest.upper_ratio) else screened
        outcome = Outcome.PASS if change.upper_ratio < 1.0 + margin else Outcome.INCONCLUSIVE
    return PairedVerdict(
        outcome=outcome,
        change=change,
        n_pairs=n_pairs,
        is_flagged=is_flagged,
        smallest_effect_ratio=_smallest_effect(change, margin),
        n_more_pairs=_n_more(change, margin) if outcome is Outcome.INCONCLUSIVE else None,
    )


def _smallest_effect(change: PairedChange, margin: float) -> float | None:
    """Return the least estimate beyond the margin whose interval, as wide as this one, would exclude 1."""
    return max(1.0 + margin, change.estimate_ratio / change.lower_ratio) if change.lower_ratio else None


def _n_more(change: PairedChange, margin: float) -> int | None:
    n_more = _pairs_to_decide(change, margin) - change.n_pairs
    return math.floor(n_more) + 1 if 0.0 <= n_more < _MOST_PAIRS_TOLD else None


def _may_be_decided(change: PairedChange, margin: float, design: Design) -> bool:
    """Tell whether an open case is likely to be decided at the last look of the screen, in logarithms of ratios.

    Half-widths shrink as 1/sqrt(n), those of a first look faster: its bounds are the extremes of the pairs. The
    estimate may move either way by a third of its half-width, about one standard error at the errors of a screen: a
    case is not given up because its first pairs happened to lie badly.
    """
    if math.isinf(change.upper_ratio):
        return True
    estimate, limit = math.log(change.estimate_ratio), math.log1p(margin)
    above, below = math.log(change.upper_ratio) - estimate, estimate - math.log(change.lower_ratio)
    shrink = math.sqrt(change.n_pairs / design.screen_looks[-1])
    if change.n_pairs <= design.screen_looks[0]:
        shrink *= _EXTREMES_SHRINK
    passes = estimate - below / 3.0 + above * shrink < limit
    return passes or estimate + above / 3.0 > max(limit, below * shrink)


def _pairs_to_decide(change: PairedChange, margin: float) -> float:
    """Return beyond how many pairs an open case is decided, were its estimate to stay.

    The half-width of the interval, in logarithms, shrinks as 1/sqrt(n); it must fit between the estimate and no change
    where the estimate is beyond the margin, and between the estimate and the margin otherwise. Infinite where it never
    will, or is not known.
    """
    estimate, limit = math.log(change.estimate_ratio), math.log1p(margin)
    if math.isinf(change.upper_ratio) or estimate == limit:
        return math.inf
    if estimate > limit:
        return change.n_pairs * ((estimate - math.log(change.lower_ratio)) / estimate) ** 2
    return change.n_pairs * ((math.log(change.upper_ratio) - estimate) / (limit - estimate)) ** 2
