"""What axe finds against WCAG 2 on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: Pictures are one image to who reads the page by ear: their insides are `browser_charts`' part.
_CONTEXT = {"include": [["html"]], "exclude": [["figure.chart svg > *"]]}

#: Levels A and AA of WCAG 2.0, 2.1 and 2.2, and what axe holds for good practice.
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def axe_violations(page: Page) -> list[str]:
    """Return rule, place and what is wrong, of the first places that break each rule."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": _TAGS}}
    found = Axe().run(page, context=_CONTEXT, options=options).response["violations"]
    return [f"{each['id']}: {node['target']}: {node['failureSummary']}" for each in found for node in each["nodes"][:3]]
