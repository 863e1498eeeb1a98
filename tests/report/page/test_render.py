"""The page as HTML."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from perfsuite.records.outcome import Outcome, told_judgement
from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import BoardName
from perfsuite.report.page.findings import MAX_CARDS
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.render import page_view, render_page, write_page
from perfsuite.report.page.words import case_anchor
from perfsuite.report.visible import visible
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from .conftest import observed_run


def run_of(seed: int = 0, n_regressed: int = 5) -> PageRun:
    return observed_run(synthetic_run(n_cases=150, seed=seed, n_regressed=n_regressed))


def test_every_figure_has_one_place_and_no_failure_is_lost() -> None:
    """Figures are in their sections, the foremost failures are cards."""
    view = page_view([run_of(), run_of(1)])
    placed = [*view.figures, *view.run_figures, *view.machine_figures]
    assert len({each.figure_id for each in placed}) == len(placed)
    assert {each.subject for each in view.machine_figures} == {"machine"}
    assert {each.subject for each in view.run_figures} == {"runs"}
    view = page_view([run_of(n_regressed=40)])
    assert len(view.failure_cards) == MAX_CARDS
    assert len(view.failure_lines) > 10


#: Elements that have no end tag.
VOID = {"meta", "link", "input", "br", "img", "wbr"}

#: Elements whose end HTML implies, each with what comes within its parent and ends it by beginning.
IMPLIED = {
    "dt": {"dd", "dt"},
    "dd": {"dd", "dt"},
    "th": {"th", "td", "tr", "tbody"},
    "td": {"th", "td", "tr", "tbody"},
    "tr": {"tr", "tbody"},
    "thead": {"tbody"},
    "tbody": {"tbody"},
}

#: What the page may hold of elements that load or run something.
SCRIPTS_AND_STYLES = {"script", "style"}


class Page(HTMLParser):
    """What a page holds, as a browser would read it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element with its attributes."""
        while self.open and tag in IMPLIED.get(self.open[-1], ()):
            self.open.pop()
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close what was opened last, which must be this, or something within it whose end is implied."""
        while self.open[-1] != tag and self.open[-1] in IMPLIED:
            self.open.pop()
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the text, that of scripts apart; where it may be broken it goes on."""
        if self.open and self.open[-1] == "script":
            self.scripts.append((self.elements[-1][1], data))
        elif self.texts and self.elements[-1][0] == "wbr":
            self.texts[-1] += data
        elif not (self.open and self.open[-1] in SCRIPTS_AND_STYLES):
            self.texts.append(data)

    @property
    def ids(self) -> list[str]:
        """All ids in their order."""
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(*runs: RunFile) -> Page:
    return Page(render_page([observed_run(run) for run in runs]))


RUN = synthetic_run(n_cases=120)
HOSTILE = synthetic_run(n_cases=80, names=HOSTILE_NAMES)


@pytest.fixture(scope="module")
def usual() -> Page:
    return page(RUN)


@pytest.fixture(scope="module")
def hostile() -> Page:
    return page(HOSTILE)


@pytest.mark.parametrize("name", ["usual", "hostile"])
def test_what_is_opened_is_closed(name: str, request: pytest.FixtureRequest) -> None:
    """Every element has its end in its place, and no id is there twice."""
    found = request.getfixturevalue(name)
    assert found.open == ["html"] or found.open == []
    assert len(found.ids) == len(set(found.ids))


#: Looks of the pictures that the suite draws.
PICTURES = {"symbols", "area", "bar", "change", "change-axis", "curves", None}


def foreign(found: Page) -> list[str]:
    """Elements and handlers that a name brought into being."""
    tags = [tag for tag, _ in found.elements if tag in {"img", "iframe", "object", "embed"}]
    tags += [f"svg {each}" for each in found.of("svg") if each.get("class") not in PICTURES]
    return [*tags, *(name for _, attributes in found.elements for name in attributes if name.startswith("on"))]


def test_names_are_text(hostile: Page) -> None:
    """They make no element and no attribute, end no data, and each link leads to a place of the page."""
    shown = set(hostile.texts)
    for name in HOSTILE_NAMES:
        assert visible(f"tokenizer/{name}") in shown or any(visible(name) in text for text in shown)
    assert foreign(hostile) == []
    assert len(hostile.scripts) == 2
    ids = set(hostile.ids)
    targets = [str(each["href"])[1:] for each in hostile.of("a")]
    assert set(targets) <= ids
    assert {case_anchor(each.case_id) for each in HOSTILE.judgements} <= ids


def policy_of(found: Page) -> str:
    return next(str(each["content"]) for each in found.of("meta") if "http-equiv" in each)


def test_nothing_is_loaded_and_no_foreign_script_runs(usual: Page) -> None:
    """The policy forbids every request, and names each script of the page by its digest."""
    policy = policy_of(usual)
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    sources = policy.partition("script-src ")[2]
    assert "unsafe-inline" not in sources
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for _, text in usual.scripts]
    assert sources.split() == [f"'sha256-{digest}'" for digest in digests]
    loaded = [each for _, each in usual.elements if each.get("src") or str(each.get("href", "#"))[0] != "#"]
    assert [each["href"] for each in loaded] == ["data:,"]


def test_the_page_can_be_read_without_seeing_it(usual: Page) -> None:
    """Language, landmarks, captions, headings and states of sorting are there; buttons wait for the script."""
    assert usual.of("html")[0]["lang"] == "en"
    assert {"title", "main", "nav", "header", "footer"} <= {tag for tag, _ in usual.elements}
    assert len(usual.of("caption")) == len(usual.of("table"))
    assert {each.get("scope") for each in usual.of("th")} == {"row", "col"}
    sortable = [each for each in usual.of("th") if "aria-sort" in each]
    assert {each["aria-sort"] for each in sortable} == {"none"}
    waiting = [each for each in usual.of("button") if "data-outcome" in each]
    assert waiting
    assert all("disabled" in each for each in waiting)


def text_of(found: Page) -> str:
    return re.sub(r"\s+", " ", " ".join(found.texts))


@pytest.mark.parametrize(
    ("judgements", "expected"),
    [
        ((), "Nothing was measured."),
        ((told_judgement("", "", Outcome.NEW, ""),), "Nothing to compare with yet."),
    ],
)
def test_every_run_has_a_page(judgements: Sequence[object], expected: str) -> None:
    bare = replace(RUN, judgements=tuple(judgements), attribution=replace(RUN.attribution, phases=()))  # type: ignore[arg-type]
    assert expected in text_of(page(bare))


def test_half_a_character_can_be_written(tmp_path: Path) -> None:
    odd = replace(RUN, judgements=(replace(RUN.judgements[0], case_id="phase/a\ud800"), *RUN.judgements[1:]))
    path = write_page([observed_run(odd)], tmp_path / "new" / "report.html")
    assert r"a\ud800" in path.read_text("utf-8")


def test_a_usual_page_is_small() -> None:
    """With 83 cases it takes less than 300 KB, with all that it shows; each further case about 2.5 KB."""
    usual, large = (len(render_page([observed_run(synthetic_run(n_cases=n))]).encode()) for n in (83, 500))
    assert usual < 300_000
    assert (large - usual) / (500 - 83) < 2_500


def test_the_device_is_told_as_text() -> None:
    board = BoardName(identity=HOSTILE_NAMES[0], hostname=HOSTILE_NAMES[1], is_linked=True)
    origin = replace(HOSTILE.origin, board=board)
    told = page(replace(HOSTILE, origin=origin, device_notes=("the link was lost & came back", *HOSTILE_NAMES)))
    assert "the link was lost & came back" in told.texts
    assert visible(board.text) in told.texts
    assert foreign(told) == []
    assert not any(attributes.get("id") == "device-notes" for _, attributes in page(HOSTILE).elements)
