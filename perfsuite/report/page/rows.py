"""All cases, as a table for each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfsuite.records.judgement import Judgement
from perfsuite.records.observation import CaseWork, Observation
from perfsuite.records.outcome import Outcome
from perfsuite.report.page.columns import Cell, Column, columns_for
from perfsuite.report.page.details import OtherValue, case_facts, other_value
from perfsuite.report.page.names import kind_place, kind_title
from perfsuite.report.page.other_runs import OtherRun
from perfsuite.report.reproduce import Reproduction
from perfsuite.report.run_file import RunFile


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One case in its table."""

    judgement: Judgement
    #: One for each of the table's columns.
    cells: tuple[Cell, ...]
    facts: Mapping[str, str]
    others: tuple[OtherValue, ...]
    reproduction: Reproduction
    #: Of the figure with the case's distribution; None where it has none.
    figure_key: str | None


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
    figure_keys: Sequence[str | None]
    works: Mapping[str, CaseWork]
    others: Sequence[OtherRun]


def works_by_case(observation: Observation) -> dict[str, CaseWork]:
    """Return what each case computes and moves."""
    return {work.case_id: work for work in observation.works}


def case_tables(run: RunFile, sources: CaseSources) -> tuple[CaseTable, ...]:
    """Return the tables in the order of the page, each with its cases in the order of the run."""
    by_kind: dict[str, list[int]] = defaultdict(list)
    for place, judgement in enumerate(run.judgements):
        by_kind[judgement.kind].append(place)
    return tuple(_table(kind, by_kind[kind], run, sources) for kind in sorted(by_kind, key=kind_place))


def _table(kind: str, places: Sequence[int], run: RunFile, sources: CaseSources) -> CaseTable:
    judgements = [run.judgements[place] for place in places]
    columns = columns_for(judgements, sources.others)
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
        figure_key=sources.figure_keys[place],
    )


def outcome_order(judgement: Judgement) -> int:
    """Sort what fails before what was not decided, and that before what passed."""
    order = list(Outcome).index(judgement.outcome)
    return order if judgement.outcome.fails else order + len(Outcome)
