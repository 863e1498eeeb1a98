"""A linter of plain English: documents, messages and docstrings against the rules of tools/style_rules.py.

    python tools/style.py                 every document, message and docstring of the repository
    python tools/style.py README.md docs  these files and folders
    python tools/style.py --rules         the rules, with an example of each

docs/style.md says how we write.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

sys.path.insert(0, str(Path(__file__).parent))
from style_rules import MOST_WORDS, RULES, Rule

ROOT = Path(__file__).resolve().parent.parent

#: What a sentence ends with, and what the next one begins with.
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])[)'\"]? +(?=[A-Z0-9`'\"(])")

#: A string of the code that somebody reads: three words that follow each other, with values between them.
_PROSE = re.compile(r"(?:\b[A-Za-z]?[a-z]+[ ,{}]+){2}[a-z]+")

#: What stands for code and values inside a sentence.
_CODE, _VALUE = "`code`", "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A finding that is right as it is."""

    file: str
    #: Some of the words that are found; "" for all of the file.
    words: str
    reason: str


IGNORED = (Ignored(file="docs/style.md", words="", reason="it quotes the sentences that the rules find"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, heading, cell, docstring or message."""

    #: Of its first line, from 1 on.
    line: int
    text: str
    kind: str = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Words of a file that a rule finds."""

    file: str
    line: int
    #: What is found, and a few words around it.
    words: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.words!r}: {self.remedy}"


# ---- what is read ----------------------------------------------------------------------------------------------------


def document_blocks(text: str) -> Iterator[Block]:
    """Yield paragraphs, headings and cells of a Markdown page, without its fences."""
    line, kind = 1, "document"
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.map:
            line = token.map[0] + 1
        if token.type == "heading_open":
            kind = "heading"
        elif token.type == "inline":
            yield Block(line=line, text=plain(token), kind=kind)
            kind = "document"


def plain(token: Token) -> str:
    """Return the words of a paragraph, with line breaks where the file has them and a mark in place of code."""
    parts = {"code_inline": _CODE, "softbreak": "\n", "hardbreak": "\n"}
    return "".join(parts.get(child.type, child.content) for child in token.children or () if child.type != "image")


def code_blocks(source: str, *, only_docstrings: bool) -> Iterator[Block]:
    """Yield the docstrings of a Python file, and the other strings that read like a sentence."""
    inside: set[ast.AST] = set()
    tree = ast.parse(source)
    for node in docstrings(tree) if only_docstrings else ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else _VALUE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            text = node.value
        else:
            continue
        if _PROSE.search(text):
            yield from paragraphs(text, node.lineno)


def docstrings(node: ast.Module | ast.stmt) -> Iterator[ast.AST]:
    """Yield the strings that stand alone at the top of modules, classes and functions, those within them too."""
    for each in getattr(node, "body", ()):
        if isinstance(each, ast.Expr):
            yield each.value
        elif isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from docstrings(each)


def paragraphs(text: str, line: int) -> Iterator[Block]:
    """Yield the paragraphs of a string; what is indented within a docstring, or between back-quotes, is code."""
    for match in re.finditer(r"(?:[^\n]*\S[^\n]*\n?)+", text):
        body = re.sub(r"``[^`]+``|`[^`\n]+`", _CODE, match[0].rstrip("\n"))
        yield Block(line=line + text.count("\n", 0, match.start()), text=re.sub(r"(?<=\n) +", "", body.lstrip(" ")))


def blocks(path: Path) -> Iterator[Block]:
    """Yield what a file says, by its kind."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return document_blocks(text)
    return code_blocks(text, only_docstrings=not path.is_relative_to(ROOT / "perfsuite"))


def files(chosen: Iterable[str]) -> Iterator[Path]:
    """Yield the Markdown and Python files of the repository, or of the files and folders that are chosen."""
    for top in [Path(each).resolve() for each in chosen] or [ROOT]:
        if not top.exists():
            raise SystemExit(f"style: {top}: no such file or folder")
        if top.is_file():
            yield top
        for folder, inner, names in os.walk(top):
            inner[:] = sorted(each for each in inner if not each.startswith(".") and each != "build")
            yield from (Path(folder, name) for name in sorted(names) if name.endswith((".md", ".py")))


# ---- what is found ---------------------------------------------------------------------------------------------------


def findings(block: Block, file: str) -> Iterator[Finding]:
    """Yield what the rules find in a block: words to avoid, and sentences of documents that are too long."""
    text = re.sub(r"\s", " ", block.text)
    for rule in rules(block.kind, file == "CHANGELOG.md"):
        for match in rule.regex.finditer(text):
            line = block.line + block.text.count("\n", 0, match.start())
            yield Finding(file=file, line=line, words=around(text, match), remedy=rule.remedy)
    begin = 0
    for sentence in () if block.kind == "code" else _BETWEEN_SENTENCES.split(text):
        n_words = len(re.findall(r"\b[A-Za-z][\w'-]*|`code`", sentence))
        if n_words > MOST_WORDS:
            line = block.line + block.text.count("\n", 0, begin)
            words = " ".join(sentence.split()[:6]) + " ..."
            yield Finding(file=file, line=line, words=words, remedy=f"{n_words} words; split it, at most {MOST_WORDS}")
        begin = text.find(sentence, begin) + len(sentence)


def around(text: str, match: re.Match[str]) -> str:
    """Return what is found, with up to two words before it and three behind it."""
    before = text[: match.start()].split()[-2:] if match.start() else []
    return " ".join([*before, match[0].strip(), *text[match.end() :].split()[:3]])


@cache
def rules(kind: str, is_changelog: bool) -> tuple[Rule, ...]:
    """Return the rules for blocks of a kind; the changelog may say what was."""
    every = [each for each in RULES if not (is_changelog and "changelog" in each.remedy)]
    if kind == "code":
        return tuple(each for each in every if not each.only_documents and not each.only_headings)
    return tuple(each for each in every if kind == "heading" or not each.only_headings)


def ignored(found: Finding) -> Ignored | None:
    """Return the entry of the list that lets a finding pass."""
    return next((each for each in IGNORED if each.file == found.file and each.words in found.words), None)


def checked(path: Path) -> list[Finding]:
    """Return the findings in a file that no entry of the list lets pass, line by line."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    found = [each for block in blocks(path) for each in findings(block, name) if ignored(each) is None]
    return sorted(found, key=lambda each: each.line)


def main() -> int:
    """Print the findings, and how many there are by kind of file; 1 where there are some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="files and folders (default: the whole repository)")
    parser.add_argument("--rules", action="store_true", help="print the rules")
    options = parser.parse_args()
    if options.rules:
        for rule in RULES:
            print(f"{rule.remedy}\n  not:  {rule.bad}\n  but:  {rule.good}")
        return 0
    with ProcessPoolExecutor() as processes:
        found = [each for some in processes.map(checked, files(options.files), chunksize=50) for each in some]
    for each in found:
        print(each)
    if found:
        kinds = Counter("documents" if each.file.endswith(".md") else each.file.split("/")[0] for each in found)
        told = ", ".join(f"{count} in {kind}" for kind, count in kinds.most_common())
        print(f"style: {len(found)} findings: {told}; docs/style.md says how we write", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
