"""The linter of plain English: each rule with its examples, and what is read of documents and code."""

from __future__ import annotations

import pytest

from .loaded_tool import loaded_tool

STYLE = loaded_tool("style")


def found(text: str, kind: str = "document", file: str = "docs/page.md") -> list[str]:
    return [each.remedy for each in STYLE.findings(STYLE.Block(line=1, text=text, kind=kind), file)]


@pytest.mark.parametrize("rule", STYLE.RULES, ids=lambda rule: rule.bad)
def test_each_rule_finds_its_bad_example_alone(rule: object) -> None:
    """The bad example of a rule has one finding, with the rule's remedy, and its good example has none."""
    kind = "heading" if rule.only_headings else "document"
    assert rule.remedy in found(rule.bad, kind)
    assert found(rule.good, kind) == []


def test_code_is_no_prose() -> None:
    """Fences, code between back-quotes and pictures are not read; links and cells are, with their lines."""
    page = (
        "# In `order to`\n\n```\nin order to\n```\n\nA [link in order](to.md) `to`\n\n| a |\n|---|\n| in order to |\n"
    )
    blocks = list(STYLE.document_blocks(page))
    assert [(each.line, each.kind, each.text) for each in blocks] == [
        (1, "heading", "In `code`"),
        (7, "document", "A link in order `code`"),
        (9, "document", "a"),
        (11, "document", "in order to"),
    ]


def test_what_is_ignored_is_still_there() -> None:
    """Each entry of the list of ignored findings has a reason, and lets a finding pass."""
    for entry in STYLE.IGNORED:
        path = STYLE.ROOT / entry.file
        everything = [each for block in STYLE.blocks(path) for each in STYLE.findings(block, entry.file)]
        assert entry.reason
        assert any(STYLE.ignored(each) is entry for each in everything), entry.file
