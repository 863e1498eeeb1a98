"""The paper's pictures as plain series: each figure a pure function that returns a chart."""

from perfsuite.expectation.paper.figures.bound_grid import figure_4, figure_5
from perfsuite.expectation.paper.figures.chunked_prefill import figure_6, figure_7, figure_8, figure_9
from perfsuite.expectation.paper.figures.operator_shares import figure_3

__all__ = ["figure_3", "figure_4", "figure_5", "figure_6", "figure_7", "figure_8", "figure_9"]
