"""The report as somebody uses it: its rows, filter, columns and details, by what must be seen of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfsuite.report.page.words import case_anchor

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

#: Returns of each row of the tables of cases: its anchor, kind, outcome, whether it can be seen, and its cells' texts.
_ROWS = """
() => [...document.querySelectorAll("table.cases > tbody")].map((body) => ({
  anchor: body.id,
  kind: body.closest("[data-kind]").dataset.kind,
  outcome: body.dataset.outcome,
  is_shown: body.checkVisibility() && body.rows[0].checkVisibility(),
  is_open: body.rows[1].checkVisibility(),
  cells: [...body.rows[0].cells].map((cell) => (cell.checkVisibility() ? cell.innerText.trim() : null)),
}))
"""

_HEADINGS = """
(kind) => [...document.querySelectorAll("[data-kind] th[aria-sort]")]
  .filter((each) => each.closest("[data-kind]").dataset.kind === kind && each.checkVisibility())
  .map((each) => each.innerText.replace(/[↑↓]/g, "").trim())
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    anchor: str
    kind: str
    outcome: str
    is_shown: bool
    #: Whether its details can be seen.
    is_open: bool
    #: None where the width leaves no room for the column.
    cells: tuple[str | None, ...]


def all_rows(page: Page) -> tuple[Row, ...]:
    return tuple(Row(**{**each, "cells": tuple(each["cells"])}) for each in page.evaluate(_ROWS))


def shown_anchors(page: Page) -> list[str]:
    return [row.anchor for row in all_rows(page) if row.is_shown]


def choose(page: Page, *, text: str = "", kind: str = "", outcome: str = "") -> None:
    page.fill("#filter-text", text)
    page.select_option("#filter-kind", kind)
    for button in page.locator(".filter button.count").all():
        if (button.get_attribute("aria-pressed") == "true") != (button.get_attribute("data-outcome") == outcome):
            button.click()


def table_of(page: Page, kind: str) -> Locator:
    tables = page.locator(".kind-table")
    kinds = tables.evaluate_all("all => all.map((each) => each.dataset.kind)")
    return tables.nth(kinds.index(kind))


def headings(page: Page, kind: str) -> list[str]:
    return list(page.evaluate(_HEADINGS, kind))


def sort_by(page: Page, kind: str, title: str) -> list[str]:
    buttons = table_of(page, kind).locator("th[aria-sort] button")
    buttons.nth([each.rstrip(" ↑↓") for each in buttons.all_inner_texts()].index(title)).click()
    return [row.anchor for row in all_rows(page) if row.kind == kind]


def body_of(page: Page, case_id: str) -> Locator:
    return by_id(page, case_anchor(case_id))


def by_id(page: Page, element_id: str) -> Locator:
    escaped = page.evaluate("(id) => CSS.escape(id)", element_id)
    return page.locator(f"#{escaped}")


def open_details(page: Page, case_ids: Sequence[str]) -> None:
    for case_id in case_ids:
        body_of(page, case_id).locator("summary").first.click()


def overflow_px(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
