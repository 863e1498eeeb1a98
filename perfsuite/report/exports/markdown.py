"""A comment for a pull request: the verdict, what regressed, and the rest folded away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from perfsuite.records.outcome import Attribution, Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.report.exports import Export
from perfsuite.report.exports.markdown_text import code, table
from perfsuite.report.reproduce import command_again
from perfsuite.report.run_writer import timed
from perfsuite.report.verdict_words import (
    Tone,
    change_notes,
    in_order_of_weight,
    interval_words,
    verdict_sentence,
    verdict_tone,
)
from perfsuite.report.words import commit_title, engine_words
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
    changed = {**_CASE, **_TIMES, "interval": interval_words}
    failing = {
        **_CASE,
        "outcome": lambda each: each.outcome.value,
        **_TIMES,
        "interval": interval_words,
        "carried by, or why": lambda each: _carriers(each, run.attribution),
    }
    forecast: _Columns = {"forecast": lambda each: format_ns(each.expected_ns)}
    passed = {
        **{name: column for name, column in {**_CASE, **_TIMES}.items() if name != "change"},
        **forecast,
        "change": _TIMES["change"],
        "at": lambda each: "-" if each.resolution_ratio is None else format_limit(each.resolution_ratio),
    }

    def of(words: str, columns: _Columns, *outcomes: Outcome, by_weight: bool = True, folded: bool = True) -> Section:
        found: Sequence[Judgement] = [each for each in run.judgements if each.outcome in outcomes]
        found = in_order_of_weight(found, run.attribution) if by_weight else found
        rows = tuple(tuple(cell(each) for cell in columns.values()) for each in found)
        return Section(
            title=f"{format_count(len(rows), 'case')} {words}", header=tuple(columns), rows=rows, is_folded=folded
        )

    reasons = Counter((each.outcome, each.reason) for each in run.judgements if each.outcome in _UNJUDGED)
    made = (
        of("failed", failing, *(each for each in Outcome if each.fails), folded=False),
        of("suspect: looks slower, not proven", changed, Outcome.SUSPECT),
        of("improved", changed, Outcome.IMPROVED),
        of("undecided", changed, Outcome.INCONCLUSIVE),
        Section(
            title=f"{format_count(reasons.total(), 'case')} not judged",
            header=("outcome", "cases", "reason"),
            rows=tuple((outcome.value, str(count), code(reason)) for (outcome, reason), count in reasons.most_common()),
        ),
        of("without a baseline", {**_CASE, "now": _TIMES["now"], **forecast}, Outcome.NEW, by_weight=False),
        of("passed", passed, Outcome.PASS, by_weight=False),
        Section(title="Machine and command", header=("what", "is"), rows=tuple(_machine_rows(run))),
    )
    return tuple(section for section in made if section.rows)


#: By heading: what a row has of a case, as Markdown.
_Columns: TypeAlias = Mapping[str, Callable[[Judgement], str]]

_CASE: _Columns = {"case": lambda each: code(each.case_id)}
_TIMES: _Columns = {
    "now": lambda each: timed(each, each.measured_ns),
    "before": lambda each: timed(each, each.baseline_ns),
    "change": lambda each: format_change(each.change_ratio),
}
_UNJUDGED = (Outcome.INVALID, Outcome.INCOMPARABLE)


def _carriers(judgement: Judgement, attribution: Attribution) -> str:
    """Name what carries a regression; of what fails otherwise say why."""
    if judgement.outcome is not Outcome.REGRESSED:
        return code(judgement.reason)
    if attribution.uniform_shift is not None:
        return "everything moved alike"
    carriers = [each for tree in attribution.phases if tree.case_id == judgement.case_id for each in tree.carriers]
    named = [
        f"{'' if each.is_significant else 'perhaps '}{code(each.name)} {format_signed_ns(each.lost_ns)} "
        f"({each.share_ratio * 100.0:.0f} %)"
        for each in carriers[:_MAX_CARRIERS]
    ]
    more = len(carriers) - len(named)
    return ", ".join([*named, *([f"{more} more"] if more else [])]) or "-"


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


#: How long a text is as whoever limits it counts.
Measure: TypeAlias = Callable[[str], int]

#: What one run has at least, so that its verdict always has room; runs that would get less are only counted.
_LEAST_ROOM = 13_000
#: Of a name in the verdict and in the line below it, where a sign may take fourteen characters.
_MAX_NAME_CHARACTERS = 40
#: Of what was measured, which several names make up.
_MAX_ENGINE_CHARACTERS = 120
#: Kept free for the line that says what was left out.
_ROOM_TO_TELL = 200

_MARKS = {Tone.BAD: "❌", Tone.UNSURE: "⚠️", Tone.GOOD: "✅"}


def page(runs: Sequence[RunFile], *, limit: int, measure: Measure = len) -> str:
    """Return the runs one after the other, within the limit."""
    return _page(runs, len(runs), limit=limit, measure=measure)


def _page(runs: Iterable[RunFile], n_runs: int, *, limit: int, measure: Measure) -> str:
    """Return the runs, of which each is asked for when its turn has come."""
    n_shown = max(1, min(n_runs, (limit - _ROOM_TO_TELL) // _LEAST_ROOM))
    room = (limit - _ROOM_TO_TELL) // n_shown
    shown = [_run_text(run, room, measure) for run in islice(runs, n_shown)]
    n_left_out = n_runs - n_shown
    told = [f"\n_Left out to save room: {format_count(n_left_out, 'run')}._\n"] if n_left_out else []
    return "\n".join([*shown, *told])


def _run_text(run: RunFile, room: int, measure: Measure) -> str:
    text, n_left_out = _lead(run), 0
    notes = "".join(f"\n_{note}._\n" for note in change_notes(run.judgements))
    for section in sections(run):
        block, n_shown = _fitted(section, room - _ROOM_TO_TELL - measure(text + notes), measure)
        text += block
        n_left_out += len(section.rows) - n_shown
    text += notes
    if n_left_out:
        rows = format_count(n_left_out, "row")
        text += f"\n_Left out to save room: {rows} of the tables; the run's `run.json` and report have all._\n"
    return text


def _lead(run: RunFile) -> str:
    sentence = verdict_sentence(run, named=_name)
    return f"{_MARKS[verdict_tone(run)]} **perfsuite**: {sentence}.\n\n{', '.join(_circumstances(run))}.\n"


def _name(text: str) -> str:
    return code(text, max_characters=_MAX_NAME_CHARACTERS)


def _circumstances(run: RunFile) -> Iterator[str]:
    yield f"{_name(run.workload)} on {_name(run.device)}"
    if run.subjects:
        yield code(engine_words(run.subjects), max_characters=_MAX_ENGINE_CHARACTERS)
    commit = run.origin.commit
    if commit is not None:
        branch = "" if commit.branch is None else f" of {_name(commit.branch)}"
        changes = " with changes" if commit.is_dirty else ""
        yield f"{commit_title(run.origin).lower()} {_name(commit.sha[:12])}{branch}{changes}"
    if run.against is not None:
        yield f"in pairs against {_name(run.against)}"
    yield f"started {_name(run.started_at)}"


def _fitted(section: Section, room: int, measure: Measure) -> tuple[str, int]:
    """Return a table with the most rows for which there is room, and their number; nothing where there is for none."""
    least, most = 0, len(section.rows)
    while least < most:
        middle = (least + most + 1) // 2
        if measure(_block(section, section.rows[:middle])) <= room:
            least = middle
        else:
            most = middle - 1
    return (_block(section, section.rows[:least]) if least else ""), least


def _block(section: Section, rows: Sequence[Row]) -> str:
    told = table(section.header, rows)
    if not section.is_folded:
        return f"\n{told}"
    return f"\n<details><summary>{section.title}</summary>\n\n{told}\n</details>\n"


#: Not shown; by it, whoever posts comments finds the one to replace.
MARKER = "<!-- perfsuite: comment -->"

#: Characters that GitHub takes in a comment. *Source*: its answer to more: "Body is too long (maximum is 65536
#: characters)".
LIMIT_CHARACTERS = 65_536


def comment_text(runs: Sequence[RunFile]) -> str:
    """Return the comment, of fewer than 65,536 characters however many cases there are."""
    room = LIMIT_CHARACTERS - len(MARKER) - 2
    return f"{MARKER}\n{page(runs, limit=room, measure=_utf16_units)}"


def _utf16_units(text: str) -> int:
    """Count as JavaScript does, which is never less than what other ways of counting characters give."""
    return len(text) + sum(character > "\uffff" for character in text)


#: What a step may write. *Source*: GitHub Docs, "Workflow commands for GitHub Actions", "Step isolation and limits".
LIMIT_BYTES = 1024 * 1024


def summary_text(runs: Sequence[RunFile]) -> str:
    """Return the summary, at most 1 MiB of UTF-8 however many cases there are."""
    return summary_of(runs, len(runs), limit=LIMIT_BYTES)


def summary_of(runs: Iterable[RunFile], n_runs: int, *, limit: int) -> str:
    """Return the summary of runs of which no more than one is in memory, within so many bytes of UTF-8."""
    return _page(runs, n_runs, limit=limit, measure=lambda text: len(text.encode()))


_COMMENT = "a comment for a pull request, under 65,536 characters"
EXPORTS = (
    Export(name="markdown", summary=_COMMENT, text=comment_text, place=5),
    Export(name="github", summary='Markdown for >> "$GITHUB_STEP_SUMMARY", at most 1 MiB', text=summary_text, place=3),
)
