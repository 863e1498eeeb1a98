"""The report in Chromium: every picture drawn, nothing asked for, nothing cut off, on phones, at desks and on paper."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.report.page.charts import figures
from perfsuite.report.page.words import case_anchor
from perfsuite.report.verdict_words import verdict_sentence
from perfsuite.testing.run_files import CHOSEN_CASES, HOSTILE_NAMES, synthetic_observation, synthetic_run

from .browser_charts import drawn_charts
from .browser_chromium import Visits, axe_violations
from .browser_report import all_rows, open_details, overflow_px
from .browser_runs import SORTS, sort_report, usual_run, write_report

#: The most that a report of 500 cases may take beside five other runs.
MAX_BYTES_BESIDE = 1_900_000

WIDTHS, SCHEMES = (390, 1280), ("light", "dark")
COMBINATIONS = list(itertools.product(WIDTHS, SCHEMES))

#: Two phases and two operators of which samples are drawn.
OPENED = tuple(CHOSEN_CASES)[:4]

RUN = synthetic_run(n_cases=500)
OBSERVATION = synthetic_observation(RUN)


@pytest.fixture(scope="module")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("full"), RUN, OBSERVATION)


@pytest.fixture(scope="module")
def usual_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sort_report(tmp_path_factory.mktemp("usual"), "usual")


def test_a_report_of_500_cases_beside_five_runs_is_small(tmp_path: Path) -> None:
    """Beside five other runs, and with names that take much room to write out, it is below 2 MB."""
    run, *others = (synthetic_run(n_cases=500, seed=seed, names=HOSTILE_NAMES) for seed in range(6))
    observation = synthetic_observation(run, names=HOSTILE_NAMES)
    assert write_report(tmp_path, run, observation, *others).stat().st_size < MAX_BYTES_BESIDE


@pytest.mark.parametrize(("width", "scheme"), COMBINATIONS)
def test_all_is_drawn_and_nothing_asked_for(
    visit: Visits, full_report: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    with visit(full_report, width=width, scheme=scheme) as page:
        page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
        places = drawn_charts(page)
        wanted = {f"figure-{each.figure_id}" for each in figures(RUN, OBSERVATION)}
        assert {each for each in places if each.startswith("figure-")} == wanted
        assert overflow_px(page) == 0


#: Returns what of the answer cannot be seen without scrolling, or is cut off at a side.
_BELOW = """
(selectors) => selectors.flatMap((selector) => {
  const found = [...document.querySelectorAll(selector)];
  if (!found.length) return [`${selector}: not there`];
  return found.filter((each) => {
    const box = each.getBoundingClientRect();
    return !(each.checkVisibility() && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth);
  }).map((each) => `${selector}: ${each.textContent.trim().slice(0, 60)}`);
})
"""

#: What is on the first screen: verdict, changes with their pictures, causes, and what it was compared with, how surely.
_ANSWER = [
    *("h1", ".changes .name", ".changes .speed", ".changes svg.change", ".changes .by", ".changes .interval"),
    *(".changes .axis", ".who .bars li", ".about > div:nth-child(1)", ".about > div:nth-child(2)"),
]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_screen_has_the_answer(visit: Visits, tmp_path: Path, width: int) -> None:
    """Nobody has to scroll for what changed by how much, what caused it, against what, and how sure it is."""
    run = synthetic_run(n_cases=60)
    calm = {Outcome.IMPOSSIBLE, Outcome.SLOW, Outcome.IMPROVED, Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.NEW}
    kept = tuple(each for each in run.judgements if each.outcome not in calm)
    with visit(write_report(tmp_path, replace(run, judgements=kept)), width=width) as page:
        page.screenshot(path=tmp_path / "first.png")
        assert page.evaluate(_BELOW, _ANSWER) == []


#: Returns of each change on the page: its words, and where dot and bar end, as parts of the picture.
_CHANGES = """
() => [...document.querySelectorAll(".changes li:not(.axis), tr.case .change")].flatMap((row) => {
  const svg = row.querySelector("svg.change");
  if (!svg) return [];
  const frame = svg.getBoundingClientRect();
  const at = (x) => (x - frame.left) / frame.width;
  const dot = svg.querySelector("use").getBoundingClientRect();
  const bar = svg.querySelector(".span")?.getBoundingClientRect();
  return [{
    text: row.querySelector("strong")?.textContent ?? row.textContent.trim(),
    is_head: row.matches("li"),
    dot: at((dot.left + dot.right) / 2),
    bar: bar ? [at(bar.left), at(bar.right)] : null,
    interval: row.querySelector(".interval")?.textContent ?? null,
  }];
})
"""


def test_pictures_and_words_say_the_same(visit: Visits, usual_report: Path) -> None:
    """In the order of the changes' words lie the dots; a bar is there where an interval is written, around its dot."""
    with visit(usual_report) as page:
        found = page.evaluate(_CHANGES)
    for of_head in (True, False):
        rows = [each for each in found if each["is_head"] is of_head and each["text"].endswith("%")]
        assert len(rows) >= 3
        by_text = sorted(rows, key=lambda each: float(each["text"].removesuffix("%").strip()))
        dots = [each["dot"] for each in by_text]
        assert all(later >= earlier - 0.005 for earlier, later in itertools.pairwise(dots))
    for each in found:
        if each["is_head"]:
            assert (each["bar"] is None) == (each["interval"] == "no interval")
        if each["bar"]:
            assert each["bar"][0] - 0.05 <= each["dot"] <= each["bar"][1] + 0.05


@pytest.mark.parametrize(("width", "scheme"), COMBINATIONS)
def test_details_show_their_samples_and_axe_finds_nothing(
    visit: Visits, usual_report: Path, width: int, scheme: str
) -> None:
    """Neither the page as it opens nor its opened details break a rule of WCAG 2.2 AA or of good practice."""
    with visit(usual_report, width=width, scheme=scheme) as page:
        drawn_charts(page)
        assert page.locator(".samples:visible").count() == 0
        assert axe_violations(page) == []
        open_details(page, OPENED)
        assert page.locator(".samples:visible").count() == len(OPENED)
        for fold in page.locator("details.fold > summary").all():
            fold.click()
        drawn_charts(page)
        assert overflow_px(page) == 0
        assert axe_violations(page) == []


@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_sort_of_run_is_shown(visit: Visits, tmp_path: Path, name: str, width: int) -> None:
    run = SORTS[name][0]()
    with visit(sort_report(tmp_path, name), width=width, scheme="dark") as page:
        heading = page.locator("h1").inner_text().replace("\u00a0", " ")
        assert heading.lower().startswith(verdict_sentence(run).partition(";")[0].lower())
        rows = all_rows(page)
        assert {row.anchor for row in rows if row.is_shown} == {case_anchor(each.case_id) for each in run.judgements}
        drawn_charts(page)
        assert overflow_px(page) == 0
        assert width > min(WIDTHS) or axe_violations(page) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_on_paper_all_is_there(visit: Visits, usual_report: Path, scheme: str) -> None:
    """Printed are the verdict, every case with its details, and dark pictures on white, whatever the screen has."""
    with visit(usual_report, scheme=scheme) as page:
        drawn_charts(page)
        page.emulate_media(media="print")
        assert page.locator("h1").is_visible()
        assert [row.anchor for row in all_rows(page) if not (row.is_shown and row.is_open)] == []
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        drawn_charts(page)
        printed = page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 3


def test_without_scripts_all_words_are_there(visit: Visits, usual_report: Path) -> None:
    """Where scripts are off, verdict, rows, details and what the figures show can be read; what needs them is not."""
    with visit(usual_report, java_script_enabled=False) as page:
        rows = all_rows(page)
        assert len(rows) == len(usual_run().judgements)
        assert all(row.is_shown for row in rows)
        assert page.locator("h1").is_visible()
        drawn_charts(page)
        assert page.locator("figure.chart .summary").first.is_visible()
        assert not any(each.is_visible() for each in page.locator(".filter, #theme, .copy").all())
        open_details(page, OPENED[:1])
        assert page.locator("tr.more:visible .reason").count() == 1


def test_a_narrow_phone_and_a_wide_desk_are_enough(visit: Visits, usual_report: Path) -> None:
    """Pictures fit the width that there is, from 320 pixels up, and none is cut off."""
    with visit(usual_report, width=1920) as page:
        for width in (1920, 820, 320):
            page.set_viewport_size({"width": width, "height": 900})
            assert overflow_px(page) == 0
            drawn_charts(page)
