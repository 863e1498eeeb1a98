"""Runs as Markdown within a limit: the verdicts whole, of the tables what there is room for, and what was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from perfsuite.report.change_notes import change_notes
from perfsuite.report.engine_words import commit_title, engine_words
from perfsuite.report.exports.markdown_sections import Row, Section, sections
from perfsuite.report.exports.markdown_text import code, table
from perfsuite.report.run_file import RunFile
from perfsuite.report.verdict_words import Tone, verdict_sentence, verdict_tone
from perfsuite.units import format_count

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
    n_shown = max(1, min(len(runs), (limit - _ROOM_TO_TELL) // _LEAST_ROOM))
    room = (limit - _ROOM_TO_TELL) // n_shown
    shown = [_run_text(run, room, measure) for run in runs[:n_shown]]
    n_left_out = len(runs) - n_shown
    told = [f"\n_Left out for lack of room: {format_count(n_left_out, 'run')}._\n"] if n_left_out else []
    return "\n".join([*shown, *told])


def _run_text(run: RunFile, room: int, measure: Measure) -> str:
    """Return the verdict, then the tables with as many rows as there is room for."""
    text, n_left_out = _lead(run), 0
    notes = "".join(f"\n_{note}._\n" for note in change_notes(run.judgements))
    for section in sections(run):
        block, n_shown = _fitted(section, room - _ROOM_TO_TELL - measure(text + notes), measure)
        text += block
        n_left_out += len(section.rows) - n_shown
    text += notes
    if n_left_out:
        rows = format_count(n_left_out, "row")
        text += f"\n_Left out for lack of room: {rows} of the tables; the run's `run.json` and report have all._\n"
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
