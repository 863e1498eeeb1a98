"""Verdicts from a run of pairs that grows as needed: screen all cases, then confirm the flagged ones on fresh pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from operator import itemgetter

from perfsuite.records.outcome import Outcome
from perfsuite.verdict.signed_rank import PairedChange, compare_pairs, least_p, may_be_decided, n_more, smallest_effect

#: By case id: old and new latencies, ns, pair by pair.
Pairs = Mapping[str, tuple[Sequence[int], Sequence[int]]]


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
    confirmed with at most the sum of `confirm_alphas` over the whole suite, and none of the suite's that did not change
    needs no confirmation with more than the sum of `outright_alphas` and `last_alpha`.

    Raises ValueError: looks and errors differ in number, do not grow, or a look is too early for its error.
    """

    screen_looks: tuple[int, ...] = (8, 11, 14, 20)
    screen_alphas: tuple[float, ...] = (0.004, 0.002, 0.002, 0.002)
    #: Of what a look of the screen shows so clearly that fresh pairs need not confirm it.
    outright_alphas: tuple[float, ...] = (0.0, 0.001, 0.004, 0.002)
    #: Of what all pairs show as clearly where the run ended before fresh pairs could confirm it.
    last_alpha: float = 0.003
    confirm_looks: tuple[int, ...] = (8, 14, 20)
    confirm_alphas: tuple[float, ...] = (0.004, 0.003, 0.003)

    def __post_init__(self) -> None:
        """Refuse looks at which nothing could be decided."""
        _check_looks("screen", self.screen_looks, self.screen_alphas)
        outright = (*self.outright_alphas, self.last_alpha)
        if len(outright) != len(self.screen_looks) + 1 or not all(0.0 <= alpha < 0.5 for alpha in outright):
            raise ValueError(
                f"outright: alphas are {outright}, expected 0 to 0.5 for each look of the screen and one more"
            )
        _check_looks("confirm", self.confirm_looks, self.confirm_alphas)


STANDARD_DESIGN = Design()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedVerdict:
    """What the pairs of a run say about one case: REGRESSED, IMPROVED, PASS or INCONCLUSIVE."""

    outcome: Outcome
    #: Of the look that decided: a confirmed change is estimated from fresh pairs alone, which did not select it.
    change: PairedChange
    #: The change that passes, as a ratio.
    margin_ratio: float
    #: Of this case in the whole run.
    n_pairs: int
    #: Whether the screen saw a change.
    is_flagged: bool
    #: The smallest slowdown that these pairs could have shown; None where they are too few for any.
    smallest_effect_ratio: float | None
    #: How many further pairs would probably decide an INCONCLUSIVE case; None where that is unknown or too many.
    n_more_pairs: int | None

    @property
    def resolution_ratio(self) -> float | None:
        """The slowdown that the pairs of a PASS rule out; None of other outcomes."""
        return self.change.upper_ratio - 1.0 if self.outcome is Outcome.PASS else None


def _always(_: object) -> bool:
    return True


def compare_sequentially(
    collect: Callable[[int], Pairs],
    margins: Mapping[str, float],
    *,
    design: Design = STANDARD_DESIGN,
    may_go_on: Callable[[int], bool] = _always,
    may_confirm: Callable[[int], bool] = _always,
    is_worth_it: Callable[[str], bool] = _always,
    margins_at_first_look: Callable[[Pairs], Mapping[str, float]] | None = None,
    resolution_limit_ratio: float = 0.0,
) -> dict[str, PairedVerdict]:
    """Judge the cases of a run that is extended only as long as that is likely to decide something.

    1. Screen: at each look a case is flagged (its bound and, by the margin, its estimate say that it changed), passed
       (slower by the margin is ruled out) or still open; what is decided stays. The next look is taken where an open
       case may be decided by the last one: its interval shrinks as 1/sqrt(n), its estimate moves by a standard error;
       or where the flagged are so far beyond their noise that it will probably decide them outright: by Holm over all
       cases of the run, whether flagged or not.
    2. Confirm: what is flagged and no more is tested again on fresh pairs only, by Holm over those cases. One that is
       not confirmed passes where fresh pairs rule out a slowdown by the margin; where the run had to end before that,
       all pairs may decide it outright; it is INCONCLUSIVE otherwise.

    `collect` extends the run to so many pairs in total and returns all of them; fewer mean that it gave up, and the
    case is decided with what there is. `margins` are the changes that matter by case id, as ratios: 0.02 is 2 %;
    `margins_at_first_look` gives them once more when times are known from the first look. `may_go_on` says whether the
    budget of the screen allows so many pairs in total, `may_confirm` whether that of the run does where something is
    flagged, and `is_worth_it` whether a case that is still open is a reason for another look. One that is open at the
    end, with its estimate within the margin, passes at what its pairs rule out where that is at most
    `resolution_limit_ratio`.

    Raises ValueError: a margin is negative or not finite, or a side of a case is not made of latencies.

    The errors of the looks add up by Bonferroni's inequality, whatever is shared between them.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979, for the confirmation.
    """
    for case_id, margin in margins.items():
        if not 0.0 <= margin < math.inf:
            raise ValueError(f"{case_id}: the margin is {margin}, expected a finite ratio of at least 0")
    run = _Run(collect=collect, may_go_on=may_go_on, may_confirm=may_confirm)
    if margins_at_first_look is not None and run.extend(design.screen_looks[0]):
        margins = margins_at_first_look(run.pairs)
    screen = _Screen(run=run, margins=margins, design=design)
    screen.look(is_worth_it)
    screened = screen.changes
    confirmed, latest = _confirm(run, screen.unconfirmed, margins, design)
    confirmed |= screen.outright
    refuted = {case_id for case_id, change in latest.items() if change.outcome(margins[case_id]) is Outcome.PASS}
    left = {case_id: claim for case_id, claim in screen.unconfirmed.items() if case_id not in {*confirmed, *refuted}}
    confirmed |= _outright(run, left, margins, n_tests=len(screened), alpha=design.last_alpha)
    return {
        case_id: _verdict(
            margins[case_id],
            screened=screened[case_id],
            confirmed=confirmed.get(case_id),
            latest=latest.get(case_id),
            n_pairs=run.count(case_id),
            resolution_limit_ratio=resolution_limit_ratio,
        )
        for case_id in margins
        if case_id in screened
    }


@dataclass(slots=True, kw_only=True)
class _Run:
    """The pairs as far as they were taken."""

    collect: Callable[[int], Pairs]
    may_go_on: Callable[[int], bool]
    may_confirm: Callable[[int], bool]
    pairs: Pairs = field(default_factory=dict)
    n_pairs: int = 0
    gave_up: bool = False

    def extend(self, n_pairs: int, *, is_confirming: bool = False) -> bool:
        """Take pairs until there are `n_pairs`; return False, and take none, where that must not be."""
        if 0 < n_pairs <= self.n_pairs:
            return True
        may = self.may_confirm if is_confirming else self.may_go_on
        if self.gave_up or (self.n_pairs and not may(n_pairs)):
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


@dataclass(slots=True, kw_only=True)
class _Screen:
    """The looks at all cases."""

    run: _Run
    margins: Mapping[str, float]
    design: Design
    #: By case: at the look that decided it, or at the last one.
    changes: dict[str, PairedChange] = field(default_factory=dict)
    answers: dict[str, Outcome] = field(default_factory=dict)
    #: Flagged cases that need no fresh pairs, at the look that showed it.
    outright: dict[str, PairedChange] = field(default_factory=dict)

    @property
    def unconfirmed(self) -> dict[str, Outcome]:
        """The flagged cases that fresh pairs are to confirm, with what each would be."""
        flagged = (item for item in self.answers.items() if item[1] in (Outcome.REGRESSED, Outcome.IMPROVED))
        return {case_id: answer for case_id, answer in flagged if case_id not in self.outright}

    def look(self, is_worth_it: Callable[[str], bool]) -> None:
        """Take the looks that are likely to decide something."""
        design, run = self.design, self.run
        for n_pairs, alpha, outright_alpha in zip(
            design.screen_looks, design.screen_alphas, design.outright_alphas, strict=True
        ):
            decides_outright = self._may_decide_outright()
            if self.answers and not decides_outright and not self._may_decide_more(n_pairs, is_worth_it):
                return
            if not run.extend(n_pairs, is_confirming=decides_outright):
                return
            open_ids = [case_id for case_id in self.margins if self._is_open(case_id) and run.count(case_id)]
            self.changes |= {case_id: run.compare(case_id, alpha=alpha) for case_id in open_ids}
            self.answers |= {case_id: self.changes[case_id].outcome(self.margins[case_id]) for case_id in open_ids}
            self.outright |= _outright(
                run, self.unconfirmed, self.margins, n_tests=len(self.changes), alpha=outright_alpha
            )

    def _is_open(self, case_id: str) -> bool:
        return self.answers.get(case_id, Outcome.INCONCLUSIVE) is Outcome.INCONCLUSIVE

    def _may_decide_more(self, n_pairs: int, is_worth_it: Callable[[str], bool]) -> bool:
        """Whether a look at so many pairs may decide an open case, and leaves time to confirm the flagged."""
        looks = self.design.screen_looks
        worthy = (
            may_be_decided(change, self.margins[case_id], first_look=looks[0], last_look=looks[-1])
            for case_id, change in self.changes.items()
            if self._is_open(case_id) and is_worth_it(case_id)
        )
        n_flagged = len(self.unconfirmed)
        return any(worthy) and (
            not n_flagged or self.run.may_confirm(n_pairs + min(_confirm_looks(self.design, n_flagged)))
        )

    def _may_decide_outright(self) -> bool:
        """Whether further looks will probably decide all that is flagged, sooner than fresh pairs would confirm it."""
        flagged = self.unconfirmed
        if not flagged or not all(map(_is_gross, (self.changes[case_id] for case_id in flagged))):
            return False
        n_confirmed = self.run.n_pairs + min(_confirm_looks(self.design, len(flagged)))
        looks = zip(self.design.screen_looks, self.design.outright_alphas, strict=True)
        return any(
            self.run.n_pairs < n_pairs <= n_confirmed
            and least_p(n_pairs) * len(self.changes) <= alpha
            and self.run.may_confirm(n_pairs)
            for n_pairs, alpha in looks
        )


def _is_gross(change: PairedChange) -> bool:
    """Whether the bound is beyond half of the change, in logarithms: further pairs will hardly turn the sign."""
    half = math.sqrt(change.estimate_ratio)
    return change.lower_ratio > half > 1.0 or change.upper_ratio < half < 1.0


def _outright(
    run: _Run, flagged: Mapping[str, Outcome], margins: Mapping[str, float], *, n_tests: int, alpha: float
) -> dict[str, PairedChange]:
    """Return the changes, by all pairs, of those of the flagged that stand among all cases of the run."""
    if not alpha:
        return {}
    changes = {case_id: run.compare(case_id, alpha=alpha) for case_id in flagged}
    return _standing(changes, flagged, margins, n_tests=n_tests, alpha=alpha)


def _confirm(
    run: _Run, flagged: Mapping[str, Outcome], margins: Mapping[str, float], design: Design
) -> tuple[dict[str, PairedChange], dict[str, PairedChange]]:
    """Return the changes on fresh pairs of the flagged cases: as they were confirmed, and as they were seen last."""
    n_screened = run.n_pairs
    first = {case_id: run.count(case_id) for case_id in flagged}
    confirmed: dict[str, PairedChange] = {}
    latest: dict[str, PairedChange] = {}
    for n_fresh, alpha in _confirm_looks(design, len(flagged)).items():
        if len(confirmed) == len(flagged) or not run.extend(n_screened + n_fresh, is_confirming=True):
            break
        latest = {
            case_id: run.compare(case_id, alpha=alpha, first=first[case_id])
            for case_id in flagged
            if run.count(case_id) > first[case_id]
        }
        confirmed = _standing(latest, flagged, margins, n_tests=len(flagged), alpha=alpha) | confirmed
    return confirmed, latest


def _confirm_looks(design: Design, n_flagged: int) -> dict[int, float]:
    """Return each look with its error; one too early for the first step of Holm is put off until pairs can take it."""
    return {
        max(n_fresh, math.ceil(math.log2(max(n_flagged, 1) / alpha))): alpha
        for n_fresh, alpha in zip(design.confirm_looks, design.confirm_alphas, strict=True)
    }


def _standing(
    changes: Mapping[str, PairedChange],
    claims: Mapping[str, Outcome],
    margins: Mapping[str, float],
    *,
    n_tests: int,
    alpha: float,
) -> dict[str, PairedChange]:
    """Return the changes that are as claimed by the margin, of those that stand among `n_tests` by Holm.

    The k-th least p-value is compared with alpha / (n_tests + 1 - k).
    """
    p_values = {
        case_id: change.p_slower if claims[case_id] is Outcome.REGRESSED else change.p_faster
        for case_id, change in changes.items()
    }
    ordered = sorted(p_values.items(), key=itemgetter(1))
    holding = takewhile(lambda item: item[1][1] <= alpha / (n_tests - item[0]), enumerate(ordered))
    return {
        case_id: changes[case_id]
        for _, (case_id, _) in holding
        if changes[case_id].outcome(margins[case_id]) is claims[case_id]
    }


def _verdict(
    margin: float,
    *,
    screened: PairedChange,
    confirmed: PairedChange | None,
    latest: PairedChange | None,
    n_pairs: int,
    resolution_limit_ratio: float,
) -> PairedVerdict:
    """Conclude from the screen and, of a flagged case, from its fresh pairs where they are enough for a bound."""
    outcome, change = screened.outcome(margin), confirmed or screened
    is_flagged = outcome in (Outcome.REGRESSED, Outcome.IMPROVED)
    if is_flagged and confirmed is None:
        change = latest if latest and math.isfinite(latest.upper_ratio) else screened
        outcome = Outcome.PASS if change.rules_out(margin) else Outcome.INCONCLUSIVE
    is_resolved = change.upper_ratio - 1.0 <= resolution_limit_ratio and change.estimate_ratio <= 1.0 + margin
    if outcome is Outcome.INCONCLUSIVE and is_resolved:
        outcome = Outcome.PASS
    return PairedVerdict(
        outcome=outcome,
        change=change,
        margin_ratio=margin,
        n_pairs=n_pairs,
        is_flagged=is_flagged,
        smallest_effect_ratio=smallest_effect(change, margin),
        n_more_pairs=n_more(change, margin) if outcome is Outcome.INCONCLUSIVE else None,
    )
