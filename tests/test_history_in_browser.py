"""The page of a history in Chromium: seen, filtered, followed with the keyboard, and free of what nobody wants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.report.page.history import write_history_page

from .browser_charts import drawn_charts
from .browser_chromium import Visits, axe_violations
from .browser_report import overflow_px
from .history_points import DECODE, course, mark_at

if TYPE_CHECKING:
    from playwright.sync_api import Page

OPERATORS = [f"operator/smollm2-135m-q8_0/siso/decode/{name}" for name in ("ffn_up", "ffn_gate", "attn_out")]


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of four cases on two boards, of which one case changed on both."""
    boards = {"fast": 5_000_000, "slow": 6_000_000}
    courses = {
        (case_id, board): list(
            course(case_id, board=board, usual_ns=usual_ns, changed_at=20 if case_id == DECODE else 99)
        )
        for case_id in sorted([DECODE, *OPERATORS])
        for board, usual_ns in boards.items()
    }
    marks = [mark_at(courses[DECODE, board], commits=("abc1234 use <b>tiles</b>",)) for board in boards]
    points = [point for each in courses.values() for point in each]
    return write_history_page(points, marks, tmp_path_factory.mktemp("history") / "history.html")


def shown(page: Page) -> int:
    return page.locator("details.series:visible").count()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_all_is_drawn_and_axe_finds_nothing(
    visit: Visits, page_path: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    """Charts fit the screen with their words, the newest change is on the first one, and nothing is asked for."""
    with visit(page_path, width=width, scheme=scheme) as page:
        page.screenshot(path=tmp_path / f"{width}-{scheme}.png")
        assert len(drawn_charts(page)) == 4
        newest = page.locator(".together li").first
        assert newest.inner_text().startswith("2026-01-20 to 2026-01-21: 1 case on rubikpi, board fast")
        assert "abc1234 use <b>tiles</b>" in newest.inner_text()
        box = newest.bounding_box()
        assert box is not None
        assert page.viewport_size is not None
        assert box["y"] + box["height"] < page.viewport_size["height"]
        assert overflow_px(page) == 0
        assert axe_violations(page) == []


def test_cases_are_filtered(visit: Visits, page_path: Path) -> None:
    """By words of their names and boards, and by whether they changed; all come back."""
    with visit(page_path) as page:
        assert shown(page) == 4
        page.fill("#filter-text", "FFN fast")
        assert shown(page) == 2
        assert page.locator("#shown").inner_text() == "2 of 4 cases"
        page.click("#changed")
        assert shown(page) == 0
        page.fill("#filter-text", "")
        assert shown(page) == 1
        assert page.locator("#changed").get_attribute("aria-pressed") == "true"
        page.click(".filter button[type=reset]")
        page.wait_for_function("document.querySelector('#shown').textContent.startsWith('4 of')")


def test_a_run_is_told_where_it_is_pointed_at(visit: Visits, page_path: Path) -> None:
    """Its time, commit and what each board measured in it: by the pointer, and by the arrow keys alone."""
    with visit(page_path) as page:
        told = page.locator(".course .told").first
        plot = page.locator(".course .plot").first
        box = plot.locator("svg.area").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 1, box["y"] + 20)
        first = "2026-01-01 02:00, commit 0000000000 on main: rubikpi, board fast 5 ms; rubikpi, board slow 6 ms"
        assert told.inner_text() == first
        plot.focus()
        page.keyboard.press("End")
        assert told.inner_text().startswith("2026-01-30 02:00")
        page.keyboard.press("ArrowLeft")
        assert told.inner_text().startswith("2026-01-29 02:00")
        page.keyboard.press("Home")
        assert told.inner_text().startswith("2026-01-01 02:00")


def test_without_scripts_the_charts_are_there(visit: Visits, page_path: Path) -> None:
    """Lines, changes and commits are seen; what needs scripts is not."""
    with visit(page_path, java_script_enabled=False) as page:
        drawn_charts(page)
        assert shown(page) == 4
        assert not page.locator(".filter").is_visible()
        assert "abc1234 use <b>tiles</b>" in page.locator(".seams").first.inner_text()
