"""The space that one graph takes in a picture, in inches: its head, its boxes, and the ways of its edges."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

from perfsuite.report.graph.layout import Layout, lay_out
from perfsuite.report.graph.view import GraphView
from perfsuite.report.graph.words import graph_words

#: Inches: a box, a line of the head, and the distances of boxes from each other.
BOX_WIDTH, BOX_HEIGHT = 2.2, 0.52
LINE_HEIGHT = 0.19
_COLUMN, _RANK = 2.4, 0.78
#: Where long edges go down, and how far from boxes they turn.
_LANE, _LANE_GAP = 0.16, 0.2
_LEAVES, _ARRIVES = 0.06, 0.15
_LEAST_WIDTH, _BELOW_HEAD = 6.2, 0.2
#: Characters of the title and of another line of the head for each inch.
_TITLE_CHARACTERS, _HEAD_CHARACTERS = 10.0, 15.5

#: To the right and down.
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPanel:
    """One graph; its zero is the upper left corner of its boxes."""

    view: GraphView
    layout: Layout
    head: tuple[str, ...]
    width: float

    @property
    def head_height(self) -> float:
        """All lines, and what is free below them."""
        return len(self.head) * LINE_HEIGHT + _BELOW_HEAD

    @property
    def body_height(self) -> float:
        """All ranks."""
        return self.layout.n_ranks * _RANK

    def middle_of(self, number: int) -> Point:
        """Return the middle of a box."""
        column, rank = self.layout.places[number]
        return self._x_of(column), self._y_of(rank)

    def route(self, edge: tuple[int, int]) -> list[Point]:
        """Return the points of an edge, from foot to head."""
        if edge in self.layout.lanes:
            return self._route_by_lane(edge)
        first = self.layout.places[edge[0]][1] + 1
        bends = []
        for rank, column in enumerate(self.layout.bends.get(edge, ()), start=first):
            x, y = self._x_of(column), self._y_of(rank)
            bends += [(x, y - BOX_HEIGHT / 2), (x, y + BOX_HEIGHT / 2)]
        (x0, y0), (x1, y1) = map(self.middle_of, edge)
        return [(x0, y0 + BOX_HEIGHT / 2), *bends, (x1, y1 - BOX_HEIGHT / 2)]

    def _route_by_lane(self, edge: tuple[int, int]) -> list[Point]:
        """Return the points of a long edge: it turns in the gaps between ranks, where no boxes are."""
        (x0, y0), (x1, y1) = map(self.middle_of, edge)
        widest = self.layout.widest(*(self.layout.places[each][1] for each in edge))
        beside = self._x_of(widest) + BOX_WIDTH / 2 + _LANE_GAP + self.layout.lanes[edge] * _LANE
        x0, x1 = x0 + BOX_WIDTH / 3, x1 + BOX_WIDTH / 3
        foot, head = y0 + BOX_HEIGHT / 2, y1 - BOX_HEIGHT / 2
        leaves, arrives = foot + _LEAVES, head - _ARRIVES
        return [(x0, foot), (x0, leaves), (beside, leaves), (beside, arrives), (x1, arrives), (x1, head)]

    def _x_of(self, column: float) -> float:
        return (self.width - _lanes_width(self.layout)) / 2 + column * _COLUMN

    @staticmethod
    def _y_of(rank: int) -> float:
        return (rank + 0.5) * _RANK


def graph_panel(view: GraphView) -> GraphPanel:
    """Lay a graph out."""
    layout = lay_out(len(view.nodes), view.edges)
    width = max(layout.n_columns * _COLUMN + _lanes_width(layout), _LEAST_WIDTH)
    words = [line for each in graph_words(view) for line in wrap(each, int(width * _HEAD_CHARACTERS))]
    title = cut_middle(view.title, int(width * _TITLE_CHARACTERS))
    return GraphPanel(view=view, layout=layout, head=(title, *words), width=width)


def cut_middle(text: str, most: int) -> str:
    """Cut a text to so many characters in its middle, where there is the least to lose."""
    kept = (most - 1) // 2
    return text if len(text) <= most else f"{text[:kept]}…{text[-kept:]}"


def _lanes_width(layout: Layout) -> float:
    n_lanes = max(layout.lanes.values(), default=-1) + 1
    return _LANE_GAP + n_lanes * _LANE if n_lanes else 0.0
