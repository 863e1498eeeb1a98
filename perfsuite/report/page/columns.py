"""The columns of the tables of cases: which there are, and what each shows of a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from perfsuite.records.judgement import Judgement
from perfsuite.report.page.other_runs import OtherRun
from perfsuite.report.page.words import old_word
from perfsuite.report.token_rates import tokens_per_s
from perfsuite.units import format_ns, format_ratio, format_tokens_per_s

#: Times of more other runs than this are in the details alone.
_MAX_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A figure as it is shown, and what it is sorted by; None where there is none."""

    text: str
    #: To nine digits, which tell any two figures apart.
    order: float | None
    #: What stands beside it in small, such as its interval.
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of figures."""

    title: str
    #: A word for the style sheet.
    name: str
    cell: Callable[[Judgement], Cell]


def columns_for(judgements: Sequence[Judgement], others: Sequence[OtherRun]) -> tuple[Column, ...]:
    """Return the columns in which at least one of the cases has a figure."""
    candidates = (*_columns(_old_title(judgements)), *(_run_column(other) for other in others[:_MAX_RUNS]))
    return tuple(each for each in candidates if any(each.cell(case).order is not None for case in judgements))


def _old_title(judgements: Sequence[Judgement]) -> str:
    """Call the times before by their name where all cases have the same, else by what they have in common."""
    titles = {old_word(each) for each in judgements if each.baseline_ns is not None}
    return titles.pop() if len(titles) == 1 else "Before"


def _columns(old_title: str) -> tuple[Column, ...]:
    return (
        Column(title="Measured", name="measured", cell=lambda case: _time(case.measured_ns)),
        Column(title="Tokens/s", name="speed", cell=_speed),
        Column(title="Expected", name="expected", cell=_expected),
        Column(title="Floor", name="floor", cell=lambda case: _time(case.floor_ns)),
        Column(title=old_title, name="old", cell=lambda case: _time(case.baseline_ns)),
        Column(title="Change", name="change", cell=_change),
    )


def _run_column(other: OtherRun) -> Column:
    def cell(case: Judgement) -> Cell:
        there = other.cases.get(case.case_id)
        return _time(there.measured_ns if there else None)

    return Column(title=f"{other.label[:1].upper()}{other.label[1:]}", name="other", cell=cell)


def _time(time_ns: float | None) -> Cell:
    return Cell(text=format_ns(time_ns), order=time_ns)


def _speed(case: Judgement) -> Cell:
    rate = tokens_per_s(case)
    return Cell(text=format_tokens_per_s(rate), order=None if rate is None else float(f"{rate:.9g}"))


def _expected(case: Judgement) -> Cell:
    """Show the forecast, beside it its interval."""
    if case.lower_ns is None or case.upper_ns is None:
        return _time(case.expected_ns)
    interval = f"{format_ns(case.lower_ns)} to {format_ns(case.upper_ns)}"
    return Cell(text=format_ns(case.expected_ns), order=case.expected_ns, note=interval)


def _change(case: Judgement) -> Cell:
    ratio = case.change_ratio
    return Cell(text=format_ratio(ratio), order=None if ratio is None else float(f"{ratio:.9g}"))
