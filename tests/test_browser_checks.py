"""What the tests of the report look for in the browser is found where it is there: pages with one defect each."""

from __future__ import annotations

from pathlib import Path

import pytest

from .browser_charts import seen_charts
from .browser_chromium import Visits

#: As strict as that of a report.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

MARK = '<path class="k0" d="M10,10h80v20h-80Z" {style}></path>'
LABEL = '<text x="{x}" y="60" fill="{fill}" font-size="12">label</text>'

NO_MARK = "has a picture without a mark that can be seen"


def document(folder: Path, body: str) -> Path:
    """Write a page that is in order except its body."""
    path = folder / "page.html"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><title>t</title>'
    main = f"<main><h1>Title</h1>{body}</main>"
    path.write_text(f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>', "utf-8")
    return path


def chart(content: str) -> str:
    svg = f'<svg width="200" height="80" role="img" aria-label="a">{content}</svg>'
    return f'<figure class="chart" id="one" style="margin: 0; width: 300px">{svg}</figure>'


@pytest.mark.parametrize(
    ("content", "defect"),
    [
        ("", NO_MARK),
        (MARK.format(style='fill="#fff"'), NO_MARK),
        (MARK.format(style='fill="#36c" transform="translate(500)"'), NO_MARK),
        (MARK.format(style='fill="#36c"') + LABEL.format(x=295, fill="#111"), "cuts off 'label'"),
        (MARK.format(style='fill="#36c"') + LABEL.format(x=10, fill="#ddd"), "writes 'label' too pale"),
    ],
)
def test_a_picture_without_visible_marks_is_found(visit: Visits, tmp_path: Path, content: str, defect: str) -> None:
    """Nothing, ink as white as the paper, marks outside, words cut off or pale: each is a defect."""
    with visit(document(tmp_path, chart(content))) as page:
        assert [each.defects for each in seen_charts(page)] == [(defect,)]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<script>console.error('broken')</script>", "error on the console: broken"),
        ("<script>throw new Error('gone')</script>", "a script failed: gone"),
        ("<script>alert(1)</script>", "opened a dialog: 1"),
        ("<img alt='a' src='https://example.invalid/a.png'>", "Content Security Policy"),
    ],
)
def test_what_goes_wrong_is_found(visit: Visits, tmp_path: Path, body: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem), visit(document(tmp_path, body)):
        pass
