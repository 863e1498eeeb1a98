"""Reads pictures again: where marks lie, by their looks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One element of a picture."""

    tag: str
    attributes: dict[str, str]
    text: str

    @property
    def look(self) -> str:
        """Its classes."""
        return self.attributes.get("class", "")

    def across(self, name: str) -> float:
        """Return a place across as a part of the width."""
        return float(self.attributes[name].removesuffix("%")) / 100.0


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[Piece] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pieces.append(Piece(tag=tag, attributes={name: value or "" for name, value in attrs}, text=""))

    def handle_data(self, data: str) -> None:
        if self.pieces:
            last = self.pieces[-1]
            self.pieces[-1] = Piece(tag=last.tag, attributes=last.attributes, text=last.text + data)


def pieces(drawing: str, tag: str = "", look: str = "") -> list[Piece]:
    """Return the elements of a picture, or those of a kind, or of a look."""
    reader = _Reader()
    reader.feed(drawing)
    reader.close()
    return [each for each in reader.pieces if tag in ("", each.tag) and (not look or look in each.look.split())]


def points(path: Piece) -> list[tuple[float, float]]:
    """Return the points of a curve, as parts of the width and of the height from below."""
    found = re.findall(r"(\d+) (\d+)", path.attributes["d"])
    return [(int(x) / 1000.0, 1.0 - int(y) / 1000.0) for x, y in found]


def tips(drawing: str) -> list[str]:
    """Return what the marks tell where they are pointed at."""
    return [each.text for each in pieces(drawing, "title")]
