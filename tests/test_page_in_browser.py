"""The report in Chromium: every picture drawn, nothing asked for, nothing cut off, on phones, at desks and on paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.report.page.charts import figures
from perfsuite.report.page.words import case_anchor
from perfsuite.report.verdict_words import verdict_sentence
from perfsuite.testing.run_files import CHOSEN_CASES, HOSTILE_NAMES, synthetic_observation, synthetic_run
from tests.browser_chromium import axe_violations

from .browser_charts import seen_charts
from .browser_chromium import a_limit, skip_without_browser, the_browser, visit
from .browser_report import all_rows, open_details, overflow_px
from .browser_runs import SORTS, sort_report, usual_run, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

skip_without_browser()

browser = pytest.fixture(scope="module")(the_browser)
limit = pytest.fixture(autouse=True)(a_limit)

#: The most that a report of 500 cases may take, by itself and beside five other runs.
MAX_BYTES, MAX_BYTES_BESIDE = 1_900_000, 2_400_000

WIDTHS, SCHEMES = (360, 1440), ("light", "dark")
COMBINATIONS = [
    pytest.param(width, scheme, marks=() if (width, scheme) in ((360, "dark"), (1440, "light")) else pytest.mark.long)
    for width in WIDTHS
    for scheme in SCHEMES
]

#: Of each kind with times, so that each template of a case's figure is drawn.
OPENED = (*list(CHOSEN_CASES)[:2], "kernel/gemm/m64-n128-k576/f32", "tokenizer/encode/tokens64")

RUN = synthetic_run(n_cases=500)
OBSERVATION = synthetic_observation(RUN)


@pytest.fixture(scope="module")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run of 500 cases with everything in it."""
    return write_report(tmp_path_factory.mktemp("full"), RUN, OBSERVATION)


@pytest.fixture(scope="module")
def usual_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a smaller run that has as much to show."""
    return sort_report(tmp_path_factory.mktemp("usual"), "usual")


def test_a_report_of_500_cases_is_small(full_report: Path) -> None:
    """One file of less than 2 MB holds 500 cases with all that was seen."""
    assert full_report.stat().st_size < MAX_BYTES


def test_a_report_of_500_cases_beside_five_runs_is_small(tmp_path: Path) -> None:
    """Beside five other runs, and with names that take much room to write out, it is well below 3 MB."""
    run, *others = (synthetic_run(n_cases=500, seed=seed, names=HOSTILE_NAMES) for seed in range(6))
    observation = synthetic_observation(run, names=HOSTILE_NAMES)
    assert write_report(tmp_path, run, observation, *others).stat().st_size < MAX_BYTES_BESIDE


@pytest.mark.parametrize(("width", "scheme"), COMBINATIONS)
def test_all_is_drawn_and_nothing_asked_for(
    browser: Browser, full_report: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    """All figures have visible marks within their frames, nothing is wider than the screen, and all is quiet."""
    with visit(browser, full_report, width=width, scheme=scheme) as seen:
        charts = seen_charts(seen.page)
        seen.page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
        assert {each.place: each.defects for each in charts if each.defects} == {}
        assert {each.place for each in charts} == {each.figure_id for each in figures(RUN, OBSERVATION)}
        assert overflow_px(seen.page) == 0
        assert seen.problems == []


def test_a_full_run_has_a_figure_of_every_subject() -> None:
    """Where everything was seen there is a figure of each subject, but none of other runs."""
    subjects = {each.subject for each in figures(RUN, OBSERVATION)}
    assert subjects == {
        *("changes", "phases", "operators", "kernels", "attribution"),
        *("roofline", "timeline", "tokens", "graph", "machine"),
    }


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), COMBINATIONS)
def test_details_are_drawn_when_they_open(browser: Browser, usual_report: Path, width: int, scheme: str) -> None:
    """The times of a case are drawn when its row is opened, and not before; the page stays as wide as it was."""
    with visit(browser, usual_report, width=width, scheme=scheme) as seen:
        assert seen.page.locator("[data-case] svg").count() == 0
        open_details(seen.page, OPENED)
        charts = seen_charts(seen.page)
        assert {each.place: each.defects for each in charts if each.defects} == {}
        assert seen.page.locator("[data-case] svg").count() == len(OPENED)
        assert overflow_px(seen.page) == 0
        assert seen.problems == []


@pytest.mark.parametrize(("width", "scheme"), COMBINATIONS)
def test_axe_finds_nothing(browser: Browser, usual_report: Path, width: int, scheme: str) -> None:
    """Neither the page as it opens nor its opened details break a rule of WCAG 2.2 AA or of good practice."""
    with visit(browser, usual_report, width=width, scheme=scheme) as seen:
        seen_charts(seen.page)
        assert axe_violations(seen.page) == []
        open_details(seen.page, OPENED)
        for fold in seen.page.locator("details.fold > summary").all():
            fold.click()
        seen_charts(seen.page)
        assert axe_violations(seen.page) == []


@pytest.mark.long
@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_sort_of_run_is_shown(browser: Browser, tmp_path: Path, name: str, width: int) -> None:
    """The verdict is the heading and each case has a row, whatever the run has or lacks; nothing is out of order."""
    run = SORTS[name][0]()
    with visit(browser, sort_report(tmp_path, name), width=width, scheme="dark") as seen:
        heading = seen.page.locator("h1").inner_text().replace("\u00a0", " ")
        assert heading.lower().startswith(verdict_sentence(run).partition(";")[0].lower())
        rows = all_rows(seen.page)
        assert {row.anchor for row in rows if row.is_shown} == {case_anchor(each.case_id) for each in run.judgements}
        assert [(each.place, each.defects) for each in seen_charts(seen.page) if each.defects] == []
        assert overflow_px(seen.page) == 0
        assert width > min(WIDTHS) or axe_violations(seen.page) == []
        assert seen.problems == []


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
def test_several_runs_stand_side_by_side(browser: Browser, tmp_path: Path, width: int) -> None:
    """Each run has its column or its place in the details, its verdict, and its part in the figures."""
    others = [synthetic_run(n_cases=100, seed=seed, change_ratio=1.0 + seed / 20) for seed in (1, 2, 3, 4)]
    with visit(browser, write_report(tmp_path, usual_run(), OBSERVATION, *others), width=width) as seen:
        assert seen.page.locator("article.run h3").all_inner_texts() == [
            "This run",
            *(f"Run {n}" for n in (2, 3, 4, 5)),
        ]
        assert [(each.place, each.defects) for each in seen_charts(seen.page) if each.defects] == []
        open_details(seen.page, OPENED)
        assert seen.page.locator("table.beside:visible tbody tr").count() == len(others) * len(OPENED)
        assert [(each.place, each.defects) for each in seen_charts(seen.page) if each.defects] == []
        assert overflow_px(seen.page) == 0
        assert axe_violations(seen.page) == []
        assert seen.problems == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_scheme_can_be_changed(browser: Browser, usual_report: Path, scheme: str) -> None:
    """A button turns the page from light to dark or back, pictures included."""
    paper = "getComputedStyle(document.body).backgroundColor"
    with visit(browser, usual_report, scheme=scheme) as seen:
        seen_charts(seen.page)
        before = seen.page.evaluate(paper)
        seen.page.click("#theme")
        seen.page.wait_for_timeout(500)
        assert seen.page.evaluate(paper) != before
        assert [(each.place, each.defects) for each in seen_charts(seen.page) if each.defects] == []
        assert axe_violations(seen.page) == []
        seen.page.click("#theme")
        assert seen.page.evaluate(paper) == before
        assert seen.problems == []


@pytest.mark.long
@pytest.mark.parametrize("scheme", SCHEMES)
def test_on_paper_all_is_there(browser: Browser, usual_report: Path, scheme: str) -> None:
    """Printed are the verdict, every case with its details, and dark pictures on white, whatever the screen has."""
    with visit(browser, usual_report, scheme=scheme) as seen:
        seen_charts(seen.page)
        seen.page.emulate_media(media="print")
        seen.page.wait_for_timeout(500)
        assert seen.page.locator("h1").is_visible()
        assert [row.anchor for row in all_rows(seen.page) if not (row.is_shown and row.is_open)] == []
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert [(each.place, each.defects) for each in seen_charts(seen.page) if each.defects] == []
        printed = seen.page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 3
        assert seen.problems == []


def test_without_scripts_all_words_are_there(browser: Browser, usual_report: Path) -> None:
    """Where scripts are off, verdict, rows, details and what the figures show can be read; what needs them is not."""
    with visit(browser, usual_report, java_script_enabled=False) as seen:
        rows = all_rows(seen.page)
        assert len(rows) == len(usual_run().judgements)
        assert all(row.is_shown for row in rows)
        assert seen.page.locator("h1").is_visible()
        assert seen.page.locator("figure[data-figure] .summary").first.is_visible()
        assert not any(each.is_visible() for each in seen.page.locator(".filter, #theme, .copy").all())
        open_details(seen.page, OPENED[:1])
        assert seen.page.locator("tr.more:visible .reason").count() == 1
        assert seen.problems == []


def test_a_narrow_phone_and_a_wide_desk_are_enough(browser: Browser, usual_report: Path) -> None:
    """Pictures are drawn anew for the width that there is, from 320 pixels up, and none is cut off."""
    with visit(browser, usual_report, width=1920) as seen:
        for width in (1920, 820, 320):
            seen.page.set_viewport_size({"width": width, "height": 900})
            seen.page.wait_for_timeout(700)
            assert overflow_px(seen.page) == 0
            assert [(each.place, each.defects) for each in seen_charts(seen.page) if each.defects] == []
        assert seen.problems == []


def test_tables_of_all_kinds_have_the_same_columns(browser: Browser, usual_report: Path) -> None:
    """At a desk a column of one title is as wide in the table of each kind."""
    widths: dict[str, set[int]] = {}
    with visit(browser, usual_report, width=1440) as seen:
        for heading in seen.page.locator("table.cases > thead th:not(.case, .told)").all():
            box = heading.bounding_box()
            assert box is not None
            widths.setdefault(heading.inner_text(), set()).add(round(box["width"]))
    assert {"Measured", "Expected", "Change", "Outcome"} <= widths.keys()
    assert {title: found for title, found in widths.items() if len(found) > 1} == {}


#: Returns names that are broken elsewhere than at their joints: their texts up to the break.
_BROKEN = r"""
() => [...document.querySelectorAll("tr.case summary bdi")].flatMap((name) => {
  const found = [];
  const range = document.createRange();
  const pieces = [...name.childNodes].filter((each) => each.nodeType === Node.TEXT_NODE);
  for (const piece of pieces) {
    range.selectNodeContents(piece);
    const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
    if (lines.size > 1 && !/[-\s]/.test(piece.textContent)) found.push(piece.textContent);
  }
  return found;
})
"""


def test_on_a_phone_names_are_broken_at_their_joints(browser: Browser, usual_report: Path) -> None:
    """No part of a name between strokes, underscores and hyphens is split over two lines."""
    with visit(browser, usual_report, width=360) as seen:
        assert seen.page.evaluate(_BROKEN) == []
