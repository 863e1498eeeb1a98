"""The report in use: filter, sort, keyboard, links to cases, and the button that copies a command."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.page.words import case_anchor
from perfsuite.testing.run_cases import operator_id, phase_id

from .browser_chromium import Visit, a_limit, skip_without_browser, the_browser, visit
from .browser_report import all_rows, body_of, by_id, choose, headings, open_details, shown_anchors, sort_by
from .browser_runs import sort_report, usual_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

skip_without_browser()

browser = pytest.fixture(scope="module")(the_browser)
limit = pytest.fixture(autouse=True)(a_limit)

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
    """Return the report of a run with all outcomes and kinds."""
    return sort_report(tmp_path_factory.mktemp("report"), "usual")


def anchors(**wanted: str | None) -> set[str]:
    """Return the anchors of the cases of an outcome or of a kind."""
    return {
        anchor
        for anchor, case in CASES.items()
        if wanted.get("outcome", case.outcome.value) == case.outcome.value
        and wanted.get("kind", case.kind) == case.kind
    }


def test_text_chooses_the_cases_that_have_all_its_words(browser: Browser, report: Path) -> None:
    """The words of a text are parts of a case's name, in any order and in either case of letters."""
    with visit(browser, report) as seen:
        for text in ("swiglu", "FFN_up", "decode cur", "q8_0/siso/prefill/rest", "kernel k576 f32", "zzz"):
            choose(seen.page, text=text)
            expected = {anchor for anchor, case in CASES.items() if has_words(case.case_id, text)}
            assert set(shown_anchors(seen.page)) == expected
            assert seen.page.locator("#shown").inner_text() == f"{len(expected)} of {len(CASES)} cases"
        assert seen.problems == []


def has_words(case_id: str, text: str) -> bool:
    """Whether all words of a text are part of a name."""
    return all(word in case_id.lower() for word in text.lower().split())


@pytest.mark.long
def test_every_outcome_and_kind_can_be_chosen(browser: Browser, report: Path) -> None:
    """Each outcome and each kind shows its own cases, both together those of both, and all come back."""
    with visit(browser, report) as seen:
        for outcome in Outcome:
            choose(seen.page, outcome=outcome.value)
            assert set(shown_anchors(seen.page)) == anchors(outcome=outcome.value)
        for kind in KINDS:
            choose(seen.page, kind=kind)
            assert set(shown_anchors(seen.page)) == anchors(kind=kind)
        choose(seen.page, kind="operator", outcome="regressed", text="decode")
        assert shown_anchors(seen.page) == [case_anchor(operator_id("decode", "ffn_swiglu"))]
        seen.page.click(".filter button[type=reset]")
        seen.page.wait_for_function(f"document.querySelector('#shown').textContent.startsWith('{len(CASES)} of')")
        assert set(shown_anchors(seen.page)) == set(CASES)
        assert seen.problems == []


@pytest.mark.long
def test_the_counts_at_the_head_choose_their_outcome(browser: Browser, report: Path) -> None:
    """Each count is that of the run, shows its cases when it is chosen, and all when it is chosen again."""
    with visit(browser, report) as seen:
        for button in seen.page.locator(".head button.count").all():
            outcome = button.get_attribute("data-outcome")
            expected = anchors(outcome=outcome)
            assert button.inner_text().split()[0] == str(len(expected))
            button.click()
            assert set(shown_anchors(seen.page)) == expected
            assert button.get_attribute("aria-pressed") == "true"
            button.click()
            assert set(shown_anchors(seen.page)) == set(CASES)
        assert seen.problems == []


@pytest.mark.long
def test_figures_are_sorted_by_their_values(browser: Browser, report: Path) -> None:
    """Each column of figures is sorted up and then down by what it shows, not by its text; what has none is last."""
    with visit(browser, report) as seen:
        columns = [(kind, title) for kind in KINDS for title in headings(seen.page, kind) if title in SHOWN]
        assert len(columns) > 25
        for kind, title in columns:
            for is_falling in (False, True):
                values = [SHOWN[title](CASES[anchor]) for anchor in sort_by(seen.page, kind, title)]
                known = sorted((value for value in values if value is not None), reverse=is_falling)
                assert values == known + [None] * (len(values) - len(known)), f"{kind} by {title}"
        assert seen.problems == []


@pytest.mark.long
def test_names_and_outcomes_are_sorted_as_people_would(browser: Browser, report: Path) -> None:
    """Names are sorted with their numbers as numbers, outcomes in groups, with those first that fail."""
    with visit(browser, report) as seen:
        for kind in KINDS:
            names = [CASES[anchor].case_id for anchor in sort_by(seen.page, kind, "Case")]
            assert names == sorted(names, key=natural)
            outcomes = [CASES[anchor].outcome for anchor in sort_by(seen.page, kind, "Outcome")]
            groups = [outcome for outcome, _ in groupby(outcomes)]
            assert len(groups) == len(set(outcomes))
            assert [each.fails for each in groups] == sorted((each.fails for each in groups), reverse=True)
        assert seen.problems == []


def natural(name: str) -> list[tuple[int, str]]:
    """Return what sorts a name as people do: numbers by value, letters whatever their case, signs before both."""
    words = re.findall(r"\d+|[a-z]+|[^\da-z]", name.lower())
    return [(int(word), "") if word.isdigit() else (-1 if not word.isalpha() else 1 << 40, word) for word in words]


@pytest.mark.long
def test_a_sorted_column_says_so(browser: Browser, report: Path) -> None:
    """The heading that a table is sorted by tells its direction, and no other of the table does."""
    with visit(browser, report) as seen:
        told = "() => [...document.querySelectorAll('[data-kind=operator] th[aria-sort]')].map((e) => e.ariaSort)"
        sort_by(seen.page, "operator", "Measured")
        assert sorted(set(seen.page.evaluate(told))) == ["ascending", "none"]
        sort_by(seen.page, "operator", "Change")
        assert seen.page.evaluate(told).count("ascending") == 1
        assert seen.problems == []


def pressed_until(page: Page, selector: str, most: int) -> int:
    """Press Tab until what has the focus fits; return how often, or fail after so many."""
    for count in range(1, most + 1):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return count
    raise AssertionError(f"{selector} has no focus after Tab was pressed {most} times")


def test_a_case_is_opened_with_the_keyboard_alone(browser: Browser, report: Path) -> None:
    """From the filter, Tab leads to the rows; Enter opens one, and closes it again."""
    with visit(browser, report) as seen:
        assert pressed_until(seen.page, "a.skip", 1) == 1
        seen.page.focus("#filter-text")
        seen.page.keyboard.type("decode/ffn_up")
        pressed_until(seen.page, "table.cases summary", 30)
        seen.page.keyboard.press("Enter")
        body = body_of(seen.page, SEEN_CASE)
        body.locator(".reason").wait_for()
        seen.page.keyboard.press("Enter")
        body.locator(".reason").wait_for(state="hidden")
        assert seen.problems == []


@pytest.mark.long
def test_what_has_the_focus_can_be_seen(browser: Browser, report: Path) -> None:
    """Whatever Tab reaches has an outline and lies within the window."""
    look = """
    () => {
      const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
      const isOutlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
      return isOutlined && box.bottom > 0 && box.top < innerHeight && box.width > 0 && box.left >= 0
        ? null : at.outerHTML.slice(0, 200);
    }
    """
    with visit(browser, report, width=360) as seen:
        for _ in range(60):
            seen.page.keyboard.press("Tab")
            assert seen.page.evaluate(look) is None


def is_in_view(seen: Visit, anchor: str) -> bool:
    """Whether the first line of a case is within the window."""
    box = by_id(seen.page, anchor).locator("summary").first.bounding_box()
    assert box is not None
    assert seen.page.viewport_size is not None
    return 0 <= box["y"] < seen.page.viewport_size["height"]


@pytest.mark.long
@pytest.mark.parametrize("case_id", [SEEN_CASE, "roofline/prompt/smollm2-135m-q8_0 64+32/prefill"])
def test_an_address_leads_to_its_case(browser: Browser, report: Path, case_id: str) -> None:
    """A page that is opened with the address of a case shows it opened, spaces in its name or not."""
    anchor = case_anchor(case_id)
    with visit(browser, report, fragment=f"#{anchor}") as seen:
        seen.page.wait_for_timeout(500)
        assert [row.anchor for row in all_rows(seen.page) if row.is_open] == [anchor]
        assert is_in_view(seen, anchor)
        assert seen.problems == []


@pytest.mark.long
def test_links_of_the_findings_lead_to_their_cases(browser: Browser, report: Path) -> None:
    """A link to a case opens it, also where the filter hides it and where it was opened and closed before."""
    with visit(browser, report) as seen:
        anchor = case_anchor(phase_id("decode"))
        link = seen.page.locator(f"#findings a[href='#{anchor}']").first
        choose(seen.page, text="zzz")
        for _ in range(2):
            link.click()
            seen.page.wait_for_timeout(300)
            assert next(row for row in all_rows(seen.page) if row.anchor == anchor).is_open
            assert is_in_view(seen, anchor)
            by_id(seen.page, anchor).locator("summary").first.click()
        assert seen.problems == []


def test_every_link_within_the_page_leads_somewhere(browser: Browser, report: Path) -> None:
    with visit(browser, report) as seen:
        links = seen.page.locator("a").evaluate_all("all => all.map((each) => each.getAttribute('href'))")
        ids = seen.page.locator("[id]").evaluate_all("all => all.map((each) => each.id)")
        assert len(ids) == len(set(ids))
        assert {link for link in links if not (link.startswith("#") and link[1:] in ids)} == set()


@pytest.mark.long
def test_a_command_is_copied(browser: Browser, report: Path) -> None:
    """The button copies the whole command, and says that it did."""
    with visit(browser, report) as seen:
        open_details(seen.page, [SEEN_CASE])
        command = body_of(seen.page, SEEN_CASE).locator(".command")
        command.locator("button").click()
        seen.page.wait_for_function("document.querySelector('#told').textContent === 'Command copied'")
        seen.page.fill("#filter-text", "")
        seen.page.keyboard.press("Control+V")
        assert seen.page.input_value("#filter-text") == command.locator("code").inner_text()
        assert SEEN_CASE in seen.page.input_value("#filter-text")
        assert seen.problems == []
