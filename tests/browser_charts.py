"""What must be seen of the charts of a page: marks that can be known from the paper, and words within the picture."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: Less than this ratio of luminances (WCAG 2.2, relative luminance) is taken for invisible.
_LEAST_CONTRAST = 1.25

#: Returns of each figure that is shown: its id, boxes of svg and figure, marks, texts that leave the svg.
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
  const meets = (one, other) =>
    one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
  const isSeen = (mark, frame, paper) => {
    const box = mark.getBoundingClientRect();
    if (!(box.width >= 1 || box.height >= 1) || !meets(box, frame)) return false;
    const style = getComputedStyle(mark);
    if (style.visibility !== "visible" || style.display === "none") return false;
    return inked(style, "fill", paper) || (parseFloat(style.strokeWidth) > 0 && inked(style, "stroke", paper));
  };
  const shown = [...document.querySelectorAll("figure.chart")].filter((each) => each.checkVisibility());
  return shown.map((figure) => {
    const place = figure.dataset.figure ?? figure.dataset.case ?? figure.id;
    const svg = figure.querySelector("svg");
    if (!svg) return { place, marks: 0, outside: [], beyond: false, has_svg: false };
    const frame = svg.getBoundingClientRect();
    const paper = paperOf(figure);
    const marks = [...svg.querySelectorAll("g.role-mark > :is(path, line, rect, text, image)")];
    const texts = [...svg.querySelectorAll("text")].filter((each) => each.textContent.trim() && each.checkVisibility());
    const outside = texts.filter((each) => !isWithin(each.getBoundingClientRect(), frame, 1.5));
    const pale = texts.filter((each) => {
      const style = getComputedStyle(each);
      return each.closest("g.role-axis, g.role-axis-label, g.role-axis-title, g.role-legend, g.role-title") &&
        parseFloat(style.opacity) > 0 && contrast(rgba(style.fill), paper) < 4.5;
    });
    return {
      place,
      has_svg: true,
      marks: marks.filter((mark) => isSeen(mark, frame, paper)).length,
      outside: outside.map((each) => each.textContent),
      pale: pale.map((each) => each.textContent),
      roles: svg.querySelectorAll("[role]:not([role=presentation], [aria-hidden=true], [aria-hidden=true] *)").length,
      named: Boolean(svg.getAttribute("aria-label")?.trim()),
      beyond: !isWithin(frame, figure.getBoundingClientRect(), 1.5),
    };
  });
}
"""

#: Whether each chart that is shown has a picture.
_ALL_DRAWN = """
() => {
  const shown = [...document.querySelectorAll("figure.chart")].filter((each) => each.checkVisibility());
  return shown.every((each) => each.querySelector("svg"));
}
"""


@dataclass(frozen=True, kw_only=True)
class SeenChart:
    """One chart that is shown."""

    place: str
    #: Marks that can be told from the paper, axes and legends aside.
    n_marks: int
    #: What is wrong with the picture.
    defects: tuple[str, ...]


def seen_charts(page: Page) -> tuple[SeenChart, ...]:
    """Return every chart that is shown, once all of them are drawn; one that stays undrawn has that defect."""
    from playwright.sync_api import TimeoutError as Late

    with suppress(Late):  # the chart that is late is found below, with its name
        page.wait_for_function(_ALL_DRAWN)
    return tuple(_seen(each) for each in page.evaluate(_LOOK, _LEAST_CONTRAST))


def _seen(told: dict[str, Any]) -> SeenChart:
    defects = []
    if not told["has_svg"]:
        defects.append("was not drawn")
    elif not told["marks"]:
        defects.append("has no mark that can be seen")
    if told["beyond"]:
        defects.append("is larger than its figure")
    if told.get("roles"):
        defects.append("tells its insides to who reads by ear")
    if not told.get("named", True):
        defects.append("has no name")
    defects += [f"cuts off {text!r}" for text in told["outside"]]
    defects += [f"writes {text!r} too pale" for text in told.get("pale", ())]
    return SeenChart(place=told["place"], n_marks=told["marks"], defects=tuple(defects))
