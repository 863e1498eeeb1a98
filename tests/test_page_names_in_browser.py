"""Names that are code somewhere are shown as text by the report, wherever a run holds words of somebody's choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.report.page.words import case_anchor, short_name
from perfsuite.report.visible import visible
from perfsuite.report.words import kind_title
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_observation, synthetic_run

from .browser_charts import drawn_charts
from .browser_chromium import Visits, axe_violations
from .browser_report import all_rows, by_id, choose, overflow_px, shown_anchors
from .browser_runs import write_report

RUN = synthetic_run(n_cases=140, names=HOSTILE_NAMES)
OBSERVATION = synthetic_observation(RUN, names=HOSTILE_NAMES)

#: What a name could bring into being.
_FOREIGN = "img, iframe, object, embed, form:not(.filter), [autofocus], [onload], [onerror], [onfocus], [onmouseover]"

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
    return write_report(tmp_path_factory.mktemp("hostile"), RUN, OBSERVATION)


@pytest.mark.parametrize("width", [360, 1440])
def test_names_do_nothing(visit: Visits, report: Path, width: int) -> None:
    """No name becomes an element, a script or a request, and none widens the page or spoils a picture."""
    with visit(report, width=width) as page:
        drawn_charts(page)
        assert page.locator(_FOREIGN).count() == 0
        assert overflow_px(page) == 0
        assert axe_violations(page) == []


def test_names_are_shown_letter_by_letter(visit: Visits, report: Path) -> None:
    """What cannot be seen is written out: of each case and kind, of device, workload and engine."""
    with visit(report) as page:
        for judgement in RUN.judgements:
            body = by_id(page, case_anchor(judgement.case_id))
            assert body.locator("summary").first.text_content() == visible(short_name(judgement.case_id, RUN.workload))
            assert body.locator("p.id").text_content() == visible(judgement.case_id)
        titles = page.locator(".kind-table .caption").all_text_contents()
        assert set(titles) == {visible(kind_title(each.kind)) for each in RUN.judgements}
        shown = page.locator("main").text_content() or ""
        commit = RUN.origin.commit
        assert commit is not None
        words = [RUN.device, RUN.workload, RUN.subjects["llama"], commit.branch, RUN.against]
        words += [RUN.fingerprints["llama"]["model"], *(phase.carriers[0].role for phase in RUN.attribution.phases)]
        assert [word for word in words if word is None or visible(word) not in shown] == []


def test_the_direction_of_a_name_is_its_own(visit: Visits, report: Path) -> None:
    """Letters from right to left are isolated from what is beside them, and nothing overrides a direction."""
    with visit(report) as page:
        assert page.evaluate(_MIXED) == []
        assert not set("\u202e\u202b\u2067") & set(page.locator("main").text_content() or "")


def test_hostile_cases_can_be_linked_and_filtered(visit: Visits, report: Path) -> None:
    """Each name chooses its case in the filter, each kind its cases, and an address with a name opens that case."""
    with visit(report) as page:
        for name in HOSTILE_NAMES:
            if "\n" not in name:  # a line of text has none
                choose(page, text=name)
                assert case_anchor(f"tokenizer/{name}") in shown_anchors(page)
        for kind in dict.fromkeys(each.kind for each in RUN.judgements):
            choose(page, kind=kind)
            expected = {case_anchor(each.case_id) for each in RUN.judgements if each.kind == kind}
            assert set(shown_anchors(page)) == expected
        choose(page)
        for judgement in RUN.judgements[7:20]:
            anchor = case_anchor(judgement.case_id)
            page.evaluate("(hash) => { window.location.hash = hash; }", anchor)
            page.wait_for_timeout(100)
            assert next(row for row in all_rows(page) if row.anchor == anchor).is_open
