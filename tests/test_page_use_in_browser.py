"""The report in use: filter, sort, keyboard, links to cases, and the button that copies a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.page.words import case_anchor
from perfsuite.testing.run_cases import operator_id

from .browser_chromium import Visits
from .browser_report import all_rows, body_of, by_id, choose, headings, open_details, shown_anchors, sort_by
from .browser_runs import sort_report, usual_run

if TYPE_CHECKING:
    from playwright.sync_api import Page

RUN = usual_run()
CASES = {case_anchor(each.case_id): each for each in RUN.judgements}
KINDS = tuple(dict.fromkeys(each.kind for each in RUN.judgements))

#: By the title of a column, what it shows of a case.
SHOWN: dict[str, Callable[[Judgement], float | None]] = {
    "Measured": lambda case: case.measured_ns,
    "Expected": lambda case: case.expected_ns,
    "Floor": lambda case: case.floor_ns,
    "Old side": lambda case: case.baseline_ns,
    "Change": lambda case: case.change_ratio,
}

SEEN_CASE = operator_id("decode", "ffn_up")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sort_report(tmp_path_factory.mktemp("report"), "usual")


def anchors(**wanted: str | None) -> set[str]:
    said = {anchor: {"outcome": case.outcome.value, "kind": case.kind} for anchor, case in CASES.items()}
    return {anchor for anchor, told in said.items() if told | wanted == told}


def test_text_outcomes_and_kinds_choose_cases(visit: Visits, report: Path) -> None:
    """The words of a text are parts of a case's name, in any order and in either case of letters; all come back."""
    with visit(report) as page:
        for text in ("swiglu", "FFN_up", "decode cur", "q8_0/siso/prefill/rest", "kernel k576 f32", "zzz"):
            choose(page, text=text)
            words = text.lower().split()
            expected = {at for at, case in CASES.items() if all(word in case.case_id.lower() for word in words)}
            assert set(shown_anchors(page)) == expected
            assert page.locator("#shown").inner_text() == f"{len(expected)} of {len(CASES)} cases"
        for outcome in Outcome:
            choose(page, outcome=outcome.value)
            assert set(shown_anchors(page)) == anchors(outcome=outcome.value)
        for kind in KINDS:
            choose(page, kind=kind)
            assert set(shown_anchors(page)) == anchors(kind=kind)
        choose(page, kind="operator", outcome="regressed", text="decode")
        assert shown_anchors(page) == [case_anchor(operator_id("decode", "ffn_swiglu"))]
        page.click(".filter button[type=reset]")
        page.wait_for_function(f"document.querySelector('#shown').textContent.startsWith('{len(CASES)} of')")
        assert set(shown_anchors(page)) == set(CASES)


def test_figures_are_sorted_by_their_values(visit: Visits, report: Path) -> None:
    """Each column of figures is sorted up and then down by what it shows, not by its text; what has none is last."""
    with visit(report) as page:
        columns = [(kind, title) for kind in KINDS for title in headings(page, kind) if title in SHOWN]
        assert len(columns) > 25
        for kind, title in columns:
            for is_falling in (False, True):
                values = [SHOWN[title](CASES[anchor]) for anchor in sort_by(page, kind, title)]
                known = sorted((value for value in values if value is not None), reverse=is_falling)
                assert values == known + [None] * (len(values) - len(known)), f"{kind} by {title}"


def pressed_until(page: Page, selector: str, most: int) -> int:
    for count in range(1, most + 1):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return count
    raise AssertionError(f"{selector} has no focus after Tab was pressed {most} times")


def test_a_case_is_opened_with_the_keyboard_alone(visit: Visits, report: Path) -> None:
    """From the filter, Tab leads to the rows; Enter opens one, and closes it again."""
    with visit(report) as page:
        assert pressed_until(page, "a.skip", 1) == 1
        page.focus("#filter-text")
        page.keyboard.type("decode/ffn_up")
        pressed_until(page, "table.cases summary", 30)
        page.keyboard.press("Enter")
        body = body_of(page, SEEN_CASE)
        body.locator(".reason").wait_for()
        page.keyboard.press("Enter")
        body.locator(".reason").wait_for(state="hidden")


def test_what_has_the_focus_can_be_seen(visit: Visits, report: Path) -> None:
    """Whatever Tab reaches has an outline and lies within the window."""
    look = """
    () => {
      const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
      const isOutlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
      return isOutlined && box.bottom > 0 && box.top < innerHeight && box.width > 0 && box.left >= 0
        ? null : at.outerHTML.slice(0, 200);
    }
    """
    with visit(report, width=360) as page:
        for _ in range(60):
            page.keyboard.press("Tab")
            assert page.evaluate(look) is None


def is_in_view(page: Page, anchor: str) -> bool:
    box = by_id(page, anchor).locator("summary").first.bounding_box()
    assert box is not None
    assert page.viewport_size is not None
    return bool(0 <= box["y"] < page.viewport_size["height"])


@pytest.mark.parametrize("case_id", [SEEN_CASE, "roofline/prompt/smollm2-135m-q8_0 64+32/prefill"])
def test_an_address_leads_to_its_case(visit: Visits, report: Path, case_id: str) -> None:
    """A page that is opened with the address of a case shows it opened, spaces in its name or not."""
    anchor = case_anchor(case_id)
    with visit(report, fragment=f"#{anchor}") as page:
        page.wait_for_timeout(500)
        assert [row.anchor for row in all_rows(page) if row.is_open] == [anchor]
        assert is_in_view(page, anchor)


def test_a_command_is_copied(visit: Visits, report: Path) -> None:
    with visit(report) as page:
        open_details(page, [SEEN_CASE])
        command = body_of(page, SEEN_CASE).locator(".command")
        command.locator("button").click()
        page.wait_for_function("document.querySelector('#told').textContent === 'Command copied'")
        page.fill("#filter-text", "")
        page.keyboard.press("Control+V")
        assert page.input_value("#filter-text") == command.locator("code").inner_text()
        assert SEEN_CASE in page.input_value("#filter-text")
