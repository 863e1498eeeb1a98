"""The pages of the documentation: their fences, and the commands in those that show a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent

_PROMPT = "$ "
_CONTINUED = "> "

#: The comments that the tests read, such as ``<!-- needs: minutes, root -->`` and ``<!-- file: test_own.py -->``.
_COMMENT = re.compile(r"<!--\s*(needs|file):\s*(.*?)\s*-->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    page: str
    #: Of its first line, from 1 on.
    line: int
    language: str
    text: str
    #: What its commands need, as the comment above it says.
    needs: frozenset[str]
    #: The name under which a reader is to save it.
    file: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    page: str
    line: int
    text: str
    #: () where the page shows no output.
    output: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def page_paths() -> tuple[Path, ...]:
    """List the pages whose commands are tested: the README and all of docs/."""
    return (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def fences(text: str, page: str) -> tuple[Fence, ...]:
    found, comments = [], ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "html_block":
            comments += token.content
        elif token.type in ("fence", "code_block"):
            found.append(_fence(token, page, comments))
            comments = ""
        elif token.type != "list_item_open":
            comments = ""
    return tuple(found)


def _fence(token: Token, page: str, comments: str) -> Fence:
    assert token.map is not None
    said = dict(_COMMENT.findall(comments))
    needs = (word.strip() for word in said.get("needs", "").split(","))
    return Fence(
        page=page,
        line=token.map[0] + 1,
        language=token.info.strip() if token.type == "fence" else "indented",
        text=token.content,
        needs=frozenset(word for word in needs if word),
        file=said.get("file"),
    )


def commands(fence: Fence) -> tuple[Command, ...]:
    return tuple(_commands(fence)) if fence.language == "console" else ()


def _commands(fence: Fence) -> Iterator[Command]:
    lines = fence.text.splitlines()
    begins = [number for number, line in enumerate(lines) if line.startswith(_PROMPT)]
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        after = begin + 1
        while after < end and lines[after].startswith(_CONTINUED) and lines[after - 1].endswith("\\"):
            after += 1
        words = [lines[begin], *lines[begin + 1 : after]]
        yield Command(
            page=fence.page,
            line=fence.line + begin + 1,
            text="\n".join(line[len(_PROMPT) :] for line in words),
            output=tuple(lines[after:end]),
        )


def inline_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield what stands between back-quotes in a page's text, with the line of its paragraph."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            if child.type == "code_inline":
                yield (token.map[0] + 1 if token.map else 0), child.content
