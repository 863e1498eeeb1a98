"""Makes the page: one file with everything in it that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perfsuite.errors import PerfsuiteError
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.page.charts import PageScript, page_scripts
from perfsuite.report.page.markup import as_command, as_name, as_sentence
from perfsuite.report.page.names import case_anchor, kind_word, meaning, outcome_word, short_name
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.page_view import page_view
from perfsuite.report.page.rows import outcome_order
from perfsuite.report.page.undecided import MAX_NAMED
from perfsuite.report.page.words import basis_words, expected_words, headline_change, old_word, reason_beside
from perfsuite.report.resolution_words import outcome_words
from perfsuite.report.token_rates import timed
from perfsuite.report.visible import visible
from perfsuite.units import format_count, format_ratio, format_signed_ns

#: What the page is called where nobody names it.
PAGE_NAME = "report.html"

#: Nothing may be loaded, sent or framed; scripts are those of the page and no others.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; script-src {}"
)

#: What the templates say of records, under the names of the functions.
_WORDS: tuple[Callable[..., Any], ...] = (
    *(basis_words, case_anchor, expected_words, format_count, format_ratio, format_signed_ns, headline_change),
    *(kind_word, meaning, old_word, outcome_order, outcome_word, outcome_words, reason_beside, short_name, timed),
)


def write_page(runs: Sequence[PageRun], path: Path) -> Path:
    """Write the page about the first of the runs, beside which the others are shown; return its path.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    write_whole_bytes(path, render_page(runs).encode("utf-8"), PerfsuiteError)
    return path


def render_page(runs: Sequence[PageRun]) -> str:
    """Return the page as HTML."""
    first, scripts = _own_script("first.js"), (_own_script("page.js"), *page_scripts())
    policy = _POLICY.format(" ".join(script.csp_source for script in (first, *scripts)))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            view=page_view(runs), policy=policy, style=Markup(_text("style.css")), first_script=first, scripts=scripts
        )
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


def _own_script(name: str) -> PageScript:
    return PageScript(name=name.removesuffix(".js"), text=_text(name))


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text("utf-8")
