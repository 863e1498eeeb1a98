"""Names that are code somewhere are shown as text by the report, wherever a run holds words of somebody's choice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.report.page.words import case_anchor, kind_title, short_name
from perfsuite.report.visible import visible
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_observation, synthetic_run
from tests.browser_chromium import axe_violations

from .browser_charts import seen_charts
from .browser_chromium import a_limit, skip_without_browser, the_browser, visit
from .browser_report import all_rows, by_id, choose, overflow_px, shown_anchors
from .browser_runs import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

skip_without_browser()

browser = pytest.fixture(scope="module")(the_browser)
limit = pytest.fixture(autouse=True)(a_limit)

RUN = synthetic_run(n_cases=140, names=HOSTILE_NAMES)
OBSERVATION = synthetic_observation(RUN, names=HOSTILE_NAMES)
USUAL = synthetic_run(n_cases=140)

#: What a name could bring into being.
_FOREIGN = "img, iframe, object, embed, form:not(.filter), [autofocus], [onload], [onerror], [onfocus], [onmouseover]"

_SCRIPTS = "document.querySelectorAll('script').length"

#: Returns texts with letters from right to left that stand in no isolation of their own.
_MIXED = """
() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const at = node.parentElement;
    const bare = node.textContent.replace(/\\u2068[^\\u2069]*\\u2069/g, "");
    if (!/[\\u0590-\\u08ff]/.test(bare) || at.closest("script, svg, option, code, bdi")) continue;
    found.push(at.outerHTML.slice(0, 200));
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run in which all words of somebody's choice are hostile."""
    return write_report(tmp_path_factory.mktemp("hostile"), RUN, OBSERVATION)


@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1440])
def test_names_do_nothing(browser: Browser, report: Path, width: int) -> None:
    """No name becomes an element, a script or a request, and none widens the page or spoils a picture."""
    with visit(browser, report, width=width) as seen:
        charts = seen_charts(seen.page)
        assert {each.place: each.defects for each in charts if each.defects} == {}
        assert seen.page.locator(_FOREIGN).count() == 0
        assert overflow_px(seen.page) == 0
        assert axe_violations(seen.page) == []
        assert seen.problems == []


def test_there_are_as_many_scripts_as_ever(browser: Browser, report: Path, tmp_path: Path) -> None:
    """A name adds no script to those of a run with usual names."""
    usual = write_report(tmp_path, USUAL, synthetic_observation(USUAL))
    with visit(browser, report) as seen, visit(browser, usual) as other:
        assert seen.page.evaluate(_SCRIPTS) == other.page.evaluate(_SCRIPTS)


@pytest.mark.long
def test_names_are_shown_letter_by_letter(browser: Browser, report: Path) -> None:
    """Each case's name and id, and each kind's title, are there as text; what cannot be seen is written out."""
    with visit(browser, report) as seen:
        for judgement in RUN.judgements:
            body = by_id(seen.page, case_anchor(judgement.case_id))
            assert body.locator("summary").first.text_content() == visible(short_name(judgement.case_id, RUN.workload))
            assert body.locator("p.id").text_content() == visible(judgement.case_id)
        titles = seen.page.locator(".kind-table .caption").all_text_contents()
        assert set(titles) == {visible(kind_title(each.kind)) for each in RUN.judgements}


@pytest.mark.long
def test_every_word_of_a_run_is_shown(browser: Browser, report: Path) -> None:
    """Device, workload, engine, branch, fingerprint and what it was compared with are somewhere on the page."""
    with visit(browser, report) as seen:
        shown = seen.page.locator("main").text_content() or ""
        commit = RUN.origin.commit
        assert commit is not None
        words = [RUN.device, RUN.workload, RUN.subjects["llama"], commit.branch, RUN.against]
        words += [RUN.fingerprints["llama"]["model"], *(phase.carriers[0].role for phase in RUN.attribution.phases)]
        assert [word for word in words if word is None or visible(word) not in shown] == []


def test_the_direction_of_a_name_is_its_own(browser: Browser, report: Path) -> None:
    """Letters from right to left are isolated from what is beside them, and nothing overrides a direction."""
    with visit(browser, report) as seen:
        assert seen.page.evaluate(_MIXED) == []
        assert not set("\u202e\u202b\u2067") & set(seen.page.locator("main").text_content() or "")


def test_hostile_cases_can_be_linked_and_filtered(browser: Browser, report: Path) -> None:
    """Each name chooses its case in the filter, and an address with it opens that case."""
    with visit(browser, report) as seen:
        for name in HOSTILE_NAMES:
            if "\n" not in name:  # a line of text has none
                choose(seen.page, text=name)
                assert case_anchor(f"tokenizer/{name}") in shown_anchors(seen.page)
        choose(seen.page)
        for judgement in RUN.judgements[7:20]:
            anchor = case_anchor(judgement.case_id)
            seen.page.evaluate("(hash) => { window.location.hash = hash; }", anchor)
            seen.page.wait_for_timeout(100)
            assert next(row for row in all_rows(seen.page) if row.anchor == anchor).is_open
        assert seen.problems == []


def test_a_kind_of_any_name_can_be_chosen(browser: Browser, report: Path) -> None:
    with visit(browser, report) as seen:
        for kind in dict.fromkeys(each.kind for each in RUN.judgements):
            choose(seen.page, kind=kind)
            expected = {case_anchor(each.case_id) for each in RUN.judgements if each.kind == kind}
            assert set(shown_anchors(seen.page)) == expected
