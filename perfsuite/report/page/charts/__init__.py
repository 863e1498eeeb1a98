"""The figures of the page: Vega-Lite specifications made of records, and the scripts that draw them.

What the page holds, in this order:

1. For each of ``figures(run, observation, others)`` a ``<figure class="chart" id="figure-ID" data-figure="ID">`` with
   the title as its caption and the summary as text. ``Figure.subject`` says which section it belongs to. The script
   appends ``<div class="drawing">`` to the figure, or fills the one that is there.
2. ``<script type="application/json" id="figures">{ID: spec, ...}</script>``: ``specs_by_id(figures)`` through Jinja's
   tojson.
3. ``<script type="application/json" id="case-figures">...</script>``: ``case_figures(run, others).plain`` through
   tojson. ``case_figures(run, others).keys`` has one key for each of ``run.judgements``, None where a case has nothing
   to draw. In the details of a case: ``<figure class="chart" data-case="KEY">``, with a caption of the page's own; it
   is drawn when it can be seen.
4. The text of each of ``page_scripts()``, as an inline ``<script>`` of its own, in their order (a licence stands at the
   head of each that is not the suite's own). ``PageScript.csp_source`` is what ``script-src`` needs for it.

``window.drawFigures(root)`` draws every undrawn ``figure.chart`` within root that can be seen, whichever details are
open; call it at the start and when details open. All is drawn again when a figure's width or the scheme changes (the
attribute ``data-theme`` of ``<html>``, ``light`` or ``dark``, goes before ``prefers-color-scheme``; the ink is the
computed ``color`` of the figure) and in dark ink on white before printing. Expressions are interpreted and never
compiled: ``script-src`` needs no ``'unsafe-eval'``.

Names are data: field names in specifications are fixed words, and no name is part of an expression.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.records.observation import Observation
from perfsuite.report.page.charts.case_figures import CaseFigures, case_figures
from perfsuite.report.page.charts.changes import attribution_figures, changes_figure
from perfsuite.report.page.charts.figure import Figure, specs_by_id
from perfsuite.report.page.charts.folded_graph import graph_figures
from perfsuite.report.page.charts.machine import machine_figures
from perfsuite.report.page.charts.roofline import roofline_figure
from perfsuite.report.page.charts.runs import runs_figure
from perfsuite.report.page.charts.scripts import PageScript, page_scripts
from perfsuite.report.page.charts.timeline import timeline_figures
from perfsuite.report.page.charts.times import kernels_figures, operators_figures, phases_figure
from perfsuite.report.page.charts.tokens import tokens_figure
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.run_file import RunFile

__all__ = ["CaseFigures", "Figure", "PageScript", "case_figures", "figures", "page_scripts", "specs_by_id"]


def figures(run: RunFile, observation: Observation, others: Sequence[PageRun] = ()) -> tuple[Figure, ...]:
    """Return every figure for which the records of the run have something to show."""
    return (
        *changes_figure(run),
        *phases_figure(run),
        *operators_figures(run),
        *attribution_figures(run),
        *kernels_figures(run),
        *roofline_figure(run, observation),
        *timeline_figures(observation),
        *tokens_figure(observation, others),
        *graph_figures(observation),
        *machine_figures(run, observation),
        *runs_figure(run, others),
    )
