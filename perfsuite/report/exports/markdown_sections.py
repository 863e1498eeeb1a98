"""What Markdown tells of a run, as tables in the order of their weight: what fails, then what else there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from perfsuite.records.attribution import Attribution
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.report.engine_words import engine_words
from perfsuite.report.exports.markdown_text import code
from perfsuite.report.run_file import RunFile
from perfsuite.report.same_again import command_again
from perfsuite.report.token_rates import timed
from perfsuite.report.verdict_words import in_order_of_weight, interval_words
from perfsuite.units import format_change, format_count, format_limit, format_ns, format_signed_ns

Row: TypeAlias = tuple[str, ...]

#: Of a phase's carriers, so many are shown.
_MAX_CARRIERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table; its cells are Markdown."""

    title: str
    header: Row
    rows: tuple[Row, ...]
    is_folded: bool = True


def sections(run: RunFile) -> tuple[Section, ...]:
    """Return the tables of a run; those without rows are left out."""
    made = (
        _failing(run),
        _changed(run, Outcome.IMPROVED, "improved"),
        _changed(run, Outcome.INCONCLUSIVE, "undecided"),
        _unjudged(run),
        _listed(run, Outcome.NEW, "without a baseline", ("case", "now", "forecast"), _new_row),
        _listed(run, Outcome.PASS, "passed", ("case", "now", "before", "forecast", "change", "at"), _passed_row),
        Section(title="Machine and command", header=("what", "is"), rows=tuple(_machine_rows(run))),
    )
    return tuple(section for section in made if section.rows)


def _failing(run: RunFile) -> Section:
    failed = in_order_of_weight((each for each in run.judgements if each.outcome.fails), run.attribution)
    return Section(
        title=_title(len(failed), "failed"),
        header=("case", "outcome", "now", "before", "change", "interval", "carried by, or why"),
        rows=tuple(_failed_row(each, run.attribution) for each in failed),
        is_folded=False,
    )


def _failed_row(judgement: Judgement, attribution: Attribution) -> Row:
    case, *figures = _changed_row(judgement)
    if judgement.outcome is not Outcome.REGRESSED:
        return case, judgement.outcome.value, *figures, code(judgement.reason)
    return case, judgement.outcome.value, *figures, _carriers(judgement, attribution)


def _carriers(judgement: Judgement, attribution: Attribution) -> str:
    if attribution.uniform_shift is not None:
        return "everything moved alike"
    carriers = [
        carrier for tree in attribution.phases if tree.case_id == judgement.case_id for carrier in tree.carriers
    ]
    named = [
        f"{'' if each.is_significant else 'perhaps '}{code(each.role)} {format_signed_ns(each.lost_ns)} "
        f"({each.share_ratio * 100.0:.0f} %)"
        for each in carriers[:_MAX_CARRIERS]
    ]
    more = len(carriers) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])]) or "-"


def _changed(run: RunFile, outcome: Outcome, words: str) -> Section:
    found = in_order_of_weight((each for each in run.judgements if each.outcome is outcome), run.attribution)
    return Section(
        title=_title(len(found), words),
        header=("case", "now", "before", "change", "interval"),
        rows=tuple(map(_changed_row, found)),
    )


def _changed_row(judgement: Judgement) -> Row:
    return (
        code(judgement.case_id),
        timed(judgement, judgement.measured_ns),
        timed(judgement, judgement.baseline_ns),
        format_change(judgement.change_ratio),
        interval_words(judgement),
    )


def _unjudged(run: RunFile) -> Section:
    """Count the reasons for which cases were not judged, which many share."""
    kinds = (Outcome.INVALID, Outcome.INCOMPARABLE)
    reasons = Counter((each.outcome, each.reason) for each in run.judgements if each.outcome in kinds)
    return Section(
        title=_title(reasons.total(), "not judged"),
        header=("outcome", "cases", "reason"),
        rows=tuple((outcome.value, str(count), code(reason)) for (outcome, reason), count in reasons.most_common()),
    )


def _listed(
    run: RunFile, outcome: Outcome, words: str, header: Sequence[str], row: Callable[[Judgement], Row]
) -> Section:
    found = [each for each in run.judgements if each.outcome is outcome]
    return Section(title=_title(len(found), words), header=tuple(header), rows=tuple(map(row, found)))


def _new_row(judgement: Judgement) -> Row:
    return code(judgement.case_id), timed(judgement, judgement.measured_ns), format_ns(judgement.expected_ns)


def _passed_row(judgement: Judgement) -> Row:
    return (
        code(judgement.case_id),
        timed(judgement, judgement.measured_ns),
        timed(judgement, judgement.baseline_ns),
        format_ns(judgement.expected_ns),
        format_change(judgement.change_ratio),
        "-" if judgement.resolution_ratio is None else format_limit(judgement.resolution_ratio),
    )


def _machine_rows(run: RunFile) -> Iterator[Row]:
    for group, subject in run.subjects.items():
        yield code(group), code(engine_words({group: subject}))
    for group, fields in run.fingerprints.items():
        for name, value in fields.items():
            yield code(f"{group}: {name}"), code(value)
    for phase, joules in run.joules_per_token.items():
        if joules is not None:
            yield f"energy of a token, {code(phase)}", f"{joules:.3g} J"
    if run.origin.run_id:
        yield "run", code(run.origin.run_id)
    if run.origin.arguments:
        yield "again", code(command_again(run.origin), max_characters=None)  # half a command does something else
    yield "perfsuite", code(run.suite_version)


def _title(count: int, words: str) -> str:
    return f"{format_count(count, 'case')} {words}"
