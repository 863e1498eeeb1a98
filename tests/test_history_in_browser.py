"""The page of a history in Chromium: seen, filtered, followed with the keyboard, and free of what nobody wants."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.report.page.history import write_history_page
from perfsuite.report.page.words import case_anchor
from tests.browser_chromium import axe_violations

from .browser_charts import seen_charts
from .browser_chromium import a_limit, skip_without_browser, the_browser, visit
from .browser_report import by_id, overflow_px
from .history_points import DECODE, course, mark_at

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

skip_without_browser()

browser = pytest.fixture(scope="module")(the_browser)
limit = pytest.fixture(autouse=True)(a_limit)

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
    """Return how many cases can be seen."""
    return page.locator("details.series:visible").count()


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_all_is_drawn_and_axe_finds_nothing(
    browser: Browser, page_path: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    """Charts fit the screen with their words, the newest change is on the first one, and nothing is asked for."""
    with visit(browser, page_path, width=width, scheme=scheme) as seen:
        seen.page.screenshot(path=tmp_path / f"{width}-{scheme}.png")
        charts = seen_charts(seen.page)
        assert len(charts) == 4
        assert {each.place: each.defects for each in charts if each.defects} == {}
        newest = seen.page.locator(".together li").first
        assert newest.inner_text().startswith("2026-01-20 to 2026-01-21: 1 case on rubikpi, board fast")
        assert "abc1234 use <b>tiles</b>" in newest.inner_text()
        box = newest.bounding_box()
        assert box is not None
        assert seen.page.viewport_size is not None
        assert box["y"] + box["height"] < seen.page.viewport_size["height"]
        assert overflow_px(seen.page) == 0
        assert axe_violations(seen.page) == []
        assert seen.problems == []


def test_cases_are_filtered(browser: Browser, page_path: Path) -> None:
    """By words of their names and boards, and by whether they changed; all come back."""
    with visit(browser, page_path) as seen:
        assert shown(seen.page) == 4
        seen.page.fill("#filter-text", "FFN fast")
        assert shown(seen.page) == 2
        assert seen.page.locator("#shown").inner_text() == "2 of 4 cases"
        seen.page.click("#changed")
        assert shown(seen.page) == 0
        seen.page.fill("#filter-text", "")
        assert shown(seen.page) == 1
        assert seen.page.locator("#changed").get_attribute("aria-pressed") == "true"
        seen.page.click(".filter button[type=reset]")
        seen.page.wait_for_function("document.querySelector('#shown').textContent.startsWith('4 of')")
        assert seen.problems == []


def test_a_run_is_told_where_it_is_pointed_at(browser: Browser, page_path: Path) -> None:
    """Its time, commit and what each board measured in it: by the pointer, and by the arrow keys alone."""
    with visit(browser, page_path) as seen:
        told = seen.page.locator(".course .told").first
        plot = seen.page.locator(".course .plot").first
        box = plot.locator("svg.area").bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + 1, box["y"] + 20)
        first = "2026-01-01 02:00, commit 0000000000 on main: rubikpi, board fast 5 ms; rubikpi, board slow 6 ms"
        assert told.inner_text() == first
        plot.focus()
        seen.page.keyboard.press("End")
        assert told.inner_text().startswith("2026-01-30 02:00")
        seen.page.keyboard.press("ArrowLeft")
        assert told.inner_text().startswith("2026-01-29 02:00")
        seen.page.keyboard.press("Home")
        assert told.inner_text().startswith("2026-01-01 02:00")
        assert seen.problems == []


def test_every_run_is_told(browser: Browser, tmp_path: Path) -> None:
    """The arrow keys reach each run, and the pointer shows the newest of those at one place."""
    night = list(course(n_nights=5))
    soon = [
        replace(each, run_id=f"{each.run_id}-soon", started_at=each.started_at + timedelta(hours=1)) for each in night
    ]
    far = replace(night[-1], run_id="far", started_at=night[-1].started_at + timedelta(days=30_000))
    elsewhere = [
        replace(each, commit=each.commit and replace(each.commit, branch="other"))
        for each in course(board="shelf", n_nights=1)
    ]
    path = write_history_page([*night, *soon, far, *elsewhere], [], tmp_path / "history.html")
    with visit(browser, path) as seen:
        told, plot = seen.page.locator(".course .told").first, seen.page.locator(".course .plot").first
        plot.focus()
        seen.page.keyboard.press("Home")
        texts = [told.inner_text()]
        for _ in range(10):
            seen.page.keyboard.press("ArrowRight")
            texts.append(told.inner_text())
        assert len(set(texts)) == 11
        commit = "commit 0000000000"
        boards = f"rubikpi 5 ms, {commit} on main; rubikpi, board shelf 5 ms, {commit} on other"
        assert texts[0] == f"2026-01-01 02:00: {boards}"
        assert texts[1] == f"2026-01-01 03:00, {commit} on main: rubikpi 5 ms"
        box = plot.locator("svg.area").bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + box["width"] * 0.01, box["y"] + 20)
        assert told.inner_text().splitlines() == [*texts[2:10], "and 2 earlier runs here"]
        assert seen.problems == []


def test_an_address_of_no_case_does_nothing(browser: Browser, page_path: Path) -> None:
    with visit(browser, page_path, fragment="#case=%") as seen:
        assert shown(seen.page) == 4
        assert seen.problems == []


def test_all_cases_are_printed(browser: Browser, tmp_path: Path) -> None:
    many = [point for number in range(8) for point in course(f"operator/m/s/decode/{number}")]
    with visit(browser, write_history_page(many, [], tmp_path / "history.html")) as seen:
        closed = seen.page.locator("details.series:not([open]) .course svg.area").first
        assert not closed.is_visible()
        seen.page.emulate_media(media="print")
        assert closed.is_visible()


def test_a_link_opens_its_case(browser: Browser, page_path: Path) -> None:
    anchor = case_anchor(OPERATORS[0])
    with visit(browser, page_path, fragment=f"#{anchor}") as seen:
        assert by_id(seen.page, anchor).get_attribute("open") is not None
        seen.page.fill("#filter-text", "ffn_up")
        seen.page.locator(".together a").first.click()
        by_id(seen.page, case_anchor(DECODE)).locator(".plot").wait_for()
        by_id(seen.page, case_anchor(DECODE)).locator("summary").click()
        assert by_id(seen.page, case_anchor(DECODE)).get_attribute("open") is None
        seen.page.locator(".together a").first.click()
        assert by_id(seen.page, case_anchor(DECODE)).get_attribute("open") is not None
        assert seen.problems == []


def test_without_scripts_the_charts_are_there(browser: Browser, page_path: Path) -> None:
    """Lines, changes and commits are seen; what needs scripts is not."""
    with visit(browser, page_path, java_script_enabled=False) as seen:
        assert {each.place: each.defects for each in seen_charts(seen.page) if each.defects} == {}
        assert shown(seen.page) == 4
        assert not seen.page.locator(".filter").is_visible()
        assert "abc1234 use <b>tiles</b>" in seen.page.locator(".seams").first.inner_text()
        assert seen.problems == []
