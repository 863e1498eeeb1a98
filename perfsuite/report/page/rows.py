"""All cases, as a table for each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perfsuite.records.observation import CaseWork
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.charts.axes import Axis
from perfsuite.report.page.charts.change import change_drawing
from perfsuite.report.page.charts.samples import samples_drawing
from perfsuite.report.page.page_run import PageRun, run_labels
from perfsuite.report.page.words import expected_interval, expected_words, interval_text, old_word, spread_words
from perfsuite.report.reproduce import Reproduction, reproductions
from perfsuite.report.run_writer import timed, tokens_per_s
from perfsuite.report.words import capitalized, kind_place, kind_title
from perfsuite.units import (
    NS_PER_S,
    format_bytes,
    format_bytes_per_s,
    format_count,
    format_flops_per_s,
    format_limit,
    format_ns,
    format_ratio,
    format_tokens_per_s,
)

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
    #: The figure as a picture, which stands above it.
    drawing: Markup | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures."""

    title: str
    #: A word for the style sheet.
    name: str
    cell: Callable[[Judgement], Cell]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One case in its table."""

    judgement: Judgement
    #: One for each of the table's columns.
    cells: tuple[Cell, ...]
    facts: Mapping[str, str]
    #: Of each other run its label, what it measured, this run over that, and the outcome; None of a case not in it.
    others: tuple[tuple[str, str, str, Outcome | None], ...]
    reproduction: Reproduction
    #: Where its samples lie; None where there are none.
    samples: Markup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """All cases of a kind."""

    kind: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[CaseRow, ...]

    @property
    def tells_reasons(self) -> bool:
        """Whether the reasons have a column, because there is no figure to show."""
        return not self.columns


#: By its label, the cases of a run by their ids.
_Others = Mapping[str, Mapping[str, Judgement]]


def case_tables(runs: Sequence[PageRun], axis: Axis | None) -> tuple[CaseTable, ...]:
    """Return the tables of the first run, with changes on this axis, and cases in the order of the run."""
    run, works = runs[0].run, {work.case_id: work for work in runs[0].observation.works}
    labels = run_labels(len(runs))
    others = {
        label: {case.case_id: case for case in other.run.judgements}
        for label, other in zip(labels[1:], runs[1:], strict=True)
    }
    by_kind: dict[str, list[tuple[Judgement, Reproduction]]] = defaultdict(list)
    for judgement, reproduction in zip(run.judgements, reproductions(run), strict=True):
        by_kind[judgement.kind].append((judgement, reproduction))
    tables = []
    for kind in sorted(by_kind, key=kind_place):
        columns = columns_for([judgement for judgement, _ in by_kind[kind]], others, axis)
        rows = tuple(
            CaseRow(
                judgement=case,
                cells=tuple(column.cell(case) for column in columns),
                facts=case_facts(case, works.get(case.case_id)),
                others=tuple(_other(case, label, cases.get(case.case_id)) for label, cases in others.items()),
                reproduction=reproduction,
                samples=samples_drawing(case),
            )
            for case, reproduction in by_kind[kind]
        )
        tables.append(CaseTable(kind=kind, title=kind_title(kind), columns=columns, rows=rows))
    return tuple(tables)


def columns_for(judgements: Sequence[Judgement], others: _Others, axis: Axis | None = None) -> tuple[Column, ...]:
    """Return the columns in which at least one of the cases has a figure; changes are drawn where there is an axis."""
    old_titles = {old_word(each) for each in judgements if each.baseline_ns is not None}
    candidates = (
        Column("Measured", "measured", lambda case: _time(case.measured_ns)),
        Column("Tokens/s", "speed", _speed),
        Column("Expected", "expected", lambda case: _time(case.expected_ns, note=expected_interval(case))),
        Column("Floor", "floor", lambda case: _time(case.floor_ns)),
        Column(old_titles.pop() if len(old_titles) == 1 else "Before", "old", lambda case: _time(case.baseline_ns)),
        Column("Change", "change", lambda case: _change(case, axis)),
        *(_run_column(label, cases) for label, cases in list(others.items())[:_MAX_RUNS]),
    )
    return tuple(each for each in candidates if any(each.cell(case).order is not None for case in judgements))


def _run_column(label: str, cases: Mapping[str, Judgement]) -> Column:
    def cell(case: Judgement) -> Cell:
        return _time(cases[case.case_id].measured_ns if case.case_id in cases else None)

    return Column(capitalized(label), "other", cell)


def _time(time_ns: float | None, note: str = "") -> Cell:
    return Cell(text=format_ns(time_ns), order=time_ns, note=note)


def _speed(case: Judgement) -> Cell:
    rate = tokens_per_s(case)
    return Cell(text=format_tokens_per_s(rate), order=None if rate is None else float(f"{rate:.9g}"))


def _change(case: Judgement, axis: Axis | None) -> Cell:
    if case.change_ratio is None:
        return Cell(text="-", order=None)
    drawing = change_drawing(case, axis) if axis else None
    return Cell(text=format_ratio(case.change_ratio), order=float(f"{case.change_ratio:.9g}"), drawing=drawing)


def case_facts(judgement: Judgement, work: CaseWork | None) -> dict[str, str]:
    """Return the figures of a case by name, without those that it does not have."""
    facts = (*_times(judgement), *(_work(judgement, work) if work else ()))
    return {name: value for name, value in facts if value != "-"}


def _times(case: Judgement) -> Iterator[tuple[str, str]]:
    yield "Measured", timed(case, case.measured_ns)
    yield "Samples", spread_words(case)
    yield "Expected", expected_words(case)
    yield "Floor", format_ns(case.floor_ns)
    yield "Limit", format_ns(case.limit_ns)
    yield old_word(case), timed(case, case.baseline_ns)
    yield "Change", format_ratio(case.change_ratio)
    yield "Interval", interval_text(case)
    if case.resolution_ratio is not None:
        yield "Resolves", format_limit(case.resolution_ratio)
    if case.n_pairs is not None:
        yield "Pairs", str(case.n_pairs)
        if case.n_more_pairs is not None:
            yield "Would decide", f"about {format_count(case.n_more_pairs, 'more pair')}"
        yield "Detectable change", format_ratio(case.smallest_effect_ratio)


def _work(judgement: Judgement, work: CaseWork) -> Iterator[tuple[str, str]]:
    if work.moved_bytes:
        yield "Moves", format_bytes(work.moved_bytes)
    if work.flops and work.operational_intensity is not None:
        yield "Intensity", f"{work.operational_intensity:.3g} FLOP a byte"
    per_s = NS_PER_S / judgement.measured_ns if judgement.measured_ns else 0.0
    if per_s and work.flops:
        yield "Computes at", format_flops_per_s(work.flops * per_s)
    if per_s and work.moved_bytes:
        yield "Moves at", format_bytes_per_s(work.moved_bytes * per_s)


def _other(judgement: Judgement, label: str, there: Judgement | None) -> tuple[str, str, str, Outcome | None]:
    measured_ns = there.measured_ns if there else None
    ratio = judgement.measured_ns / measured_ns if judgement.measured_ns and measured_ns else None
    return label, format_ns(measured_ns), format_ratio(ratio), there.outcome if there else None


def scale_note(axis: Axis | None) -> tuple[str, ...]:
    """Say how to read the changes that are drawn; nothing where there is none."""
    if axis is None:
        return ()
    return (
        f"changes are drawn from {axis.low:+.0f} % to {axis.high:+.0f} %: the line is no change, the band the margin, "
        "the bar the interval; a ring has no interval, and an arrow lies beyond",
    )


def outcome_order(judgement: Judgement) -> int:
    """Sort what fails or looks slower before what was not decided, and that before what passed."""
    order = list(Outcome).index(judgement.outcome)
    return order if judgement.outcome.alarms else order + len(Outcome)
