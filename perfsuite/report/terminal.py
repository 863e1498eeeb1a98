"""The last screen of a run: what came out, what it rests on, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from perfsuite.records.outcome import (
    NO_ATTRIBUTION,
    Attribution,
    Carrier,
    Judgement,
    Outcome,
    PhaseAttribution,
    UniformShift,
)
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin
from perfsuite.report.next_steps import EndedRun, next_steps
from perfsuite.report.verdict_words import counts_words, resolution_line, verdict_sentence
from perfsuite.report.visible import visible
from perfsuite.units import format_count, format_signed_ns

#: More lines than this are not read.
MAX_LINES = 15


def failure_lines(failed: Sequence[Judgement], attribution: Attribution) -> tuple[str, ...]:
    """Return a line for each case that fails or looks slower; what a phase's line of carriers names has none.

    Where everything moved alike, no carriers are shown: each is as slow as the next.
    """
    trees = {} if attribution.uniform_shift else {each.case_id: each for each in attribution.phases}
    shown = [trees[each.case_id] for each in failed if each.case_id in trees]
    carried = {carrier.case_id for tree in shown for carrier in tree.carriers}
    lines: list[str] = []
    n_left_out = 0
    for each in sorted(failed, key=_place):
        if each.case_id not in carried:
            block = [f"  {each.outcome.value}: {visible(each.case_id)}: {visible(each.reason)}"]
            if tree := trees.get(each.case_id):
                block.append(f"      {', '.join(_branches(tree))}")
            if n_left_out or len(lines) + len(block) > MAX_LINES:
                n_left_out += 1
            else:
                lines += block
    return (*lines, *([f"  ... and {n_left_out} more, in run.json"] if n_left_out else []))


def shift_line(shift: UniformShift) -> str:
    """Say that everything moved alike, and what that points to."""
    direction = "slower" if shift.ratio > 1.0 else "faster"
    return (
        f"  everything is {abs(shift.ratio - 1.0) * 100.0:.1f} % {direction} ({shift.n_cases} cases): "
        "a difference of frequency, memory, threads or build rather than of an operator"
    )


def _place(judgement: Judgement) -> tuple[bool, int, int]:
    """Phases in their order; then what measures wrongly, what got slower by the time lost, what is too slow at all."""
    if judgement.kind == "phase":
        return False, 0, 0
    return True, list(Outcome).index(judgement.outcome), -(judgement.lost_ns or 0)


def _branches(tree: PhaseAttribution) -> Iterator[str]:
    if not tree.carriers:
        yield "no few operators carry it"
    else:
        yield from map(_branch, [each for each in tree.carriers if each.is_significant])
        if unsure := [each for each in tree.carriers if not each.is_significant]:
            none = "no other" if tree.carriers[0].only_side else "none"
            yield f"{none} changed for sure by itself; mostly {', '.join(map(_branch, unsure))}"
    share_ratio = tree.unexplained_ns / tree.lost_ns if tree.lost_ns else None
    yield f"unexplained {_lost(tree.unexplained_ns, share_ratio)}"


def _branch(carrier: Carrier) -> str:
    return f"{visible(carrier.name)} {_lost(carrier.lost_ns, carrier.share_ratio)}"


def _lost(lost_ns: int, share_ratio: float | None) -> str:
    share = "" if share_ratio is None else f" ({share_ratio * 100.0:.0f} %)"
    return f"{format_signed_ns(lost_ns)}{share}"


_MAX_REASONS = 5


def next_step(
    judgements: Iterable[Judgement],
    run_path: str | None,
    attribution: Attribution = NO_ATTRIBUTION,
    report_path: str | None = None,
    *,
    origin: RunOrigin = NO_ORIGIN,
    is_interrupted: bool = False,
    is_recording: bool = False,
) -> tuple[str, ...]:
    """Return the closing lines: what came out, why, and what to do next.

    The paths are those of the run's record and its page, None where they are not; from the origin, which is the command
    that made the run, the next ones are made.
    """
    run = EndedRun(
        judgements=tuple(judgements),
        run_path=run_path,
        report_path=report_path,
        origin=origin,
        attribution=attribution,
        is_recording=is_recording,
        is_interrupted=is_interrupted,
    )
    verdict = visible(verdict_sentence(run))
    files = ", ".join(visible(path) for path in (run_path, report_path) if path) or "run.json was not written"
    if not run.judgements:
        return (f"perfsuite: {verdict}; {files}",)
    return (
        f"perfsuite: {verdict}",
        f"  {counts_words(run.judgements)}; {files}",
        *_reasons(run.judgements, attribution),
        *filter(None, (resolution_line(run.judgements),)),
        *(next_steps(run) or (("  nothing is left to do",) if run_path else ())),
    )


def _reasons(judgements: Sequence[Judgement], attribution: Attribution) -> Iterator[str]:
    has_changed = any(each.outcome in (Outcome.REGRESSED, Outcome.IMPROVED) for each in judgements)
    if attribution.uniform_shift and has_changed:
        yield shift_line(attribution.uniform_shift)
    yield from failure_lines([each for each in judgements if each.outcome.alarms], attribution)
    alone = sorted((each for each in judgements if each.only_side), key=lambda each: -abs(each.lost_ns or 0))
    if alone:
        more = [f"{len(alone) - _MAX_REASONS} more"] if len(alone) > _MAX_REASONS else []
        yield f"  on one side alone: {', '.join([*map(_alone, alone[:_MAX_REASONS]), *more])}"
    for outcome in (Outcome.INVALID, Outcome.INCOMPARABLE):
        reasons = Counter(each.reason for each in judgements if each.outcome is outcome and not each.only_side)
        for reason, count in reasons.most_common(_MAX_REASONS):
            yield f"  {outcome.value} ({format_count(count, 'case')}): {visible(reason)}"


def _alone(judgement: Judgement) -> str:
    word, name = "new" if judgement.only_side == "new" else "gone", "/".join(judgement.case_id.split("/")[-2:])
    return f"{word}: {visible(name)} {_lost(judgement.lost_ns or 0, None)}"
