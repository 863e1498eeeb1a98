"""The last screen of a run: what came out, what it rests on, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin
from perfsuite.report.ended_run import EndedRun
from perfsuite.report.failures import failure_lines, shift_line
from perfsuite.report.next_steps import next_steps
from perfsuite.report.resolution_words import resolution_line
from perfsuite.report.summary_table import summary_text
from perfsuite.report.terminal_text import terminal_text
from perfsuite.report.verdict_words import counts_words, verdict_sentence
from perfsuite.units import format_count

__all__ = ["next_step", "summary_text"]

#: Reasons of what could not be decided that are told.
_MAX_REASONS = 3


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
    verdict = verdict_sentence(run, named=terminal_text)
    files = ", ".join(terminal_text(path) for path in (run_path, report_path) if path) or "run.json was not written"
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
    """Yield what failed with what carries it, and why the others could not be decided."""
    has_changed = any(each.outcome in (Outcome.REGRESSED, Outcome.IMPROVED) for each in judgements)
    if attribution.uniform_shift and has_changed:
        yield shift_line(attribution.uniform_shift)
    yield from failure_lines([each for each in judgements if each.outcome.fails], attribution)
    for outcome in (Outcome.INVALID, Outcome.INCOMPARABLE):
        reasons = Counter(each.reason for each in judgements if each.outcome is outcome)
        for reason, count in reasons.most_common(_MAX_REASONS):
            yield f"  {outcome.value} ({format_count(count, 'case')}): {terminal_text(reason)}"
