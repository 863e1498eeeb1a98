"""The verdict on a whole run in one sentence, as the page, the terminal and the exports say it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from perfsuite.records.case import COUNTED, group_of_kind, has_no_answer, is_question
from perfsuite.records.outcome import LEAST_PAIRS, Attribution, Judgement, Outcome
from perfsuite.units import (
    FACTOR_RATIO,
    format_change,
    format_count,
    format_limit,
    format_ratio,
    to_change_percent,
)

if TYPE_CHECKING:
    from perfsuite.records.run_file import RunFile
    from perfsuite.report.next_steps import EndedRun


def outcome_words(judgement: Judgement, outcome: str) -> str:
    """Return the word for the outcome, of a pass with what it rules out: ``pass at 24 %``, ``pass by share``.

    A pass rules out that a case is slower; where it looks faster, that is said: ``pass at 2 %, looks faster``.
    """
    faster = ", looks faster" if looks_faster(judgement) else ""
    if judgement.outcome is not Outcome.PASS or judgement.resolution_ratio is None:
        return f"{outcome}{faster}"
    if judgement.step_share_ratio is not None:
        return f"{outcome} by share{faster}"
    return f"{outcome} at {format_limit(judgement.resolution_ratio)}{faster}"


def looks_faster(judgement: Judgement) -> bool:
    """Whether a case is not proven to be faster, and its estimate is by more than its margin."""
    is_open = judgement.outcome in (Outcome.PASS, Outcome.INCONCLUSIVE)
    ratio, margin_ratio = judgement.change_ratio, judgement.margin_ratio
    return is_open and ratio is not None and margin_ratio is not None and ratio * (1.0 + margin_ratio) < 1.0


def passed_words(judgements: Iterable[Judgement]) -> str:
    """Say behind 'passed' what all passes rule out: `` at 24 %``; empty where each reached its margin."""
    at, missed, n_by_share = _coarse_passes(judgements)
    if not missed:
        return ""
    return f", {len(at)} of them at {format_limit(max(at))}" if n_by_share else f" at {format_limit(max(at))}"


def resolution_line(judgements: Sequence[Judgement]) -> str | None:
    """Say what the passes rule out and what would resolve their margin; None where each reached it."""
    at, missed, n_by_share = _coarse_passes(judgements)
    if not missed:
        return None
    is_all = all(each.outcome in (Outcome.PASS, Outcome.IMPROVED) for each in judgements)
    by_share = f" and {n_by_share} by their share of a step" if n_by_share else ""
    return (
        f"  {len(at)} passed at {format_limit(max(at))}{by_share}: "
        f"{'nothing' if is_all else 'none of them'} is slower by more; "
        f"for {format_limit(min(missed))}, record again: "
        "--baseline=record keeps the build that later runs are measured beside"
    )


def _coarse_passes(judgements: Iterable[Judgement]) -> tuple[list[float], list[float], int]:
    """Sum up the passes against stored times; pairs resolve their margin, or go on.

    Returned are what they resolve, the margins that were not reached, and how many more passed because they are too
    small a share of their step.
    """
    stored = [each for each in judgements if each.outcome is Outcome.PASS and each.n_pairs is None]
    at = [
        (each.resolution_ratio, each.margin_ratio)
        for each in stored
        if each.resolution_ratio is not None and each.margin_ratio is not None and each.step_share_ratio is None
    ]
    missed = [margin_ratio for resolution_ratio, margin_ratio in at if resolution_ratio > margin_ratio]
    return [ratio for ratio, _ in at], missed, sum(each.step_share_ratio is not None for each in stored)


_OF_PAIRS = (
    "change, which is what is judged, is the typical ratio of the pairs, not the quotient of the times beside it"
)
_OF_SESSIONS = (
    "change, which is what is judged, is the typical ratio of this run's samples to the stored ones (the drift of the "
    "sentinels divided out), not the quotient of the times beside it"
)


def change_notes(judgements: Iterable[Judgement]) -> tuple[str, ...]:
    """Say of what the change is, where some case's is not, as they are shown, the quotient of its two medians."""
    notes = (
        _OF_SESSIONS if each.n_pairs is None else _OF_PAIRS
        for each in judgements
        if each.measured_ns is not None and each.baseline_ns and each.change_ratio is not None
        if format_ratio(each.change_ratio) != format_ratio(each.measured_ns / each.baseline_ns)
    )
    return tuple(dict.fromkeys(notes))


#: Cases and carriers that the sentence names, and questions; it counts the others.
_MAX_NAMED, _MAX_QUESTIONS = 2, 3

#: Makes what stands in a sentence for a name, such as the name between marks of code.
Named: TypeAlias = Callable[[str], str]

#: What the sentence says of the cases of an outcome, by whether there is one; those that are suspect it names.
_TOLD = {
    Outcome.INVALID: ("is invalid", "are invalid"),
    Outcome.IMPOSSIBLE: ("is faster than physics allows", "are faster than physics allows"),
    Outcome.INCOMPARABLE: ("cannot be compared with its baseline", "cannot be compared with their baselines"),
    Outcome.REGRESSED: ("regressed", "regressed"),
    Outcome.SLOW: ("is slower than the forecast allows", "are slower than the forecast allows"),
    Outcome.INCONCLUSIVE: ("is undecided", "are undecided"),
    Outcome.NEW: ("has no baseline", "have no baseline"),
    Outcome.IMPROVED: ("improved", "improved"),
    Outcome.PASS: ("passed", "passed"),
}


#: What a verdict is about: a run, or what is known of it before it is written.
Judged: TypeAlias = "EndedRun | RunFile"


class Tone(str, Enum):
    """What a run comes to, for colours and marks; what is not GOOD needs somebody to look."""

    BAD = "bad"
    UNSURE = "unsure"
    GOOD = "good"


def verdict_sentence(run: Judged, *, named: Named = str) -> str:
    """Say what came out of a run, what matters most first, as a sentence without its full stop.

    Names come from the run as they are: whoever shows the sentence escapes it, or lets `named` mark the names.
    """
    return "; ".join(verdict_parts(run, named=named))


def verdict_parts(run: Judged, *, named: Named = str) -> tuple[str, ...]:
    """Return the parts of the sentence, of which the first can stand alone."""
    if not run.judgements:
        return ("interrupted before anything was measured" if run.is_interrupted else "nothing was measured",)
    circumstances = (("interrupted", run.is_interrupted), ("slowed down on purpose", run.is_injected))
    prefix = "".join(f"{word}: " for word, holds in circumstances if holds)
    counts = Counter(judgement.outcome for judgement in run.judgements)
    questions = [each for each in run.judgements if each.outcome is Outcome.INCONCLUSIVE and is_question(each.case_id)]
    main = [*_main_words(run, counts, named, [_open_words(questions, named)] if questions else [])]
    return f"{prefix}{main[0]}", *main[1:], *_side_words(run, counts, len(questions))


def verdict_tone(run: Judged) -> Tone:
    """Return what the run comes to: BAD where a case fails, UNSURE where none was compared or some could not be."""
    outcomes = {judgement.outcome for judgement in run.judgements}
    if any(outcome.fails for outcome in outcomes):
        return Tone.BAD
    if not outcomes or not all(outcome.decides for outcome in outcomes):
        return Tone.UNSURE
    return Tone.GOOD


def counts_words(judgements: Iterable[Judgement]) -> str:
    """Count the cases of each outcome: ``5 regressed, 24 pass``."""
    counts = Counter(judgement.outcome for judgement in judgements)
    return ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])


def case_words(judgement: Judgement) -> str:
    """Name a case for a sentence: the last part of a phase's id, the last two of others'."""
    parts = judgement.case_id.split("/")
    return parts[-1] if judgement.kind == "phase" else " ".join(parts[1:][-2:])


def are_counted(judgements: Sequence[Judgement]) -> bool:
    """Whether there are cases, and all of them count work."""
    return bool(judgements) and all(each.kind == COUNTED for each in judgements)


def case_change_words(judgement: Judgement) -> str:
    """Say how a case changed: its time, or its count, which is exact."""
    ratio = judgement.change_ratio
    if ratio is None:
        return "changed"
    return f"changed by {to_change_percent(ratio):+.3f} %" if judgement.kind == COUNTED else change_words(ratio)


def change_words(ratio: float) -> str:
    """Say a change of time, new over old: ``is 19.5 % slower``, ``takes 20.6 times as long``."""
    if round(ratio, 2) >= FACTOR_RATIO:
        return f"takes {format_ratio(ratio).removeprefix('× ')} times as long"
    percent = f"{abs(ratio - 1.0) * 100.0:.1f} %"
    if percent == "0.0 %":
        return "takes as long as before"
    return f"is {percent} {'slower' if ratio > 1.0 else 'faster'}"


def interval_words(judgement: Judgement, *, told: Callable[[float], str] = format_change) -> str:
    """Return the bounds of the change, ``+18.1 % to +21.0 %``, each as `told`; ``-`` where there are none."""
    if judgement.lower_ratio is None or judgement.upper_ratio is None:
        return "-"
    return f"{told(judgement.lower_ratio)} to {told(judgement.upper_ratio)}"


def carrier_words(case_id: str, attribution: Attribution, *, named: Named = str) -> str:
    """Name the operators that carry a phase's change: ``carried by ffn_swiglu``; empty where none is known to."""
    if attribution.uniform_shift is not None:
        return ""
    trees = [tree for tree in attribution.phases if tree.case_id == case_id]
    roles = [carrier.name for tree in trees for carrier in tree.carriers if carrier.is_significant]
    return f"carried by {_listed(roles, named)}" if roles else ""


def in_order_of_weight(judgements: Iterable[Judgement], attribution: Attribution) -> tuple[Judgement, ...]:
    """Sort changed cases: phases whose operators are known to carry it, other phases, the rest; the largest first."""
    explained = {tree.case_id for tree in attribution.phases}

    def place(judgement: Judgement) -> tuple[bool, bool, float]:
        size = abs((judgement.change_ratio or 1.0) - 1.0) if judgement.kind == "phase" else abs(judgement.lost_ns or 0)
        return judgement.kind != "phase", judgement.case_id not in explained, -size

    return tuple(sorted(judgements, key=place))


def _main_words(run: Judged, counts: Counter[Outcome], named: Named, open_words: Sequence[str]) -> Iterator[str]:
    for outcome in (Outcome.REGRESSED, Outcome.IMPOSSIBLE, Outcome.SLOW, Outcome.SUSPECT, Outcome.IMPROVED):
        if outcome is Outcome.SUSPECT and counts[outcome]:
            yield f"looks slower, not proven: {_suspects(run, named)}"
        elif counts[outcome]:
            yield f"{_count_words(outcome, counts[outcome])}{_detail(run, outcome, counts, named)}"
    if any(counts[outcome] for outcome in Outcome if outcome.alarms or outcome is Outcome.IMPROVED):
        yield from open_words
    elif counts[Outcome.PASS] and open_words:
        yield "; ".join(["nothing slower found", *open_words])
    else:
        yield from (_quiet_words(run, counts), *open_words)


def _suspects(run: Judged, named: Named) -> str:
    """Name what looks slower with its change and interval: questions first, then the largest change."""
    found = [each for each in run.judgements if each.outcome is Outcome.SUSPECT]
    found.sort(key=lambda each: (not is_question(each.case_id), -(each.change_ratio or 1.0)))
    return _listed([f"{named(case_words(each))}{_found_change(each)}" for each in found], str, _MAX_QUESTIONS)


def _found_change(judgement: Judgement) -> str:
    """Return a change and its interval, `` +21.8 % (+13.6 to +25.1)``; empty where there is none."""
    if judgement.change_ratio is None:
        return ""
    interval = interval_words(judgement, told=lambda ratio: format_change(ratio).removesuffix(" %"))
    return f" {format_change(judgement.change_ratio)}{'' if interval == '-' else f' ({interval})'}"


def _open_words(questions: Sequence[Judgement], named: Named) -> str:
    """Name undecided questions, and how much slower they may be: ``decode undecided, up to +2.2 %``."""
    most = [each.upper_ratio for each in questions if each.upper_ratio is not None]
    bound = f", up to {format_change(max(most))}" if len(most) == len(questions) else ""
    return f"{_listed([case_words(each) for each in questions], named, _MAX_QUESTIONS)} undecided{bound}"


def _quiet_words(run: Judged, counts: Counter[Outcome]) -> str:
    total, at = counts.total(), passed_words(run.judgements)
    if counts[Outcome.PASS] == total:
        return f"the only case passed{at}" if total == 1 else f"all {total} cases passed{at}"
    if counts[Outcome.PASS]:
        lacks_answer = has_no_answer({each.case_id: each.outcome for each in run.judgements})
        answer = "no whole phase was judged" if lacks_answer else "nothing slower found"
        return f"{answer}: {_count_words(Outcome.PASS, counts[Outcome.PASS])}{at}"
    if counts[Outcome.NEW]:
        return "nothing to compare with yet"
    return "nothing could be judged"


def _side_words(run: Judged, counts: Counter[Outcome], n_questions: int) -> Iterator[str]:
    """Say what was not judged, without the questions that were named."""
    if _has_too_few_pairs(run.judgements):
        yield "fewer than five pairs were measured"
    for outcome in (Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.INCONCLUSIVE, Outcome.NEW):
        n_named = n_questions if outcome is Outcome.INCONCLUSIVE else 0
        if counts[outcome] > n_named:
            yield _count_words(outcome, counts[outcome] - n_named, "other case" if n_named else "case")


def _has_too_few_pairs(judgements: Iterable[Judgement]) -> bool:
    """Whether what was measured together had too few pairs for any verdict."""
    most: dict[str, int] = {}
    for each in judgements:
        if each.n_pairs is not None:
            group = group_of_kind(each.kind)
            most[group] = max(most.get(group, 0), each.n_pairs)
    return any(n_pairs < LEAST_PAIRS for n_pairs in most.values())


def _count_words(outcome: Outcome, count: int, noun: str = "case") -> str:
    return f"{format_count(count, noun)} {_TOLD[outcome][0 if count == 1 else 1]}"


def _detail(run: Judged, outcome: Outcome, counts: Counter[Outcome], named: Named) -> str:
    """Say how a uniform shift explains the changes, or name those of most weight."""
    shift = run.attribution.uniform_shift
    found = [judgement for judgement in run.judgements if judgement.outcome is outcome]
    if outcome not in (Outcome.REGRESSED, Outcome.IMPROVED):
        return f": {_listed([case_words(each) for each in found], named)}"
    if shift is not None:
        if outcome is Outcome.IMPROVED and counts[Outcome.REGRESSED]:
            return ""
        return f": everything {change_words(shift.ratio)}, which points to frequency, memory, threads or build"
    return f": {_listed_changes(in_order_of_weight(found, run.attribution), run.attribution, named)}"


def _listed_changes(changed: Sequence[Judgement], attribution: Attribution, named: Named) -> str:
    """Name the phases of most weight, or the first case where no phase changed."""
    phases = [judgement for judgement in changed if judgement.kind == "phase"]
    changes, has_carriers = [], False
    for each in (phases or changed)[: _MAX_NAMED if phases else 1]:
        carriers = carrier_words(each.case_id, attribution, named=named)
        has_carriers |= bool(carriers)
        words = f"{named(case_words(each))} {case_change_words(each)}"
        changes.append(", ".join(filter(None, (words, carriers))))
    return (", and " if has_carriers else " and ").join(changes)


def _listed(names: Sequence[str], named: Named, most: int = _MAX_NAMED) -> str:
    """Join a few names, and count what is left: ``a, b and 3 more``."""
    shown = [*map(named, names[:most]), *([f"{len(names) - most} more"] if len(names) > most else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
