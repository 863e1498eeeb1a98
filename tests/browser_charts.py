"""What must be seen of the charts of a page: marks that can be known from the paper, and words within the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: Less than this ratio of luminances (WCAG 2.2, relative luminance) is taken for invisible.
_LEAST_CONTRAST = 1.25

#: Returns of each figure that is shown: its id, its pictures, marks, and texts that leave it.
_LOOK = """
(leastContrast) => {
  const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parsed = new Map();
  const rgba = (colour) => {
    if (!parsed.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      parsed.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return parsed.get(colour);
  };
  const luminance = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const paperOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const inked = (style, what, paper) => {
    if (style[what] === "none") return false;
    const [r, g, b, a] = rgba(style[what]);
    const share = (a / 255) * parseFloat(style[`${what}Opacity`]) * parseFloat(style.opacity);
    const mixed = [r, g, b].map((value, place) => value * share + paper[place] * (1 - share));
    return contrast(mixed, paper) >= leastContrast;
  };
  const isWithin = (inner, outer, slack) =>
    inner.left >= outer.left - slack && inner.right <= outer.right + slack &&
    inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
  const isSeen = (mark, frame, paper) => {
    const box = mark.getBoundingClientRect();
    const style = getComputedStyle(mark);
    const room = parseFloat(style.strokeWidth) || 0;
    if (!(box.width + room >= 1 || box.height + room >= 1) || !isWithin(box, frame, 12)) return false;
    if (style.visibility !== "visible" || style.display === "none") return false;
    return inked(style, "fill", paper) || (parseFloat(style.strokeWidth) > 0 && inked(style, "stroke", paper));
  };
  const marksOf = "use, rect, path[class], line:not(.grid, .base, .zero)";
  const shown = [...document.querySelectorAll(".chart, .samples, .changes, .course")]
    .filter((each) => each.checkVisibility());
  return shown.map((figure) => {
    const place = figure.id || figure.closest("tbody, details")?.id || figure.className;
    const pictures = [...figure.querySelectorAll("svg:not(svg svg):not(.legend svg):not(.change-axis)")];
    const frames = pictures.map((each) => each.getBoundingClientRect());
    const paper = paperOf(figure);
    const seen = pictures.map((svg, at) =>
      [...svg.querySelectorAll(marksOf)].filter((mark) => isSeen(mark, frames[at], paper)));
    const texts = [...figure.querySelectorAll("svg text")].filter((each) => each.textContent.trim());
    const room = figure.getBoundingClientRect();
    const [left, right] = [Math.max(0, room.left - 12), Math.min(innerWidth, room.right + 12)];
    const around = { left, right, top: room.top, bottom: room.bottom };
    const textsOf = (isSo) => texts.filter(isSo).map((each) => each.textContent);
    return {
      place,
      pictures: pictures.length,
      empty: seen.filter((marks) => !marks.length).length,
      outside: textsOf((each) => !isWithin(each.getBoundingClientRect(), around, 1.5)),
      pale: textsOf((each) => contrast(rgba(getComputedStyle(each).fill), paper) < 4.5),
      nameless: pictures.filter((svg) => svg.getAttribute("aria-hidden") !== "true" &&
        !(svg.getAttribute("role") === "img" && svg.getAttribute("aria-label")?.trim())).length,
      beyond: frames.some((frame) => !isWithin(frame, room, 1.5)),
    };
  });
}
"""


@dataclass(frozen=True, kw_only=True)
class SeenChart:
    place: str
    #: What is wrong with the picture.
    defects: tuple[str, ...]


def seen_charts(page: Page) -> tuple[SeenChart, ...]:
    return tuple(_seen(each) for each in page.evaluate(_LOOK, _LEAST_CONTRAST))


def drawn_charts(page: Page) -> list[str]:
    """Return the places of all charts that are shown, after none of them has a defect."""
    charts = seen_charts(page)
    faulty = [each for each in charts if each.defects]
    assert not faulty, faulty
    return [each.place for each in charts]


def _seen(told: dict[str, Any]) -> SeenChart:
    defects = []
    if not told["pictures"] and "changes" not in told["place"]:
        defects.append("has no picture")
    if told["empty"]:
        defects.append("has a picture without a mark that can be seen")
    if told["beyond"]:
        defects.append("is larger than its figure")
    if told["nameless"]:
        defects.append("has no name")
    defects += [f"cuts off {text!r}" for text in told["outside"]]
    defects += [f"writes {text!r} too pale" for text in told["pale"]]
    return SeenChart(place=told["place"], defects=tuple(defects))
