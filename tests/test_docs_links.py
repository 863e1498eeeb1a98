"""Links of the documentation lead to pages, headings and files that are there; no network is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from .docs_pages import ROOT, page_name, page_paths

PAGES = {
    page_name(path): path for path in (*page_paths(), *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")))
}

MARKDOWN = MarkdownIt("commonmark").enable("table")


def slugs(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: Counter[str] = Counter()
    anchors = set()
    tokens = MARKDOWN.parse(text)
    for token, following in pairwise(tokens):
        if token.type != "heading_open":
            continue
        told = "".join(child.content for child in following.children or ())
        slug = re.sub(r"[^\w\- ]", "", told.lower()).replace(" ", "-")
        anchors.add(slug if not found[slug] else f"{slug}-{found[slug]}")
        found[slug] += 1
    return anchors


def links(text: str) -> Iterator[tuple[int, str]]:
    """The targets of links and pictures of a page, with the line of their paragraph."""
    for token in MARKDOWN.parse(text):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target is not None:
                yield (token.map[0] + 1 if token.map else 0), str(target)


def broken(page: Path, target: str) -> str | None:
    """What is wrong with a link of a page; None where it leads somewhere, or out of the repository."""
    if re.match(r"[a-z]+:", target):
        return None if target.startswith("https://") else f"{target}: expected https"
    name, _, anchor = target.partition("#")
    path = (page.parent / unquote(name)).resolve() if name else page
    if not path.is_relative_to(ROOT) or not path.exists():
        return f"{target}: no such file"
    if anchor and (path.suffix != ".md" or unquote(anchor) not in slugs(path.read_text("utf-8"))):
        return f"{target}: no such heading"
    return None


def listed(text: str) -> set[str]:
    """The pages that toctrees name, without their suffix."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return {line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    """Each page, heading and file that a page links to is there."""
    found = links(PAGES[page].read_text("utf-8"))
    assert [f"{page}:{line}: {wrong}" for line, target in found if (wrong := broken(PAGES[page], target))] == []


def test_every_page_is_in_the_table_of_contents() -> None:
    """docs/index.md lists every page of docs/, and no other."""
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed((ROOT / "docs" / "index.md").read_text("utf-8")) == pages - {"index"}


def test_every_page_is_linked_from_the_first() -> None:
    """Readers on GitHub, where there is no table of contents, get from docs/index.md to every page."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for _, target in links(index.read_text("utf-8")) if ":" not in target}
    assert [page_name(path) for path in page_paths()[1:] if path != index and path not in linked] == []
