"""Count the words of the documents by kind, and how easy they are to read.

    python tools/readability.py                      the working tree
    python tools/readability.py f0084806 HEAD        two revisions, side by side
    python tools/readability.py --table f0084806 .   the same as a table for docs/results.md; '.' is the working tree

Words are those outside of code blocks; what is between back-quotes is one word. The Flesch reading ease is 100 for very
easy texts and 30 for very difficult ones; the grade is the year of school that a reader needs (Flesch-Kincaid). Both
are of paragraphs of ten words and more: titles and cells of tables are no sentences. textstat computes them:
``python -m pip install --group readability``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from style import ROOT, document_blocks

#: Each kind of document, and the paths that are of it; the first that matches counts.
KINDS = {
    "README": r"README\.md",
    "tutorials": r"docs/tutorial/",
    "how-tos": r"docs/how-to/",
    "explanation": r"docs/explanation/",
    "reference": r"docs/reference/",
    "results": r"docs/results\.md",
    "guides": r"docs/",
    "project files": r"",
}

#: The fewest words of a paragraph whose readability counts.
FEWEST_WORDS = 10

#: The kinds that most readers read, of which readability is stated.
READ = ("README", "tutorials", "how-tos")


def pages(revision: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each Markdown file of a revision, of the working tree for '.'."""
    if revision == ".":
        for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md").split("\0"):
            if name and (ROOT / name).is_file():
                yield name, (ROOT / name).read_text("utf-8")
        return
    for name in git("ls-tree", "-r", "-z", "--name-only", revision).split("\0"):
        if name.endswith(".md"):
            yield name, git("show", f"{revision}:{name}")


def git(*arguments: str) -> str:
    """Return what git prints; its error ends the program in one line."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"readability: git {arguments[0]}: {done.stderr.strip().splitlines()[0]}")
    return done.stdout


def kind_of(name: str) -> str:
    """Return the kind of the document at a path."""
    return next(kind for kind, pattern in KINDS.items() if re.match(pattern, name))


def by_kind(revision: str) -> dict[str, list[str]]:
    """Return the paragraphs of a revision's documents, each ended by a full stop, by their kind."""
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, text in pages(revision):
        blocks = (" ".join(block.text.split()) for block in document_blocks(text))
        found[kind_of(name)] += [text if text.endswith((".", "!", "?")) else f"{text}." for text in blocks if text]
    return found


def n_words(paragraphs: list[str]) -> int:
    """Count the words of paragraphs."""
    return sum(len(re.findall(r"\w[\w'’.-]*", text)) for text in paragraphs)


def prose(paragraphs: list[str]) -> str:
    """Join the paragraphs that are sentences."""
    return " ".join(text for text in paragraphs if n_words([text]) >= FEWEST_WORDS)


def rows(revisions: list[str]) -> Iterator[list[str]]:
    """Yield a head, and a row for each figure: words by kind and in all, reading ease and grade."""
    try:
        import textstat
    except ImportError:
        raise SystemExit("readability: needs textstat; python -m pip install --group readability") from None
    yield ["", *("working tree" if each == "." else each for each in revisions)]
    found = [by_kind(each) for each in revisions]
    for kind in KINDS:
        yield [f"words, {kind}", *(f"{n_words(each[kind]):,}" for each in found)]
    yield ["words in all", *(f"{sum(map(n_words, each.values())):,}" for each in found)]
    for label, measure in (("reading ease", textstat.flesch_reading_ease), ("grade", textstat.flesch_kincaid_grade)):
        for kind in READ:
            yield [f"{label}, {kind}", *(f"{measure(prose(each[kind])):.1f}" for each in found)]


def main() -> int:
    """Print the figures, a column for each revision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs="*", metavar="REVISION", help="revisions of git, or '.' (the default)")
    parser.add_argument("--table", action="store_true", help="as a table in Markdown")
    options = parser.parse_args()
    table = list(rows(options.revisions or ["."]))
    if options.table:
        table.insert(1, ["---", *("---:" for _ in table[0][1:])])
        lines = [f"| {' | '.join(row)} |" for row in table]
    else:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            f"{row[0]:<{widths[0]}}  "
            + "  ".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
            for row in table
        ]
    print("\n".join(line.rstrip() for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
