"""All figures of a run, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.records.observation import Observation
from perfsuite.report.page.charts.attribution_bars import attribution_figures
from perfsuite.report.page.charts.changes import changes_figure
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.folded_graph import graph_figures
from perfsuite.report.page.charts.machine import machine_figures
from perfsuite.report.page.charts.roofline import roofline_figure
from perfsuite.report.page.charts.runs import runs_figure
from perfsuite.report.page.charts.timeline import timeline_figures
from perfsuite.report.page.charts.times import kernels_figures, operators_figures, phases_figure
from perfsuite.report.page.charts.tokens import tokens_figure
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.run_file import RunFile


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
