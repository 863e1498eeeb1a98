"""Verdicts from pairs: intervals by Student's t on log ratios, questions before their parts, looks that share an error.

Each case has an interval for new over old from all of its pairs. Three questions come first: are end_to_end, prefill
and decode slower. Their parts come second, at a price of their own, or cheaply where their phase has changed. A case is
slower if its interval, at the error of its question, excludes 'no change' and its estimate is beyond the margin; it
passes if its interval excludes a slowdown by the margin. A run is looked at after 6, 10, 16 and 24 pairs and when its
budget ends; each look spends a share of the error, and the last look is the verdict. An unchanged run gives an alarm at
most once in a hundred: docs/explanation/verdicts.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, takewhile
from statistics import fmean, stdev

from perfsuite.records.case import Case, is_question
from perfsuite.records.outcome import LEAST_PAIRS, Outcome
from perfsuite.verdict.allowance import step_of
from perfsuite.verdict.significance import Change

#: By case id: old and new latencies, ns, pair by pair in the order of time.
Pairs = Mapping[str, tuple[Sequence[int], Sequence[int]]]

#: When a run is looked at, in pairs, and the share of each error that the look spends; 0.9875 in all.
LOOKS = ((6, 0.2), (10, 0.2), (16, 0.2), (24, 0.2), (40, 0.1), (64, 0.05), (104, 0.025), (168, 0.0125))

#: The error of the questions and that of their parts, each over all looks; of the parts of a phase that changed; of all
#: parts that are called suspect; and of each bound that is shown and that a PASS rests on.
QUESTION_ERROR = PART_ERROR = 0.005
GATED_ERROR = 0.05
SUSPECT_ERROR = 0.02
SHOWN_ERROR = 0.025

#: From so many pairs on an eighth of them is cut at each end.
_FEWEST_TO_CUT, _CUT_PART = 10, 8

#: Pairs that follow each other are alike beyond this lag-1 correlation, which so many can show: their means are judged.
MOST_CORRELATION, _FEWEST_TO_CORRELATE = 0.3, 12

#: What others cost beyond the time that they take (caches, clock): disturbed pairs look slower from here on.
#: Source: docs/results.md, 'Verdicts in pairs': one build beside a neighbour in phase with one side, at most +8 %.
_DISTURBED_RATIO = 1.25

#: A case that needs more further pairs than this to be decided is reported without how many.
_MOST_PAIRS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedChange(Change):
    """A ratio new over old; each bound and each p-value holds by itself, one-sided.

    The bounds of one pair are 0 and infinity. Where all pairs are alike to the last digit, nothing says how much they
    scatter: the clock may tick no finer than what it timed, and they are known within a factor of two. Bounds and
    p-values hold whatever part of the difference the sides' `lost` time makes.
    """

    #: The chance of pairs at least this slow, or this fast, where nothing changed.
    p_slower: float
    p_faster: float
    n_pairs: int
    #: The estimates as measured and with what others took of either side taken off: the least and the most of them.
    least_ratio: float
    most_ratio: float
    #: Standard error of the logarithm of the estimate; infinite where it is not known.
    error: float = math.inf


def compare_pairs(
    old_ns: Sequence[int], new_ns: Sequence[int], *, alpha: float, lost: Sequence[float] = ()
) -> PairedChange:
    r"""Estimate new over old from pairs taken one beside the other, with bounds at the one-sided error `alpha`.

    Of the sorted :math:`d_i = \ln(new_i / old_i)`, i = 1..n, :math:`g = \lfloor n/8 \rfloor` are cut at each end from
    ten pairs on:

    .. math:: m = \overline{d_{g+1} \dots d_{n-g}}, \quad s_m = s_w \sqrt{n} / (n - 2g), \quad f = n - 3g - 1

    with :math:`s_w` the standard deviation of the d winsorised there. The g degrees of freedom that are paid beyond
    those of Tukey and McLaughlin keep the level at errors below 0.1 %. `lost` is by how much longer, in logarithms, the
    new side of each pair took at most because others had its processors, less the same of the old side: what is stated
    holds as measured and with that taken off.

    Raises ValueError: the sides differ in length, are empty, hold what is no latency, or `alpha` is not between 0 and
    0.5.

    Source: Tukey and McLaughlin, Less vulnerable confidence and significance procedures for location, 1963; Benjamini,
    Is the t test really conservative when the parent distribution is long-tailed?, 1983.
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"alpha is {alpha}, expected more than 0 and less than 0.5")
    changes = _log_ratios(old_ns, new_ns)
    found = _compared(changes, alpha)
    if not any(lost):
        return found
    cleared = _compared([change - each for change, each in zip(changes, lost, strict=True)], alpha)
    return PairedChange(
        estimate_ratio=found.estimate_ratio,
        lower_ratio=min(found.lower_ratio, cleared.lower_ratio),
        upper_ratio=max(found.upper_ratio, cleared.upper_ratio),
        p_slower=max(found.p_slower, cleared.p_slower),
        p_faster=max(found.p_faster, cleared.p_faster),
        n_pairs=found.n_pairs,
        least_ratio=min(found.least_ratio, cleared.least_ratio),
        most_ratio=max(found.most_ratio, cleared.most_ratio),
        error=max(found.error, cleared.error),
    )


def _log_ratios(old_ns: Sequence[int], new_ns: Sequence[int]) -> list[float]:
    if len(old_ns) != len(new_ns):
        raise ValueError(f"{len(old_ns)} old and {len(new_ns)} new latencies are no pairs")
    if not old_ns:
        raise ValueError("there are no pairs")
    if not all(0 < value < math.inf for value in (*old_ns, *new_ns)):
        raise ValueError("a latency is not positive and finite")
    return [math.log(new / old) for old, new in zip(old_ns, new_ns, strict=True)]


def _compared(changes: Sequence[float], alpha: float) -> PairedChange:
    from scipy.special import stdtr, stdtrit  # late, for its import takes longer than most commands

    n_pairs, ordered = len(changes), sorted(changes)
    n_cut = n_pairs // _CUT_PART if n_pairs >= _FEWEST_TO_CUT else 0
    kept = ordered[n_cut : n_pairs - n_cut]
    centre, degrees = fmean(kept), n_pairs - 3 * n_cut - 1
    spread = stdev([kept[0]] * n_cut + kept + [kept[-1]] * n_cut) if n_pairs > 1 else 0.0
    ratio = math.exp(centre)
    change = partial(PairedChange, estimate_ratio=ratio, least_ratio=ratio, most_ratio=ratio, n_pairs=n_pairs)
    if spread <= 1e-12:
        lower_ratio, upper_ratio = (ratio / 2.0, ratio * 2.0) if n_pairs > 1 else (0.0, math.inf)
        return change(lower_ratio=lower_ratio, upper_ratio=upper_ratio, p_slower=1.0, p_faster=1.0)
    error = spread * math.sqrt(n_pairs) / len(kept)
    reach = -float(stdtrit(degrees, alpha)) * error
    return change(
        lower_ratio=math.exp(centre - reach),
        upper_ratio=math.exp(min(centre + reach, 700.0)),
        p_slower=float(stdtr(degrees, -centre / error)),
        p_faster=float(stdtr(degrees, centre / error)),
        error=error,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Which cases of a run are questions, and which question each part belongs to."""

    questions: frozenset[str] = frozenset()
    whole_of: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, cases: Iterable[Case]) -> Suite:
        """Take whole phases for questions; operators and small phases are parts of the phase whose step they are of."""
        known = tuple(cases)
        asked = {each.phase: each.case_id for each in known if is_question(each.case_id)}
        steps = ((each.case_id, step_of(each)) for each in known if not is_question(each.case_id))
        whole_of = {case_id: asked[step] for case_id, step in steps if step in asked}
        return cls(questions=frozenset(asked.values()), whole_of=whole_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedVerdict:
    """What the pairs of a run say about one case: REGRESSED, IMPROVED, PASS, SUSPECT or INCONCLUSIVE."""

    outcome: Outcome
    change: PairedChange
    #: The change that passes, as a ratio.
    margin_ratio: float
    n_pairs: int
    #: The smallest slowdown that these pairs could have shown; None where nothing says how much they scatter.
    smallest_effect_ratio: float | None
    #: How many further pairs would probably decide an open case; None where that is unknown or too many.
    n_more_pairs: int | None
    #: Of the pairs, those that others disturbed: they are enough for SUSPECT, and for nothing else.
    n_disturbed: int = 0


def verdicts_at(
    pairs: Pairs,
    margins: Mapping[str, float],
    suite: Suite,
    *,
    share_ratio: float,
    lost: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, PairedVerdict]:
    """Judge the cases that have pairs by one look, which spends `share_ratio` of each error.

    `margins` are the changes that pass by case id, as ratios: 0.02 is 2 %; `lost` is as `compare_pairs` takes it.

    Raises ValueError: a margin is negative or not finite, or a side of a case is not made of latencies.
    """
    for case_id, margin in margins.items():
        if not 0.0 <= margin < math.inf:
            raise ValueError(f"{case_id}: the margin is {margin}, expected a finite ratio of at least 0")
    judged = {case_id: pairs[case_id] for case_id in margins if case_id in pairs and pairs[case_id][0]}
    is_correlated = (correlation := lag_correlation(pairs, suite)) is not None and correlation > MOST_CORRELATION
    changes = {
        case_id: _change(sides, (lost or {}).get(case_id, ()), SHOWN_ERROR * share_ratio, in_twos=is_correlated)
        for case_id, sides in judged.items()
    }
    claims = _standing(
        {each: changes[each] for each in changes if each in suite.questions}, QUESTION_ERROR, share_ratio
    )
    parts = {case_id: change for case_id, change in changes.items() if case_id not in suite.questions}
    claims |= _standing(parts, PART_ERROR, share_ratio)
    for question in suite.questions & changes.keys():
        if _outcome(changes[question], margins[question], claims, question) in (Outcome.REGRESSED, Outcome.IMPROVED):
            within = {each: change for each, change in parts.items() if suite.whole_of.get(each) == question}
            claims |= _standing(within, GATED_ERROR, share_ratio)
    # What looks slower at the last look alone ends a run as suspect: that error is not shared among the looks.
    slower = {case_id for case_id, outcome in _standing(parts, SUSPECT_ERROR, 1.0) if outcome is Outcome.REGRESSED}
    suspect_from = dict.fromkeys(suite.questions, 1.0) | {each: 1.0 + margins[each] for each in slower}
    return {
        case_id: _verdict(
            _outcome(change, margins[case_id], claims, case_id),
            change,
            margins[case_id],
            n_pairs=len(judged[case_id][0]),
            suspect_from=suspect_from.get(case_id, math.inf),
        )
        for case_id, change in changes.items()
    }


def slower_at_worst(
    pairs: Pairs, margins: Mapping[str, float], suite: Suite, *, lost: Mapping[str, Sequence[float]], n_disturbed: int
) -> dict[str, PairedVerdict]:
    """Return the questions that look slower in pairs of which others disturbed some, whatever they took: SUSPECT.

    For runs with too few pairs for any verdict. `lost` is by how much longer, in logarithms, the new side of each pair
    took at most because of others; nothing is taken off the old side, and a quarter more may be what others cost.
    """
    found = {}
    for case_id in suite.questions & pairs.keys() & margins.keys():
        change, margin = compare_pairs(*pairs[case_id], alpha=SHOWN_ERROR, lost=lost[case_id]), margins[case_id]
        if change.lower_ratio > max(_DISTURBED_RATIO, 1.0 + margin):
            verdict = _verdict(Outcome.SUSPECT, change, margin, n_pairs=change.n_pairs, suspect_from=1.0)
            found[case_id] = replace(verdict, n_more_pairs=None, n_disturbed=n_disturbed)
    return found


def _change(
    sides: tuple[Sequence[int], Sequence[int]], lost: Sequence[float], alpha: float, *, in_twos: bool
) -> PairedChange:
    """Compare the sides of a case; in twos, each pair with its neighbour where that is like it."""
    if not in_twos:
        return compare_pairs(*sides, alpha=alpha, lost=lost)
    old_ns, new_ns = ([round(math.sqrt(a * b)) for a, b in zip(side[::2], side[1::2], strict=False)] for side in sides)
    return compare_pairs(
        old_ns, new_ns, alpha=alpha, lost=[(a + b) / 2.0 for a, b in zip(lost[::2], lost[1::2], strict=False)]
    )


def lag_correlation(pairs: Pairs, suite: Suite) -> float | None:
    """Return how alike neighbouring pairs of the questions are, from -1 to 1; None where there are too few pairs."""
    found = [_lag_1(_log_ratios(*pairs[each])) for each in sorted(suite.questions) if each in pairs]
    known = [each for each in found if each is not None]
    return fmean(known) if known else None


def correlation_note(pairs: Pairs, suite: Suite) -> tuple[str, ...]:
    """Say how alike neighbouring pairs are, and what that means; nothing of too few pairs."""
    found = lag_correlation(pairs, suite)
    if found is None:
        return ()
    judged = ": judged are the means of two neighbours" if found > MOST_CORRELATION else ""
    return (f"neighbouring pairs are correlated by {found:+.2f} (limit {MOST_CORRELATION:g}){judged}",)


def _lag_1(changes: Sequence[float]) -> float | None:
    centre = fmean(changes)
    off = [each - centre for each in changes]
    square = math.fsum(each * each for each in off)
    if len(changes) < _FEWEST_TO_CORRELATE or square <= 0.0:
        return None
    return math.fsum(a * b for a, b in pairwise(off)) / square


def _standing(changes: Mapping[str, PairedChange], error: float, share_ratio: float) -> set[tuple[str, Outcome]]:
    """Return the cases that stand as slower, and as faster, among these by Holm: once for each direction.

    The k-th least p-value of n is compared with error / (n + 1 - k).

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    alpha, found = error * share_ratio, set[tuple[str, Outcome]]()
    for outcome in (Outcome.REGRESSED, Outcome.IMPROVED):
        ordered = sorted(
            (change.p_slower if outcome is Outcome.REGRESSED else change.p_faster, case_id)
            for case_id, change in changes.items()
            if change.n_pairs >= LEAST_PAIRS
        )
        holding = takewhile(lambda item: item[1][0] <= alpha / (len(changes) - item[0]), enumerate(ordered))
        found |= {(case_id, outcome) for _, (_, case_id) in holding}
    return found


def _outcome(change: PairedChange, margin: float, claims: set[tuple[str, Outcome]], case_id: str) -> Outcome:
    if (case_id, Outcome.REGRESSED) in claims and change.least_ratio > 1.0 + margin:
        return Outcome.REGRESSED
    if (case_id, Outcome.IMPROVED) in claims and change.most_ratio < 1.0 / (1.0 + margin):
        return Outcome.IMPROVED
    return Outcome.PASS if change.n_pairs >= LEAST_PAIRS and change.rules_out(margin) else Outcome.INCONCLUSIVE


def _verdict(
    outcome: Outcome, change: PairedChange, margin: float, *, n_pairs: int, suspect_from: float
) -> PairedVerdict:
    """Conclude: an open case with an estimate beyond the margin is SUSPECT where its bound is beyond `suspect_from`."""
    is_slow = change.lower_ratio > suspect_from or math.isinf(change.error)
    is_enough = change.n_pairs >= LEAST_PAIRS
    if outcome is Outcome.INCONCLUSIVE and is_enough and is_slow and change.estimate_ratio > 1.0 + margin:
        outcome = Outcome.SUSPECT
    is_open = outcome in (Outcome.INCONCLUSIVE, Outcome.SUSPECT)
    known = math.isfinite(change.error)
    return PairedVerdict(
        outcome=outcome,
        change=change,
        margin_ratio=margin,
        n_pairs=n_pairs,
        smallest_effect_ratio=max(1.0 + margin, change.estimate_ratio / change.lower_ratio) if known else None,
        n_more_pairs=_n_more(change, margin) if is_open and known else None,
    )


def _n_more(change: PairedChange, margin: float) -> int | None:
    """Return how many further pairs would probably decide an open case, were estimate and scatter to stay.

    The least n with :math:`t \\, s_m \\sqrt{n_{now} / n}` below the way from the estimate to 'no change' where it is
    beyond the margin, and to the margin otherwise.
    """
    centre, limit = math.log(change.estimate_ratio), math.log1p(margin)
    way = abs(centre - (0.0 if centre > limit else limit))
    reach = math.log(change.estimate_ratio / change.lower_ratio)
    n_more = math.floor(change.n_pairs * ((reach / way) ** 2 - 1.0)) + 1 if way > 0.0 else _MOST_PAIRS
    return max(1, n_more) if n_more < _MOST_PAIRS else None


def compare_in_looks(
    collect: Callable[[int, bool], Pairs],
    margins: Mapping[str, float],
    suite: Suite,
    *,
    lost: Callable[[], Mapping[str, Sequence[float]]] = dict,
    margins_at: Callable[[Pairs], Mapping[str, float]] | None = None,
    is_worth_it: Callable[[str], bool] = lambda case_id: True,
    n_affordable: Callable[[], float] = lambda: math.inf,
) -> dict[str, PairedVerdict]:
    """Judge the cases of a run that is extended until its questions are decided, or its budget ends.

    `collect` extends the run to so many pairs in all and returns all of them; fewer mean that the budget has ended, and
    then takes the look there is. A run that would end with a case that looks slower, or with some pairs and too few of
    them for any verdict, asks once more, with True: it may take half of the budget again. `n_affordable` says how many
    pairs the budget will probably allow; a part keeps a run going only where `is_worth_it`, and where so many could
    decide it. `margins_at` gives the margins once times are known, `lost` what others took of each pair
    (`compare_pairs`).
    """
    verdicts: dict[str, PairedVerdict] = {}
    n_before, is_extra = 0, False
    for n_planned, share_ratio in LOOKS:
        pairs = collect(n_planned, is_extra)
        pairs = {case_id: (old_ns[:n_planned], new_ns[:n_planned]) for case_id, (old_ns, new_ns) in pairs.items()}
        n_pairs = max((len(old_ns) for old_ns, _ in pairs.values()), default=0)
        if n_pairs == n_before:
            break
        n_before, found = n_pairs, margins_at(pairs) if margins_at else margins
        taken = {case_id: each[:n_pairs] for case_id, each in lost().items()}
        verdicts = verdicts_at(pairs, found, suite, share_ratio=share_ratio, lost=taken)
        if n_pairs < n_planned:
            if is_extra or (
                n_pairs >= LEAST_PAIRS and all(each.outcome is not Outcome.SUSPECT for each in verdicts.values())
            ):
                break
            is_extra = True
        elif not _goes_on(verdicts, suite, is_worth_it, n_affordable()):
            break
    return verdicts


def _goes_on(
    verdicts: Mapping[str, PairedVerdict], suite: Suite, is_worth_it: Callable[[str], bool], n_affordable: float
) -> bool:
    """Whether a question is open, something looks slower, or a part worth it could be decided by so many pairs."""
    return any(
        each.outcome is Outcome.SUSPECT
        or (each.outcome is Outcome.INCONCLUSIVE and case_id in suite.questions)
        or (each.outcome is Outcome.INCONCLUSIVE and is_worth_it(case_id) and _could_pass(each, n_affordable))
        for case_id, each in verdicts.items()
    )


def _could_pass(verdict: PairedVerdict, n_pairs: float) -> bool:
    """Whether so many pairs rule out the margin, or show a change, with the estimate a standard error further."""
    change, limit = verdict.change, math.log1p(verdict.margin_ratio)
    if not math.isfinite(change.error):  # alike, as further pairs will be
        return False
    centre = math.log(change.estimate_ratio)
    reach = (math.log(change.upper_ratio) - centre) * math.sqrt(verdict.n_pairs / max(n_pairs, verdict.n_pairs))
    return centre - change.error + reach < limit or centre + change.error > max(limit, reach)
