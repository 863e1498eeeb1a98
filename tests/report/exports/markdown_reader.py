"""Reads Markdown as a renderer does: the tags, the text between them, and what is in code."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from markdown_it import MarkdownIt


@dataclass
class Rendered:
    """What a renderer makes of Markdown."""

    #: Tags and text outside of code, in their order.
    outside: list[str] = field(default_factory=list)
    #: The text of each element of code.
    inside: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rendered = Rendered()
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.rendered.outside.append(f"<{tag} {attrs}>")
        if tag == "code":
            self._is_code = True
            self.rendered.inside.append("")

    def handle_endtag(self, tag: str) -> None:
        self.rendered.outside.append(f"</{tag}>")
        self._is_code = self._is_code and tag != "code"

    def handle_data(self, data: str) -> None:
        if self._is_code:
            self.rendered.inside[-1] += data
        elif data.strip():
            self.rendered.outside.append(data)

    def handle_decl(self, decl: str) -> None:
        self.rendered.outside.append(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        self.rendered.outside.append(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        self.rendered.outside.append(f"<?{data}>")


def rendered(markdown: str) -> Rendered:
    """Render with tables and raw HTML allowed, as on GitHub, and read what came out."""
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.rendered
