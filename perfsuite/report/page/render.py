"""Makes the page: one file with everything in it that it needs."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from perfsuite.errors import PerfsuiteError
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.charts.svg import symbols
from perfsuite.report.page import words as page_words
from perfsuite.report.page.charts import Figure, figures
from perfsuite.report.page.charts.change import change_axis
from perfsuite.report.page.facts import FactTable, fact_tables, machine_tables
from perfsuite.report.page.findings import (
    MAX_CARDS,
    MAX_NAMED,
    Finding,
    UndecidedGroup,
    failures,
    improvements,
    undecided_groups,
)
from perfsuite.report.page.head import Head, page_head
from perfsuite.report.page.page_run import PageRun, run_lines
from perfsuite.report.page.rows import CaseTable, case_tables, outcome_order, scale_note
from perfsuite.report.reproduce import reproductions
from perfsuite.report.run_writer import timed
from perfsuite.report.verdict_words import change_notes, outcome_words
from perfsuite.report.visible import visible
from perfsuite.report.words import capitalized, kind_word, meaning, outcome_word
from perfsuite.units import format_count, format_ratio, format_signed_ns

PAGE_NAME = "report.html"

_NO_BREAK_SPACE = "\u00a0"
#: The space between a figure and its unit, or between a sign of multiplication and its figure.
_WITHIN_FIGURE = re.compile(
    r"(?<=\d) (?=(?:%|[nµm]?s|[KMGT]?i?B(?:/s)?|[MGT]?FLOP/s|[MG]Hz|°C|min)(?![\w/]))|(?<=×) (?=\d)"
)
#: An option of a command, of which the hyphens invite a break.
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
#: Where a name may be broken.
_JOINT = re.compile(r"[/_](?=\w)")

#: Nothing may be loaded, sent or framed; scripts are those of the page and no others.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; script-src {}"
)

#: Figures that stand beside the tables of their own section.
_MACHINE, _RUNS = "machine", "runs"


def as_sentence(text: str) -> Markup:
    """Keep figures with their units and options in one piece."""
    return as_command(_WITHIN_FIGURE.sub(_NO_BREAK_SPACE, text))


def as_name(text: str) -> Markup:
    """Offer breaks between the parts of a name, after ``/`` and ``_``."""
    return Markup(_JOINT.sub(r"\g<0><wbr>", str(escape(visible(text)))))  # nosec B704  # escaped


def as_command(text: str) -> Markup:
    """Keep options in one piece; the text that is copied stays as it is."""
    return Markup(_OPTION.sub(r"<i>\g<0></i>", str(escape(visible(text)))))  # nosec B704  # escaped


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
    #: The label, verdict and facts of each run, where there are several.
    runs: tuple[tuple[str, str, Mapping[str, str]], ...]
    run_figures: tuple[Figure, ...]
    machine: tuple[FactTable, ...]
    machine_figures: tuple[Figure, ...]
    facts: tuple[FactTable, ...]
    #: Why no case can be measured again by a command; empty where each can.
    lacks_commands: str
    suite_version: str
    workload: str


def page_view(runs: Sequence[PageRun]) -> PageView:
    """Return what the page about the first of the runs shows."""
    page_run, run = runs[0], runs[0].run
    drawn = figures(run, page_run.observation, runs[1:])
    commands = reproductions(run)
    failed, improved = failures(run, commands), improvements(run, commands)
    axis = change_axis(run.judgements)
    return PageView(
        head=page_head(page_run, (*failed, *improved)),
        failure_cards=failed[:MAX_CARDS],
        failure_lines=failed[MAX_CARDS:],
        improvements=improved,
        undecided=undecided_groups(run),
        figures=tuple(each for each in drawn if each.subject not in (_MACHINE, _RUNS)),
        tables=case_tables(runs, axis),
        change_notes=tuple(map(capitalized, (*scale_note(axis), *change_notes(run.judgements)))),
        runs=tuple(run_lines(runs)),
        run_figures=tuple(each for each in drawn if each.subject == _RUNS),
        machine=machine_tables(runs),
        machine_figures=tuple(each for each in drawn if each.subject == _MACHINE),
        facts=fact_tables(page_run),
        lacks_commands=next((each.note for each in commands if each.command is None), ""),
        suite_version=run.suite_version,
        workload=run.workload,
    )


def write_page(runs: Sequence[PageRun], path: Path) -> Path:
    """Write the page about the first of the runs, beside which the others are shown; return its path.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    write_whole_bytes(path, render_page(runs).encode("utf-8"), PerfsuiteError)
    return path


def render_page(runs: Sequence[PageRun]) -> str:
    """Return the page as HTML."""
    return rendered("page.html.j2", "page.js", view=page_view(runs))


def rendered(template: str, script_name: str, **content: object) -> str:
    """Return a page of the suite as HTML: its styles, shapes and scripts in it, and a policy that lets no other run."""
    first, script = _text("first.js"), _text(script_name)
    shared = {
        "policy": _POLICY.format(f"{_csp_source(first)} {_csp_source(script)}"),
        "style": _text("style.css"),
        "symbols": symbols(),
        "first_script": first,
        "script": script,
    }
    return _environment().get_template(template).render(**shared, **content)


def _text(name: str) -> Markup:
    """Read a file of the suite's own."""
    return Markup(resources.files(__package__).joinpath("templates", name).read_text("utf-8"))  # nosec B704


def _csp_source(script: str) -> str:
    """Return what allows this script and no other in ``script-src``, with its quotes."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}'"


#: What the templates say of records, under the names of the functions.
_WORDS: tuple[Callable[..., Any], ...] = (
    *(page_words.basis_words, page_words.case_anchor, page_words.expected_words, page_words.headline_change),
    *(page_words.interval_text, page_words.old_word, page_words.reason_beside, page_words.short_name),
    *(format_count, format_ratio, format_signed_ns, kind_word, meaning),
    *(outcome_order, outcome_word, outcome_words, timed),
)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("perfsuite.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {"sentence": as_sentence, "name": as_name, "command": as_command}
    environment.filters |= {each.__name__: each for each in _WORDS}
    environment.globals["most_named"] = MAX_NAMED
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": False}
    return environment


def _shown(value: Any) -> Any:
    """Write out what cannot be seen in a text; what is markup already is not touched."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
