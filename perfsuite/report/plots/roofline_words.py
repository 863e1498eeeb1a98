"""What is written into a roofline, and what it must keep clear of."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.records.chart import Numbers, PotentialRegion, RooflinePanel, RoofRole
from perfsuite.report.plots.labels import Word

#: How far before the end of a level line its name may stand, as parts of it.
_BACK = (0.0, 0.3, 0.5, 0.7)


def roofline_words(panel: RooflinePanel, *, names_roofs: bool) -> Iterator[Word]:
    """Yield what is written into a panel, the most needed first; main roofs only where there are several to name."""
    for group in panel.groups:
        for text, x, y in zip(group.texts, group.x, group.y, strict=False):
            if text:
                yield Word(text=text, anchors=((x, y),))
    for ridge in filter(lambda each: each.label, panel.ridges):
        yield Word(text=ridge.label, anchors=((ridge.x, ridge.y),))
    for roof in panel.roofs:
        if names_roofs or roof.role is RoofRole.SIDE:
            yield Word(text=roof.label, anchors=_ends(roof.x, roof.y), is_faint=roof.role is RoofRole.SIDE)
    for contour in panel.region.contours if panel.region else ():
        yield Word(text=contour.label, anchors=_ends(contour.x, contour.y), is_faint=True)


def _ends(x: Numbers, y: Numbers) -> tuple[tuple[float, float], ...]:
    """Return where a line can be named: at its end or, where that is level, before it as well."""
    if y[-1] != y[-2]:
        return ((x[-1], y[-1]),)
    return tuple((x[-1] * (x[-2] / x[-1]) ** part, y[-1]) for part in _BACK)


def marks(panel: RooflinePanel) -> Iterator[tuple[float, float]]:
    """Yield the points and corners that words keep clear of."""
    for group in panel.groups:
        yield from zip(group.x, group.y, strict=True)
    for ridge in panel.ridges:
        yield ridge.x, ridge.y


def strokes(panel: RooflinePanel) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the lines that words keep clear of."""
    for roof in panel.roofs:
        yield roof.x, roof.y
    for group in panel.groups:
        if group.is_joined:
            yield group.x, group.y
        for y, *ends in zip(group.y, group.least_x or (), group.most_x or (), strict=False):
            yield tuple(ends), (y, y)
    if panel.region is not None:
        yield divider(panel.region)
        yield from ((contour.x, contour.y) for contour in panel.region.contours)


def divider(region: PotentialRegion) -> tuple[Numbers, Numbers]:
    """Return the line between the two parts of the region."""
    compute = region.compute
    return (compute.x[0], compute.x[0]), (compute.low_y[0], compute.high_y[0])
