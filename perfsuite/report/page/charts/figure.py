"""One figure of the page: its picture, and in words what it shows."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as the page shows it."""

    #: A fixed word, unique on the page, fit for an attribute: ``operators-decode``.
    figure_id: str
    #: Which part of the page it belongs to: operators, roofline, tokens, machine or runs.
    subject: str
    title: str
    #: What is to be seen, in words, for those who do not see it.
    summary: str
    drawing: Markup
