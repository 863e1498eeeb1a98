"""Everything that the page shows, as one record for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfsuite.report.change_notes import change_notes
from perfsuite.report.page.charts import Figure, case_figures, figures, specs_by_id
from perfsuite.report.page.fact_table import FactTable
from perfsuite.report.page.facts import fact_tables
from perfsuite.report.page.findings import MAX_CARDS, Finding, failures, improvements
from perfsuite.report.page.head import Head, page_head
from perfsuite.report.page.machine import machine_tables
from perfsuite.report.page.names import kind_title
from perfsuite.report.page.other_runs import RunLine, other_runs, run_lines
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.rows import CaseSources, CaseTable, case_tables, works_by_case
from perfsuite.report.page.undecided import UndecidedGroup, undecided_groups
from perfsuite.report.page.words import capitalized
from perfsuite.report.reproduce import reproductions

#: Figures that stand beside the tables of their own section.
_MACHINE, _RUNS = "machine", "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    """The sections of the page in their order."""

    head: Head
    #: Failing cases as cards, and what is too many for cards as lines.
    failure_cards: tuple[Finding, ...]
    failure_lines: tuple[Finding, ...]
    improvements: tuple[Finding, ...]
    undecided: tuple[UndecidedGroup, ...]
    figures: tuple[Figure, ...]
    tables: tuple[CaseTable, ...]
    #: Of what the changes in the tables are, where that must be said.
    change_notes: tuple[str, ...]
    runs: tuple[RunLine, ...]
    run_figures: tuple[Figure, ...]
    machine: tuple[FactTable, ...]
    machine_figures: tuple[Figure, ...]
    facts: tuple[FactTable, ...]
    #: By figure, its specification; and what the figures of single cases are made of.
    specs: dict[str, Any]
    case_specs: dict[str, Any]
    #: Why no case can be measured again by a command; empty where each can.
    lacks_commands: str
    suite_version: str
    workload: str

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """Each kind of cases with its heading."""
        return tuple((table.kind, kind_title(table.kind)) for table in self.tables)


def page_view(runs: Sequence[PageRun]) -> PageView:
    """Return what the page about the first of the runs shows."""
    page_run, run = runs[0], runs[0].run
    drawn = figures(run, page_run.observation, runs[1:])
    of_cases = case_figures(run, runs[1:])
    commands = reproductions(run)
    failed = failures(run, commands)
    sources = CaseSources(
        reproductions=commands,
        figure_keys=of_cases.keys,
        works=works_by_case(page_run.observation),
        others=other_runs(runs),
    )
    return PageView(
        head=page_head(run),
        failure_cards=failed[:MAX_CARDS],
        failure_lines=failed[MAX_CARDS:],
        improvements=improvements(run, commands),
        undecided=undecided_groups(run),
        figures=tuple(each for each in drawn if each.subject not in (_MACHINE, _RUNS)),
        tables=case_tables(run, sources),
        change_notes=tuple(capitalized(note) for note in change_notes(run.judgements)),
        runs=run_lines(runs),
        run_figures=_about(_RUNS, drawn),
        machine=machine_tables(runs),
        machine_figures=_about(_MACHINE, drawn),
        facts=fact_tables(page_run),
        specs=specs_by_id(drawn),
        case_specs=of_cases.plain,
        lacks_commands=next((each.note for each in commands if each.command is None), ""),
        suite_version=run.suite_version,
        workload=run.workload,
    )


def _about(subject: str, drawn: Sequence[Figure]) -> tuple[Figure, ...]:
    return tuple(each for each in drawn if each.subject == subject)
