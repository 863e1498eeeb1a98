"""All cases, as a table for each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from perfsuite.records.observation import CaseWork, Observation
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.axes import Axis
from perfsuite.report.page.charts.change import Change, change_axis
from perfsuite.report.page.charts.samples import samples_drawing
from perfsuite.report.page.page_run import OtherRun
from perfsuite.report.page.words import expected_words, interval_text, kind_place, kind_title, old_word, spread_words
from perfsuite.report.reproduce import Reproduction
from perfsuite.report.run_writer import timed, tokens_per_s
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherValue:
    """What another run measured of the same case."""

    label: str
    measured: str
    #: This run over that one.
    ratio: str
    #: None where the case is not in it.
    outcome: Outcome | None


def case_facts(judgement: Judgement, work: CaseWork | None) -> dict[str, str]:
    """Return the figures of a case by name, without those that it does not have."""
    facts = (*_times(judgement), *_pairs(judgement), *_work(judgement, work))
    return {name: value for name, value in facts if value != "-"}


def _times(judgement: Judgement) -> Iterator[tuple[str, str]]:
    yield "Measured", timed(judgement, judgement.measured_ns)
    yield "Samples", spread_words(judgement)
    yield "Expected", expected_words(judgement)
    yield "Floor", format_ns(judgement.floor_ns)
    yield "Limit", format_ns(judgement.limit_ns)
    yield old_word(judgement), timed(judgement, judgement.baseline_ns)
    yield "Change", format_ratio(judgement.change_ratio)


def _pairs(judgement: Judgement) -> Iterator[tuple[str, str]]:
    yield "Interval", interval_text(judgement)
    if judgement.resolution_ratio is not None:
        yield "Resolves", format_limit(judgement.resolution_ratio)
    if judgement.n_pairs is None:
        return
    yield "Pairs", str(judgement.n_pairs)
    if judgement.n_more_pairs is not None:
        yield "Would decide", f"about {format_count(judgement.n_more_pairs, 'more pair')}"
    yield "Detectable change", format_ratio(judgement.smallest_effect_ratio)


def _work(judgement: Judgement, work: CaseWork | None) -> Iterator[tuple[str, str]]:
    if work is None:
        return
    yield "Moves", format_bytes(work.moved_bytes) if work.moved_bytes else "-"
    if work.flops and work.operational_intensity is not None:
        yield "Intensity", f"{work.operational_intensity:.3g} FLOP a byte"
    if judgement.measured_ns:
        per_s = NS_PER_S / judgement.measured_ns
        yield "Computes at", format_flops_per_s(work.flops * per_s) if work.flops else "-"
        yield "Moves at", format_bytes_per_s(work.moved_bytes * per_s) if work.moved_bytes else "-"


def other_value(judgement: Judgement, other: OtherRun) -> OtherValue:
    """Return what another run measured of a case."""
    there = other.cases.get(judgement.case_id)
    measured_ns = there.measured_ns if there else None
    ratio = judgement.measured_ns / measured_ns if judgement.measured_ns and measured_ns else None
    return OtherValue(
        label=other.label,
        measured=format_ns(measured_ns),
        ratio=format_ratio(ratio),
        outcome=there.outcome if there else None,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of figures."""

    title: str
    #: A word for the style sheet.
    name: str
    cell: Callable[[Judgement], Cell]


def columns_for(
    judgements: Sequence[Judgement], others: Sequence[OtherRun], axis: Axis | None = None
) -> tuple[Column, ...]:
    """Return the columns in which at least one of the cases has a figure; changes are drawn where there is an axis."""
    candidates = (*_columns(_old_title(judgements), axis), *(_run_column(other) for other in others[:_MAX_RUNS]))
    return tuple(each for each in candidates if any(each.cell(case).order is not None for case in judgements))


def _old_title(judgements: Sequence[Judgement]) -> str:
    """Call the times before by their name where all cases have the same, else by what they have in common."""
    titles = {old_word(each) for each in judgements if each.baseline_ns is not None}
    return titles.pop() if len(titles) == 1 else "Before"


def _columns(old_title: str, axis: Axis | None) -> tuple[Column, ...]:
    return (
        Column(title="Measured", name="measured", cell=lambda case: _time(case.measured_ns)),
        Column(title="Tokens/s", name="speed", cell=_speed),
        Column(title="Expected", name="expected", cell=_expected),
        Column(title="Floor", name="floor", cell=lambda case: _time(case.floor_ns)),
        Column(title=old_title, name="old", cell=lambda case: _time(case.baseline_ns)),
        Column(title="Change", name="change", cell=partial(_change, axis=axis)),
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
    if case.lower_ns is None or case.upper_ns is None:
        return _time(case.expected_ns)
    interval = f"{format_ns(case.lower_ns)} to {format_ns(case.upper_ns)}"
    return Cell(text=format_ns(case.expected_ns), order=case.expected_ns, note=interval)


def _change(case: Judgement, axis: Axis | None) -> Cell:
    change = Change.of(case)
    if change is None:
        return Cell(text="-", order=None)
    drawing = change.drawing(axis) if axis else None
    return Cell(text=change.text, order=float(f"{change.ratio:.9g}"), drawing=drawing)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One case in its table."""

    judgement: Judgement
    #: One for each of the table's columns.
    cells: tuple[Cell, ...]
    facts: Mapping[str, str]
    others: tuple[OtherValue, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSources:
    """What the rows are made of, beside the run: by judgement in the run's order, or by case."""

    reproductions: Sequence[Reproduction]
    works: Mapping[str, CaseWork]
    others: Sequence[OtherRun]


def works_by_case(observation: Observation) -> dict[str, CaseWork]:
    """Return what each case computes and moves."""
    return {work.case_id: work for work in observation.works}


def case_tables(run: RunFile, sources: CaseSources, axis: Axis | None) -> tuple[CaseTable, ...]:
    """Return the tables in the order of the page, with changes on this axis, and cases in the order of the run."""
    by_kind: dict[str, list[int]] = defaultdict(list)
    for place, judgement in enumerate(run.judgements):
        by_kind[judgement.kind].append(place)
    return tuple(_table(kind, by_kind[kind], run, sources, axis) for kind in sorted(by_kind, key=kind_place))


def cases_axis(run: RunFile) -> Axis | None:
    """Return the one scale of all changes in the tables; None where there is none."""
    changes = [change for each in run.judgements if (change := Change.of(each))]
    return change_axis(changes) if changes else None


def scale_note(axis: Axis | None) -> tuple[str, ...]:
    """Say how to read the changes that are drawn; nothing where there is none."""
    if axis is None:
        return ()
    return (
        f"changes are drawn from {axis.low:+.0f} % to {axis.high:+.0f} %: the line is no change, the band the margin, "
        "the bar the interval; a ring has no interval, and an arrow lies beyond",
    )


def _table(kind: str, places: Sequence[int], run: RunFile, sources: CaseSources, axis: Axis | None) -> CaseTable:
    judgements = [run.judgements[place] for place in places]
    columns = columns_for(judgements, sources.others, axis)
    rows = tuple(_row(place, columns, run, sources) for place in places)
    return CaseTable(kind=kind, title=kind_title(kind), columns=columns, rows=rows)


def _row(place: int, columns: Sequence[Column], run: RunFile, sources: CaseSources) -> CaseRow:
    judgement = run.judgements[place]
    return CaseRow(
        judgement=judgement,
        cells=tuple(column.cell(judgement) for column in columns),
        facts=case_facts(judgement, sources.works.get(judgement.case_id)),
        others=tuple(other_value(judgement, each) for each in sources.others),
        reproduction=sources.reproductions[place],
        samples=samples_drawing(judgement),
    )


def outcome_order(judgement: Judgement) -> int:
    """Sort what fails or looks slower before what was not decided, and that before what passed."""
    order = list(Outcome).index(judgement.outcome)
    return order if judgement.outcome.alarms else order + len(Outcome)
