"""The tables of a run's cases on the terminal: by kind, as many rows as are read."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from perfsuite.records.outcome import ORDER_OF_WEIGHT, Judgement, Outcome
from perfsuite.report.run_writer import tokens_per_s
from perfsuite.report.verdict_words import change_notes, outcome_words
from perfsuite.report.visible import visible
from perfsuite.report.words import kind_place, kind_title
from perfsuite.units import format_change, format_ns, format_tokens_per_s

_STYLES = {
    Outcome.PASS: "green",
    Outcome.IMPROVED: "bold green",
    Outcome.NEW: "cyan",
    Outcome.REGRESSED: "bold red",
    Outcome.SLOW: "bold red",
    Outcome.IMPOSSIBLE: "bold red",
}

#: With more cases than this only those are shown that somebody must look at.
MAX_ROWS = 60

#: These are shown with their phase only where not all are.
_FOLDED = (Outcome.NEW, Outcome.PASS)

#: A line is as long as its text where no terminal folds it.
_UNLIMITED = 10_000
_LEAST_WIDTH = 60

_ROUGH = "~"

_FIGURES: dict[str, Callable[[Judgement], str]] = {
    "measured": lambda each: _rough(each, format_ns(each.measured_ns)),
    "tokens/s": lambda each: _rough(each, format_tokens_per_s(tokens_per_s(each))),
    "expected": lambda each: format_ns(each.expected_ns),
    "baseline": lambda each: format_ns(each.baseline_ns),
    "change": lambda each: "-" if _is_rough(each) else format_change(each.change_ratio),
}

#: What a terminal of fewer characters than this does without.
_SPARED, _WIDE = "expected", 100


def summary_text(judgements: Sequence[Judgement], *, width: int | None, is_color: bool, shows_all: bool = False) -> str:
    """Render the tables of all kinds for a terminal of so many characters, or for lines of any length.

    With `shows_all` each case has a row, however many there are.
    """
    out = io.StringIO()
    columns = _UNLIMITED if width is None else max(width, _LEAST_WIDTH)
    console = Console(
        file=out, width=columns, force_terminal=is_color, no_color=not is_color, highlight=False, legacy_windows=False
    )
    shown = judgements if shows_all else _read(judgements)
    for kind in sorted({judgement.kind for judgement in judgements}, key=kind_place):
        every = [judgement for judgement in judgements if judgement.kind == kind]
        rows = [judgement for judgement in shown if judgement.kind == kind]
        for part in _block(kind, every, rows, columns):
            console.print(part)
    notes = [*change_notes(each for each in shown if not _is_rough(each))]
    if any(map(_is_rough, shown)):
        notes.append(f"{_ROUGH} rough: the median of what was measured, which is invalid; nothing is judged by it")
    for note in notes:
        console.print(Text(note, style="dim"))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _is_rough(judgement: Judgement) -> bool:
    """Whether the case has figures that nothing is judged by."""
    return judgement.outcome is Outcome.INVALID and judgement.measured_ns is not None


def _rough(judgement: Judgement, figure: str) -> str:
    return f"{_ROUGH}{figure}" if _is_rough(judgement) and figure != "-" else figure


def _read(judgements: Sequence[Judgement]) -> Sequence[Judgement]:
    """Leave out what nobody must look at, and then what weighs least, so that few enough are left."""
    if len(judgements) <= MAX_ROWS:
        return judgements
    kept = [each for each in judgements if each.outcome not in _FOLDED or each.kind == "phase"]
    kept.sort(key=lambda each: (each.kind != "phase", ORDER_OF_WEIGHT.index(each.outcome), -(each.lost_ns or 0)))
    chosen = {each.case_id for each in kept[:MAX_ROWS]}
    return [each for each in judgements if each.case_id in chosen]


def _block(kind: str, every: Sequence[Judgement], rows: Sequence[Judgement], width: int) -> Iterator[Table | Text]:
    prefix = _common_prefix([judgement.case_id for judgement in every])
    shared = prefix.split("/", 1)[1].rstrip("/")
    yield Text(visible(f"{kind_title(kind)} {shared}").rstrip(), style="italic", no_wrap=True, overflow="ignore")
    if rows:
        yield _table(rows, prefix, width)
    if others := Counter(each.outcome for each in every) - Counter(each.outcome for each in rows):
        counts = ", ".join(f"{others[outcome]} {outcome.value}" for outcome in Outcome if others[outcome])
        yield Text(f"{'and ' if rows else ''}{counts} (-v shows them)", style="dim")


def _table(rows: Sequence[Judgement], prefix: str, width: int) -> Table:
    figures = [
        name
        for name, text in _FIGURES.items()
        if (name == "measured" or any(text(row) != "-" for row in rows)) and (width >= _WIDE or name != _SPARED)
    ]
    table = Table(box=None, pad_edge=False)
    table.add_column("case", overflow="fold")
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for judgement in rows:
        case = Text(visible(judgement.case_id[len(prefix) :]))
        cells = (*(_FIGURES[each](judgement) for each in figures), outcome_words(judgement, judgement.outcome.value))
        table.add_row(case, *cells, style=_STYLES.get(judgement.outcome, "yellow"))
    return table


def _common_prefix(case_ids: Sequence[str]) -> str:
    split = [case_id.split("/") for case_id in case_ids]
    shared = 0
    while shared < min(len(parts) for parts in split) - 1 and len({parts[shared] for parts in split}) == 1:
        shared += 1
    return "".join(f"{part}/" for part in split[0][: max(1, shared)])
