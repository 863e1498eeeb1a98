"""What the tests of the report look for in the browser is found where it is there: pages with one defect each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .browser_charts import drawn_charts, seen_charts
from .browser_chromium import Visits, axe_violations

#: As strict as that of a report.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

MARK = '<path class="k0" d="M10,10h80v20h-80Z" {style}></path>'
LABEL = '<text x="{x}" y="60" fill="{fill}" font-size="12">label</text>'

NO_MARK = "has a picture without a mark that can be seen"


def document(folder: Path, body: str, policy: str = POLICY) -> Path:
    """Write a page that is in order except its body."""
    path = folder / "page.html"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}"><title>t</title>'
    main = f"<main><h1>Title</h1>{body}</main>"
    path.write_text(f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>', "utf-8")
    return path


def chart(content: str) -> str:
    svg = f'<svg width="200" height="80" role="img" aria-label="a">{content}</svg>'
    return f'<figure class="chart" id="one" style="margin: 0; width: 300px">{svg}</figure>'


def test_a_page_in_order_has_no_problem(visit: Visits, tmp_path: Path) -> None:
    """A picture with a mark and a label, and a strict policy, is found without fault."""
    content = MARK.format(style='fill="#36c"') + LABEL.format(x=10, fill="#111")
    with visit(document(tmp_path, chart(content))) as page:
        assert drawn_charts(page) == ["one"]
        assert axe_violations(page) == []


@pytest.mark.parametrize(
    ("content", "defect"),
    [
        ("", NO_MARK),
        (LABEL.format(x=10, fill="#111"), NO_MARK),
        (MARK.format(style='fill="#fff"'), NO_MARK),
        (MARK.format(style='fill="#36c" opacity="0"'), NO_MARK),
        (MARK.format(style='fill="none"'), NO_MARK),
        (MARK.format(style='fill="#36c" transform="translate(500)"'), NO_MARK),
        ('<line class="grid" x1="0" x2="90" y1="9" y2="9" stroke="#000"/>', NO_MARK),
        (MARK.format(style='fill="#36c"') + LABEL.format(x=295, fill="#111"), "cuts off 'label'"),
        (MARK.format(style='fill="#36c"') + LABEL.format(x=10, fill="#ddd"), "writes 'label' too pale"),
    ],
)
def test_a_picture_without_visible_marks_is_found(visit: Visits, tmp_path: Path, content: str, defect: str) -> None:
    """Nothing, ink as white as the paper, marks outside, words cut off or pale: each is a defect."""
    with visit(document(tmp_path, chart(content))) as page:
        assert [each.defects for each in seen_charts(page)] == [(defect,)]


def test_a_figure_that_stays_empty_is_found(visit: Visits, tmp_path: Path) -> None:
    """A figure that is shown and has no picture is a defect; a hidden one is none."""
    body = '<figure class="chart" id="one">a</figure>'
    hidden = '<details><summary>more</summary><figure class="chart" id="two">b</figure></details>'
    with visit(document(tmp_path, body + hidden)) as page:
        assert [(each.place, each.defects) for each in seen_charts(page)] == [("one", ("has no picture",))]


IMAGE = "<img alt='a' src='https://example.invalid/a.png'>"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<script>console.error('broken')</script>", "error on the console: broken"),
        ("<script>console.warn('odd')</script>", "warning on the console: odd"),
        ("<script>throw new Error('gone')</script>", "a script failed: gone"),
        ("<script>alert(1)</script>", "opened a dialog: 1"),
        (IMAGE, "Content Security Policy"),
    ],
)
def test_what_goes_wrong_is_found(visit: Visits, tmp_path: Path, body: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem), visit(document(tmp_path, body)):
        pass


def test_a_request_is_refused_and_found(visit: Visits, tmp_path: Path) -> None:
    """Where the policy lets a request pass, it does not leave the browser."""
    page = document(tmp_path, IMAGE, policy="default-src *")
    with pytest.raises(AssertionError, match=re.escape("asked for https://example.invalid/a.png")), visit(page):
        pass


def test_axe_finds_pale_words(visit: Visits, tmp_path: Path) -> None:
    with visit(document(tmp_path, "<p style='color: #ccc'>pale</p>")) as page:
        assert [each.split(":")[0] for each in axe_violations(page)] == ["color-contrast"]
