"""The figures of the page, as SVG that Python writes: they need no script, fit any width, and print.

Each figure answers a question that the tables do not: where a phase's time goes, what is attained
of what the device can do, how a step grows with the context, whether the machine was steady, how runs compare. Lanes of
operators over time and graphs are views of a trace (docs/trace-views.md), where one can look closer.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.records.observation import Observation
from perfsuite.records.run_file import RunFile
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.machine import machine_figures
from perfsuite.report.page.charts.operators import operators_figures
from perfsuite.report.page.charts.roofline import roofline_figure
from perfsuite.report.page.charts.runs import runs_figure
from perfsuite.report.page.charts.tokens import tokens_figure
from perfsuite.report.page.page_run import PageRun

__all__ = ["Figure", "figures"]


def figures(run: RunFile, observation: Observation, others: Sequence[PageRun] = ()) -> tuple[Figure, ...]:
    """Return every figure for which the records of the run have something to show."""
    return (
        *operators_figures(run),
        *roofline_figure(run, observation),
        *tokens_figure(observation, others),
        *machine_figures(run, observation),
        *runs_figure(run, others),
    )
